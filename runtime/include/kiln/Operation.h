//===- Operation.h - What users call --------------------------------------===//
//
// An operation is one or several launches in order, behind one struct of named arguments:
//
//   struct SoftmaxArguments { Tensor input, output; };
//   class Softmax : public Operation<SoftmaxArguments> { ... };
//   kiln::Status s = softmax.run({.input = x, .output = y}, {.stream = stream});
//
// `check` refuses wrong arguments before anything is launched.  Memory between launches is the workspace: the caller's,
// or one that the Jit keeps for the stream (work on a stream is ordered, so it is reused from call to call).  Inside a
// graph capture a needed workspace must be the caller's: a graph may be replayed anywhere and at any time.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_OPERATION_H
#define KILN_OPERATION_H

#include "kiln/Jit.h"
#include "kiln/Tensor.h"

namespace kiln {

/// Where an operation runs.
struct RunOptions {
  Stream *stream = nullptr;       ///< nullptr: the device's default stream
  DeviceAddress workspace = 0;    ///< 0: the Jit's
  std::size_t workspaceBytes = 0; ///< of the caller's workspace
};

/// The workspace of a call that needs `needed` bytes: the caller's if it is large enough and 256-byte aligned.
Result<DeviceAddress> chooseWorkspace(Jit &jit, std::string_view operation, std::size_t needed,
                                      const RunOptions &options);

template <typename Arguments> class Operation {
public:
  explicit Operation(Jit &jit) : jitValue(&jit) {}
  virtual ~Operation() = default;
  Operation(const Operation &) = delete;
  Operation &operator=(const Operation &) = delete;

  virtual std::string_view name() const = 0;
  /// Names the argument that cannot be taken, its value, the limit and a remedy.
  virtual Status check(const Arguments &arguments) const = 0;
  /// Bytes, for arguments that `check` accepts.
  virtual std::size_t workspaceBytes(const Arguments &arguments) const { return 0; }

  Status run(const Arguments &arguments, const RunOptions &options = {}) {
    KILN_TRY(check(arguments));
    DeviceAddress workspace = 0;
    if (const std::size_t needed = workspaceBytes(arguments)) {
      KILN_ASSIGN(workspace, chooseWorkspace(*jitValue, name(), needed, options));
    }
    return launch(arguments, options.stream, workspace);
  }

protected:
  /// The launches, in order.  `workspace` has `workspaceBytes(arguments)` bytes, 256-byte aligned; 0 if none are
  /// needed.
  virtual Status launch(const Arguments &arguments, Stream *stream, DeviceAddress workspace) = 0;
  Jit &jit() const { return *jitValue; }

private:
  Jit *jitValue;
};

} // namespace kiln

#endif // KILN_OPERATION_H
