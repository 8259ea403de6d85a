//===- WorkerPool.h - Host threads that run blocks ------------------------===//
//
// The caller is worker 0; the others are threads that sleep between launches and are started when first needed.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_WORKERPOOL_H
#define KILN_RUNTIME_DEVICE_EMULATOR_WORKERPOOL_H

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
  /// Calls body(context, worker) for workers 0 to count - 1 at once and waits for all.
  void run(unsigned count, void (*body)(void *context, unsigned worker), void *context);

private:
  void loop(unsigned worker);

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

#endif // KILN_RUNTIME_DEVICE_EMULATOR_WORKERPOOL_H
