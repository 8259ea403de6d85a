#include "runtime/jit/CompileQueue.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <unistd.h>

namespace kiln {

CompileTask::CompileTask(std::string what) : what(std::move(what)), process(::getpid()) {}

void CompileTask::finish(Status with) {
  const std::lock_guard lock(mutex);
  status = std::move(with);
  ready.store(true, std::memory_order_release);
  done.notify_all();
}

bool CompileTask::isElsewhere() const {
  return ::getpid() != process;
}

Status CompileTask::wait() const {
  if (isReady())
    return status;
  if (isElsewhere())
    return {StatusCode::Unsupported,
            what + ": this process was forked from the one that compiles it, and its threads do not exist here",
            "wait before the fork, or open the device and make the Jit in the child"};
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return isReady(); });
  return status;
}

bool CompileTask::waitUntil(std::chrono::steady_clock::time_point end) const {
  if (isReady() || isElsewhere())
    return isReady();
  std::unique_lock lock(mutex);
  return done.wait_until(lock, end, [&] { return isReady(); });
}

CompileFuture::CompileFuture(Status status) {
  if (status.ok())
    return;
  auto task = std::make_shared<CompileTask>(std::string());
  task->finish(std::move(status));
  tasks.push_back(std::move(task));
}

CompileFuture CompileFuture::all(std::vector<CompileFuture> futures) {
  CompileFuture out;
  for (CompileFuture &f : futures)
    std::move(f.tasks.begin(), f.tasks.end(), std::back_inserter(out.tasks));
  return out;
}

bool CompileFuture::isReady() const {
  return std::all_of(tasks.begin(), tasks.end(), [](const auto &task) { return task->isReady(); });
}

/// Waits for all of them, so that nothing of the call is being made any more whatever it returns.
Status CompileFuture::wait() const {
  Status out;
  for (const auto &task : tasks)
    if (Status s = task->wait(); out.ok() && !s.ok())
      out = std::move(s);
  return out;
}

bool CompileFuture::waitFor(std::chrono::nanoseconds time) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::hours most{24 * 365}; // sums with the clock do not overflow
  const Clock::time_point end = Clock::now() + std::clamp<std::chrono::nanoseconds>(time, {}, most);
  return std::all_of(tasks.begin(), tasks.end(), [&](const auto &task) { return task->waitUntil(end); });
}

CompileQueue::CompileQueue(unsigned threads)
    : most(threads ? threads : std::clamp(std::thread::hardware_concurrency(), 1u, 16u)) {}

namespace {
Status gone() {
  return {StatusCode::NotReady, "its Jit went before it was compiled", "keep the Jit until its futures are ready"};
}
} // namespace

CompileQueue::~CompileQueue() {
  std::deque<Item> left;
  {
    const std::lock_guard lock(mutex);
    ending = true;
    left.swap(items);
    changed.notify_all();
  }
  for (const Item &item : left)
    item.task->finish(gone());
  for (std::thread &t : threads)
    t.join();
}

CompileFuture CompileQueue::add(std::string what, Work work) {
  Item item{std::make_shared<CompileTask>(std::move(what)), std::move(work)};
  CompileFuture out(item.task);
  std::unique_lock lock(mutex);
  if (ending) { // what still runs may ask for more
    item.task->finish(gone());
    return out;
  }
  if (idle <= items.size() && threads.size() < most) {
    try {
      threads.emplace_back([this] { serve(); });
    } catch (const std::system_error &) { // those that there are do it
      if (threads.empty()) {
        lock.unlock();
        run(std::move(item));
        return out;
      }
    }
  }
  items.push_back(std::move(item));
  changed.notify_one();
  return out;
}

void CompileQueue::run(Item item) {
  Status status;
  try {
    status = item.work();
  } catch (const std::exception &e) {
    status = Status(StatusCode::Internal, std::string("the compile threw: ") + e.what());
  } catch (...) {
    status = Status(StatusCode::Internal, "the compile threw");
  }
  item.work = nullptr; // whoever waits may take apart what it refers to
  item.task->finish(std::move(status));
}

void CompileQueue::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [&] { return ending || !items.empty(); });
    --idle;
    if (items.empty())
      return;
    Item item = std::move(items.front());
    items.pop_front();
    lock.unlock();
    run(std::move(item));
    lock.lock();
  }
}

} // namespace kiln
