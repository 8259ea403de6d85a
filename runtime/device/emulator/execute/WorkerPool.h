//===- WorkerPool.h - Host threads that run blocks ------------------------===//
//
// The caller is worker 0; the others are threads that sleep between launches and are started when first needed.  Where
// the system gives no more threads, those that there are do the work.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WORKERPOOL_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WORKERPOOL_H

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::emulator {

class WorkerPool {
public:
  explicit WorkerPool(unsigned size) : limit(size ? size : 1) {}
  ~WorkerPool();
  unsigned size() const { return limit; }
  /// Calls body(context, worker) at once for workers 0 to count - 1, or for the first of them that could be started,
  /// and waits for all: a body must not leave work to a certain worker.
  void run(unsigned count, void (*body)(void *context, unsigned worker), void *context);

  /// Called before each thread is made; a test lets it throw what a system without threads does.
  static inline void (*beforeThread)() = nullptr;

private:
  void loop(unsigned worker);
  bool startThread();

  unsigned limit;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::uint64_t round = 0;
  unsigned wanted = 0, running = 0;
  void (*job)(void *, unsigned) = nullptr;
  void *jobContext = nullptr;
  bool stopping = false;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WORKERPOOL_H
