//===- PoisonedWorkspace.h - Calls between whose launches lies memory full of NaN ---===//
#ifndef KILN_TESTS_KERNELS_POISONEDWORKSPACE_H
#define KILN_TESTS_KERNELS_POISONEDWORKSPACE_H

#include "kiln/Operation.h"
#include "tests/kernels/Operand.h"

namespace kiln::test {

/// Runs the call in a workspace of its own, all NaN, of which an emulator knows that nobody wrote it.
template <typename Operation, typename Arguments>
Status runInPoison(Device &device, const Operation &operation, const Arguments &arguments) {
  const std::size_t bytes = operation.workspaceBytes(arguments);
  if (bytes == 0)
    return operation.run(arguments);
  KILN_ASSIGN(const auto workspace, device.allocate(bytes));
  KILN_TRY(workspace->poison(besideInputs));
  KILN_TRY(operation.run(arguments, {.workspace = workspace->address(), .workspaceBytes = bytes}));
  return device.defaultStream().synchronize(); // before the memory goes
}

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_POISONEDWORKSPACE_H
