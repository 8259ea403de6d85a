//===- FamilyCalls.h - Calls that are timed and predicted ------------------===//
//
// The library's kernels with random inputs, at their own sizes or at those that the words of `--with` say: what
// `kiln bench` times, the performance model predicts and `kiln check` runs.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_FAMILYCALLS_H
#define KILN_RUNTIME_TOOLS_FAMILYCALLS_H

#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "runtime/tools/LibraryRun.h"

#include <span>
#include <string>
#include <vector>

namespace kiln::tools {

struct FamilyCall {
  const kernels::Family *family;
  kernels::Sample sample;
  DType type;
};

/// Everything that is to be called, so that a wrong word ends the command before anything runs.  `with`: NAME=SHAPE,
/// NAME=SHAPE:DTYPE or NAME=FILE.npy instead of the one kernel's tensors, NAME=V in addition to its options.  `large`:
/// sizes that fill a GPU.
Result<std::vector<FamilyCall>> chooseFamilyCalls(const std::vector<std::string> &names,
                                                  const std::vector<std::string> &dtypes,
                                                  std::span<const std::string> with, kernels::Needs needs,
                                                  kernels::SampleUse use, bool large);

/// Any: zeros in the place of random values and of what other kernels make, for calls that are planned and never run.
enum class InputValues : std::uint8_t { Random, Any };

/// Random tensors, those that are given, and what other kernels make of them.
Result<kernels::Arrays> randomInputsOf(Jit &jit, const FamilyCall &call, InputValues values = InputValues::Random);

/// "B2 S8192 H16 D128".
std::string sizeTextOf(const FamilyCall &call);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_FAMILYCALLS_H
