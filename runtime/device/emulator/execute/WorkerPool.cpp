#include "runtime/device/emulator/execute/WorkerPool.h"

#include <algorithm>
#include <system_error>

namespace kiln::emulator {

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &t : threads)
    t.join();
}

void WorkerPool::loop(unsigned worker) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stopping || (round != seen && worker < wanted); });
    if (stopping)
      return;
    seen = round;
    const auto body = job;
    void *const context = jobContext;
    lock.unlock();
    body(context, worker);
    lock.lock();
    if (--running == 0)
      finished.notify_one();
  }
}

/// False if the system has no thread for it.  The next launch asks again.
bool WorkerPool::startThread() {
  threads.reserve(threads.size() + 1);
  try {
    if (beforeThread)
      beforeThread();
    threads.emplace_back(&WorkerPool::loop, this, static_cast<unsigned>(threads.size()) + 1);
  } catch (const std::system_error &) {
    return false;
  }
  return true;
}

void WorkerPool::run(unsigned count, void (*body)(void *, unsigned), void *context) {
  count = std::clamp(count, 1u, limit);
  if (count > 1) {
    std::lock_guard lock(mutex);
    while (threads.size() + 1 < count && startThread()) {
    }
    count = std::min(count, static_cast<unsigned>(threads.size()) + 1);
    job = body;
    jobContext = context;
    wanted = count;
    running = count - 1;
    ++round;
  }
  if (count > 1)
    wake.notify_all();
  body(context, 0);
  if (count > 1) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return running == 0; });
    wanted = 0;
  }
}

} // namespace kiln::emulator
