#include "runtime/cache/remote/RedisLayer.h"

#include "runtime/cache/Hash.h"
#include "runtime/cache/remote/RedisConnection.h"
#include "runtime/cache/remote/Signer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace kiln::cache {
namespace {

using Clock = RedisConnection::Clock;

/// "kiln:1:<hash of the key text>": of the format that entries have now.
std::string nameOf(const std::string &keyText) {
  return "kiln:" + std::to_string(entryFormatVersion) + ":" + hexText(hash128(keyText));
}

struct Task {
  enum class Kind : std::uint8_t { Lookup, Store, Probe } kind = Kind::Probe;
  std::string name = {}, value = {}; ///< value: what is stored
  Clock::time_point deadline = {};
  // Of a lookup:
  bool done = false;
  Status status = {};
  std::optional<std::string> found = {};
};

/// What the layer and its thread share.  The thread may outlive the layer, in a call that has no time limit.
class Worker {
public:
  explicit Worker(RedisOptions options)
      : options(std::move(options)), connection(this->options.address, *this->options.library) {}

  const RedisOptions options;
  const pid_t process = ::getpid();

  std::mutex mutex; ///< everything below but the connection
  std::condition_variable changed;
  std::deque<std::shared_ptr<Task>> queue;
  std::size_t queuedBytes = 0;
  bool isRunning = false, isBusy = false, isStopped = false;
  /// The last call failed; nobody waits until a probe has succeeded.
  bool isOpen = false;
  bool isProbing = false;
  Clock::time_point openedAt = {};
  RedisCounters counters;

  /// With the mutex held.  False: there is no thread.
  bool add(const std::shared_ptr<Worker> &self, std::shared_ptr<Task> task) {
    if (!isRunning) {
      try {
        std::thread([self] { self->work(); }).detach();
      } catch (const std::system_error &) {
        return false;
      }
      isRunning = true;
    }
    queuedBytes += task->value.size();
    if (task->kind == Task::Kind::Lookup) // somebody waits
      queue.push_front(std::move(task));
    else
      queue.push_back(std::move(task));
    changed.notify_all();
    return true;
  }

  /// With the mutex held.
  void fail(const Status &why) {
    ++counters.failures;
    openedAt = Clock::now();
    if (!std::exchange(isOpen, true))
      lines.push_back("the cache's server is not asked any more: " + why.message());
  }

  /// What is to be said is said without the mutex.
  std::vector<std::string> takeLines() { return std::exchange(lines, {}); }
  void sayAll(const std::vector<std::string> &what) const {
    for (const std::string &line : what)
      if (options.say)
        options.say(line);
  }

private:
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isStopped || !queue.empty(); });
      if (queue.empty())
        return;
      const std::shared_ptr<Task> task = queue.front();
      queue.pop_front();
      queuedBytes -= task->value.size();
      if (isOpen && task->kind != Task::Kind::Probe) { // it failed meanwhile
        counters.dropped += task->kind == Task::Kind::Store;
        finish(*task, Status(StatusCode::IoError, "the server failed before"));
        continue;
      }
      isBusy = true;
      lock.unlock();
      Status status;
      std::optional<std::string> found;
      run(*task, status, found);
      lock.lock();
      isBusy = false;
      counters.stored += task->kind == Task::Kind::Store && status.ok();
      if (task->kind == Task::Kind::Probe) {
        isProbing = false;
        if (status.ok()) {
          isOpen = false;
          lines.push_back("the cache's server answers again");
        } else {
          openedAt = Clock::now();
        }
      } else if (!status.ok()) {
        fail(status);
      }
      task->found = std::move(found);
      finish(*task, std::move(status));
      if (task->kind == Task::Kind::Lookup)
        continue; // who waits says it
      const std::vector<std::string> said = takeLines();
      lock.unlock();
      sayAll(said);
      lock.lock();
    }
  }

  void finish(Task &task, Status status) {
    task.status = std::move(status);
    task.done = true;
    changed.notify_all();
  }

  void run(const Task &task, Status &status, std::optional<std::string> &found) {
    const auto take = [&](Result<std::optional<std::string>> answer) {
      if (answer)
        found = std::move(*answer);
      else
        status = answer.takeStatus();
    };
    switch (task.kind) {
    case Task::Kind::Lookup:
      return take(connection.command({"GET", task.name}, task.deadline, maxEntryFileBytes + signatureBytes));
    case Task::Kind::Store:
      return take(connection.command({"SET", task.name, task.value}, Clock::now() + options.storePatience));
    case Task::Kind::Probe:
      return take(connection.command({"PING"}, Clock::now() + options.patience));
    }
  }

  RedisConnection connection; ///< the thread's alone
  std::vector<std::string> lines;
};

