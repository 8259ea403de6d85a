//===- Operation.h - What users call --------------------------------------===//
//
// An operation is one or several launches in order, behind one struct of named arguments:
//
//   struct SoftmaxArguments { Tensor input, output; };
//   class Softmax : public Operation<SoftmaxArguments> { ... };
//   kiln::Status s = softmax.run({.input = x, .output = y}, {.stream = stream});
//
// `check` refuses wrong arguments before anything is launched; `plan` says what a call does (Plan.h), and everything
// else reads that.  Memory between launches is the workspace: the caller's, or one that the Jit keeps for the stream
// (work on a stream is ordered, so it is reused from call to call).  Inside a graph capture a needed workspace must be
// the caller's: a graph may be replayed anywhere and at any time.  Threads that call on one stream at the same time
// each bring a workspace of their own: the launches of their calls may interleave.
//
// A call whose code is there takes no lock and allocates nothing, but for the Jit's workspace.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_OPERATION_H
#define KILN_OPERATION_H

#include "kiln/Plan.h"
#include "kiln/Tensor.h"

namespace kiln {

template <typename Arguments> class Operation {
public:
  explicit Operation(Jit &jit) : jitValue(&jit) {}
  virtual ~Operation() = default;
  Operation(const Operation &) = delete;
  Operation &operator=(const Operation &) = delete;

  virtual std::string_view name() const = 0;
  /// Names the argument that cannot be taken, its value, the limit and a remedy.
  virtual Status check(const Arguments &arguments) const = 0;

  Status run(const Arguments &arguments, const RunOptions &options = {}) const {
    KILN_TRY(check(arguments));
    const PlanFunction call = planned(arguments);
    const CallText text = [this, &arguments] { return callText(arguments); };
    return RunPlan::run(*jitValue, name(), options, call, text);
  }
  /// Compiles what `run` would launch, all kernels at once; launches nothing.  `stream`: inside a capture this fails.
  Status prepare(const Arguments &arguments, Stream *stream = nullptr) const {
    KILN_TRY(check(arguments));
    return prepareAll(planned(arguments), stream).status();
  }
  /// `prepare` without waiting (Future.h).  The arguments and this operation may go before the future is ready.
  CompileFuture prepareAsync(const Arguments &arguments, Stream *stream = nullptr) const {
    if (Status s = check(arguments); !s.ok())
      return CompileFuture(std::move(s));
    return prepareAllAsync(planned(arguments), stream);
  }
  /// Describes a call to any plan.
  Status describe(const Arguments &arguments, Plan &to) const {
    KILN_TRY(check(arguments));
    return plan(arguments, to);
  }
  /// Bytes, for arguments that `check` accepts.
  std::size_t workspaceBytes(const Arguments &arguments) const {
    WorkspacePlan size;
    (void)plan(arguments, size); // a plan that fails later has asked for its workspace
    return size.bytes;
  }

protected:
  /// The call, for arguments that `check` accepts.
  virtual Status plan(const Arguments &arguments, Plan &plan) const = 0;
  /// The call as it is written to lists, and as `kiln tune` reads it (Plan.h); nothing: it is in no list.
  virtual std::optional<std::string> callText(const Arguments &) const { return std::nullopt; }
  Jit &jit() const { return *jitValue; }

private:
  /// Two pointers: fits into a std::function without an allocation.  Both outlive it.
  PlanFunction planned(const Arguments &arguments) const {
    return [this, &arguments](Plan &to) { return plan(arguments, to); };
  }
  Jit *jitValue;
};

} // namespace kiln

#endif // KILN_OPERATION_H
