//===- KernelProgram.h - The kernel that `kiln compile` and `kiln explain` name ===//
//
// A kernel of the library recorded for a type and settings, and facts about its arguments, from the command line.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_KERNELPROGRAM_H
#define KILN_RUNTIME_TOOLS_KERNELPROGRAM_H

#include "kiln/KernelSource.h"

#include <vector>

namespace kiln::tools {

/// Whether the word names a file rather than a kernel of the library.
bool namesTextFile(const std::string &word);

/// The kernel `name` of the library for --dtype (empty: the first that it exists for) and --set NAME=VALUE.
Result<KernelSource> recordLibraryKernel(const std::string &name, const std::string &dtype,
                                         const std::vector<std::string> &settings);

/// The compile request's JSON of --divisible ARGUMENT=N, --equals ARGUMENT=N and --no-tensor-maps.  Arguments go by
/// number, or by name where `names` has them.
Result<std::string> factsText(const std::vector<std::string> &names, const std::vector<std::string> &divisible,
                              const std::vector<std::string> &equals, bool noTensorMaps);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_KERNELPROGRAM_H
