//===- CompileQueue.h - Compiles in the background --------------------------===//
//
// Threads that begin when there is work for them and end with the queue.  A queue that goes lets the work end that is
// running, and ends what has not begun with StatusCode::NotReady; so all tasks end.
//
// After fork the child has none of the threads, and maybe locked mutexes: a queue must not be used there, and not be
// destroyed (`JitService` lets go of it).  Tasks tell by themselves.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_COMPILEQUEUE_H
#define KILN_RUNTIME_JIT_COMPILEQUEUE_H

#include "kiln/Future.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <sys/types.h>
#include <thread>

namespace kiln {

/// What futures share with the thread that works for them.
class CompileTask {
public:
  explicit CompileTask(std::string what);

  /// Once.
  void finish(Status status);

  bool isReady() const { return ready.load(std::memory_order_acquire); }
  Status wait() const;
  bool waitUntil(std::chrono::steady_clock::time_point end) const;

private:
  bool isElsewhere() const; ///< this is a forked child, and nobody works on it
  const std::string what;
  const pid_t process;
  std::atomic<bool> ready{false};
  mutable std::mutex mutex;
  mutable std::condition_variable done;
  Status status; ///< never changes once it is ready
};

class CompileQueue {
public:
  using Work = std::function<Status()>;

  /// `threads`: at most; 0: the cores, at most 16.
  explicit CompileQueue(unsigned threads);
  ~CompileQueue();
  CompileQueue(const CompileQueue &) = delete;
  CompileQueue &operator=(const CompileQueue &) = delete;

  /// `what`: names the work, for messages.  Where no thread can be had, the work is done before this returns.
  CompileFuture add(std::string what, Work work);

private:
  struct Item {
    std::shared_ptr<CompileTask> task;
    Work work;
  };
  void serve();
  static void run(Item item);

  const std::size_t most;
  std::mutex mutex; ///< everything below
  std::condition_variable changed;
  std::deque<Item> items;
  std::vector<std::thread> threads;
  std::size_t idle = 0;
  bool ending = false;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_COMPILEQUEUE_H
