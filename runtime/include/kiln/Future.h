//===- Future.h - Code that is being made in the background ----------------===//
//
// `prepareAsync` of kernels and operations returns one at once:
//
//   kiln::CompileFuture code = add->prepareAsync(stream, named<"x">(x), ..);
//   ..                                                  // other work
//   if (kiln::Status s = code.wait(); !s.ok()) ..       // or isReady(), waitFor(time)
//
// The work is done by threads of the Jit.  A launch of the same kernel meanwhile waits for the compile in flight, it
// does not begin another.
//
// Rules:
//  - Copies are of one result.  Any thread may call anything, at the same time, too; nothing throws.
//  - A future that nobody waits for costs nothing when it goes; its code is made all the same.
//  - A future outlives its Jit: a Jit that goes lets the compiles end that are running, and what has not begun ends
//  with
//    StatusCode::NotReady.
//  - Waiting calls neither the device nor its driver, so it is allowed inside a graph capture.  What is asked for on a
//    stream that captures is refused with NotReady, like a launch.
//  - In a child process after fork, what was not ready before never will be, which `wait` says at once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_FUTURE_H
#define KILN_FUTURE_H

#include "support/Status.h"

#include <chrono>
#include <memory>
#include <vector>

namespace kiln {

class CompileTask;

class CompileFuture {
public:
  /// Ready, with success.
  CompileFuture() = default;
  /// Ready, with this status.
  explicit CompileFuture(Status status);
  explicit CompileFuture(std::shared_ptr<const CompileTask> task) { tasks.push_back(std::move(task)); }
  /// Ready when all are; their first failure, in this order, is its own.
  static CompileFuture all(std::vector<CompileFuture> futures);

  bool isReady() const;
  /// What a launch would have returned if it had waited for its code.
  Status wait() const;
  /// Whether it is ready by then.
  bool waitFor(std::chrono::nanoseconds time) const;

private:
  std::vector<std::shared_ptr<const CompileTask>> tasks; ///< in the order of the launches
};

} // namespace kiln

#endif // KILN_FUTURE_H
