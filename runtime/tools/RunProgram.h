//===- RunProgram.h - One kernel of a file, ready to be launched -------------===//
//
// What `kiln run FILE` and `kiln check FILE` launch: a kernel of a PTX file or cubin, whose block the caller gives, or
// of a text file (.mlir), which the JIT compiles at its first call and which knows its block and shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_RUNPROGRAM_H
#define KILN_RUNTIME_TOOLS_RUNPROGRAM_H

#include "runtime/tools/FirstCalls.h"
#include "runtime/tools/KernelArguments.h"
#include "runtime/tools/RunOptions.h"

namespace kiln::tools {

class RunProgram {
public:
  virtual ~RunProgram() = default;

  /// Parameters and name; known before anything is compiled.
  virtual const KernelInfo &info() const = 0;
  /// What KernelInfo cannot say of the arguments: elements of pointers.
  virtual Status checkArguments(const std::vector<KernelArgument> &) const { return {}; }
  /// Compiles for these arguments if that is needed; `launch` then costs no compile.
  virtual Status prepare(std::span<const std::byte>) { return {}; }
  virtual Status launch(std::span<const std::byte> packed) = 0;
  /// Adds grid, block and shared memory; after `prepare`.
  virtual void describe(Json &report) const = 0;
};

/// Whether the options' file is a text kernel: its name ends in .mlir.
bool isTextKernel(const std::string &file);

/// The kernel of options.file on the device.  `firstCalls` is told of what a text kernel's compile cost.
Result<std::unique_ptr<RunProgram>> loadProgram(Device &device, const RunOptions &options, FirstCalls &firstCalls);

/// The same for either kind.
Result<std::unique_ptr<RunProgram>> loadPtxProgram(Device &device, const RunOptions &options);
Result<std::unique_ptr<RunProgram>> loadTextProgram(Device &device, const RunOptions &options, FirstCalls &firstCalls);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_RUNPROGRAM_H
