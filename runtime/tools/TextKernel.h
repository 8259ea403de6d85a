//===- TextKernel.h - A kernel written as text, from a file --------------------===//
//
// A KernelSource needs the kernel's name, arguments and warps, which only the compiler can read from the text.  What it
// said is kept next to the kernel cache (folder `descriptions`), so that a kernel found in the cache runs without
// the compiler.  A file may be anybody's: the compiler reads it in a process of its own.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TEXTKERNEL_H
#define KILN_RUNTIME_TOOLS_TEXTKERNEL_H

#include "kiln/KernelSource.h"
#include "kiln/Knobs.h"

namespace kiln::tools {

/// The folder, in the kernel cache's, of remembered descriptions.
inline constexpr const char *descriptionsFolder = "descriptions";

struct TextKernel {
  KernelSource source;
  bool remembered = false; ///< the compiler was not asked
  double milliseconds = 0; ///< to read the file and to know what is in it
};

/// Larger texts are no kernels.
constexpr std::uint64_t maxTextBytes = std::uint64_t(64) << 20;

/// Describes the kernel `entry` (empty: the only one) of a text; `file` is its name in messages.
Result<TextKernel> describeTextKernel(const std::string &program, const std::string &file, const std::string &entry,
                                      const std::string &codeTarget, const Knobs &knobs);

/// The same of a file.  Its arguments' types and attributes say how they are specialised (tile.specialize,
/// tile.element; pointers by alignment).
Result<TextKernel> readTextKernel(const std::string &file, const std::string &entry, const std::string &codeTarget,
                                  const Knobs &knobs);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TEXTKERNEL_H