class Layers final : public RedisLayer {
public:
  Layers(RedisOptions options, Signer signer)
      : shown(options.address.text()), signer(std::move(signer)), worker(std::make_shared<Worker>(std::move(options))) {
  }

  ~Layers() override {
    if (worker->process != ::getpid())
      return; // its thread is in the process that this one was forked from, and its mutex may be held for ever
    std::unique_lock lock(worker->mutex);
    const auto idle = [&] { return worker->isOpen || (worker->queue.empty() && !worker->isBusy); };
    worker->changed.wait_for(lock, worker->options.patience, idle);
    worker->isStopped = true;
    worker->queue.clear();
    worker->changed.notify_all();
  }

  const std::string &name() const override { return shown; }
  bool isRemote() const override { return true; }

  Result<std::optional<Entry>> lookup(const KeyText &key) override {
    using Out = std::optional<Entry>;
    const std::string text = key.serialise();
    const auto task = std::make_shared<Task>();
    task->kind = Task::Kind::Lookup;
    task->name = nameOf(text);
    task->deadline = Clock::now() + worker->options.patience;
    {
      std::unique_lock lock(worker->mutex);
      if (worker->isOpen) {
        ++worker->counters.skipped;
        probe();
        return Out();
      }
      if (!worker->add(worker, task))
        return Status(StatusCode::OutOfMemory, "no thread to ask " + shown);
      const bool isDone = worker->changed.wait_until(lock, task->deadline, [&] { return task->done; });
      if (!isDone)
        worker->fail(Status(StatusCode::IoError,
                            shown + ": no answer in " + std::to_string(worker->options.patience.count()) + " ms"));
      const std::vector<std::string> said = worker->takeLines();
      if (!isDone || !task->status.ok() || !task->found)
        ++worker->counters.misses;
      lock.unlock();
      worker->sayAll(said);
      if (!isDone) // the thread may write to the task from now on
        return Out();
    }
    if (!task->status.ok())
      return task->status;
    if (!task->found)
      return Out();
    Result<Entry> entry = checked(text, *task->found);
    std::unique_lock lock(worker->mutex);
    if (entry) {
      ++worker->counters.hits;
      return Out(std::move(*entry));
    }
    ++worker->counters.misses;
    ++worker->counters.refused;
    worker->fail(entry.status());
    const std::vector<std::string> said = worker->takeLines();
    lock.unlock();
    worker->sayAll(said);
    return entry.takeStatus();
  }

  void offer(const KeyText &key, const Entry &entry) override {
    const std::string text = key.serialise();
    auto task = std::make_shared<Task>();
    task->kind = Task::Kind::Store;
    task->name = nameOf(text);
    task->value = signer.sign(encodeEntry(text, entry));
    const std::lock_guard lock(worker->mutex);
    if (worker->isOpen || worker->queuedBytes + task->value.size() > worker->options.mostQueued ||
        !worker->add(worker, std::move(task)))
      ++worker->counters.dropped;
  }

  RedisCounters counters() const override {
    const std::lock_guard lock(worker->mutex);
    return worker->counters;
  }

private:
  Result<Entry> checked(const std::string &keyText, std::string_view value) const {
    const auto refused = [&](const std::string &why) {
      return Status::invalid(shown + " holds an entry that " + why,
                             "give all machines that share it the same KILN_CACHE_SECRET, and nobody else");
    };
    if (value.size() < signatureBytes)
      return refused("is not signed");
    const std::optional<std::string_view> encoded = signer.opened(value);
    if (!encoded)
      return refused("is not signed with this secret");
    Result<EntryView> view = decodeEntry(*encoded);
    if (!view)
      return refused("is damaged: " + view.status().message());
    if (view->keyText != keyText)
      return refused("is of another kernel");
    return Entry{view->kind, std::string(view->payload), std::string(view->metadata)};
  }

  /// With the mutex held: nobody waits for it.
  void probe() {
    if (worker->isProbing || Clock::now() - worker->openedAt < worker->options.retryAfter)
      return;
    worker->isProbing = worker->add(worker, std::make_shared<Task>());
  }

  const std::string shown;
  const Signer signer;
  const std::shared_ptr<Worker> worker;
};

} // namespace

Result<std::unique_ptr<RedisLayer>> redisLayer(RedisOptions options) {
  KILN_ASSIGN(Signer signer, Signer::create(options.secret, options.library));
  return std::unique_ptr<RedisLayer>(std::make_unique<Layers>(std::move(options), std::move(signer)));
}

} // namespace kiln::cache
