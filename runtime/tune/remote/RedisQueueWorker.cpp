// A worker's side of a queue.
#include "runtime/tune/remote/QueueLine.h"
#include "runtime/tune/remote/Workers.h"

#include <condition_variable>
#include <set>
#include <system_error>
#include <thread>

namespace kiln::tune {
namespace {

using Clock = QueueLine::Clock;

/// Renews a lease until it is destroyed, by a thread with a connection of its own.
class Lease {
public:
  Lease(const QueueOptions &options, std::string key, std::string worker)
      : o(options), key(std::move(key)), worker(std::move(worker)) {}
  Status begin(QueueLine &line) {
    KILN_TRY(renew(line));
    try {
      thread = std::thread([this] { keep(); });
    } catch (const std::system_error &e) {
      return {StatusCode::OutOfMemory, std::string("no thread can be started: ") + e.what(), "end other programs"};
    }
    return {};
  }
  ~Lease() {
    {
      const std::lock_guard lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    if (thread.joinable())
      thread.join();
  }
  Lease(const Lease &) = delete;
  Lease &operator=(const Lease &) = delete;

private:
  Status renew(QueueLine &line) { return line.ask({"SET", key, worker, "PX", QueueLine::expiry(o.silence)}).status(); }
  void keep() {
    QueueLine line(o);
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, std::chrono::duration<double>(o.silence / 4), [&] { return isOver; })) {
      lock.unlock();
      (void)renew(line).ok(); // whoever gives the answer meets the failure too
      lock.lock();
    }
  }
  const QueueOptions &o;
  const std::string key, worker;
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread thread;
};

class RedisWorker {
public:
  RedisWorker(const QueueOptions &options, const cache::Signer &signer, const std::string &worker, const Answer &answer)
      : o(options), signer(signer), worker(worker), answer(answer), line(options) {}

  Status serve(double idle) {
    KILN_TRY(line.greet());
    Clock::time_point last = Clock::now();
    while (!isInterrupted()) {
      std::string list = line.listOf(worker);
      QueueLine::Text number;
      KILN_ASSIGN(number, line.ask({"LPOP", list}));
      if (!number) {
        list = line.waiting();
        KILN_ASSIGN(number, line.ask({"LPOP", list}));
      }
      if (number && refused.contains(sweepOf(*number))) {
        KILN_TRY(line.put(list, *number));
        pause(std::chrono::milliseconds(300)); // time for others to take it
      } else if (number) {
        KILN_ASSIGN(const bool hasWorked, work(*number, list));
        if (hasWorked)
          last = Clock::now();
        continue;
      }
      if (idle > 0 && Clock::now() - last > std::chrono::duration<double>(idle))
        return {};
      pause(std::chrono::milliseconds(30));
    }
    return {};
  }

private:
  bool isInterrupted() const { return o.interrupted && o.interrupted->load(); }
  static std::string sweepOf(const std::string &number) { return number.substr(0, number.find('.')); }
  static void pause(Clock::duration time) { std::this_thread::sleep_for(time); }

  /// Ends the lease unless another worker has it by now.
  Status release(const std::string &lease) {
    constexpr std::string_view script =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    return line.ask({"EVAL", script, "1", lease, worker}).status();
  }

  /// Whether there was something to do.
  Result<bool> work(const std::string &number, const std::string &list) {
    const std::string lease = line.key(number, "lease");
    KILN_ASSIGN(const QueueLine::Text value, line.ask({"GET", line.key(number, "request")}));
    if (!value) // withdrawn
      return false;
    Result<Opened> request = unsealed(o, signer, "request", number, *value);
    if (!request) { // another worker may have the secret
      (void)line.put(list, number).ok();
      return request.takeStatus();
    }
    std::string text;
    {
      Lease held(o, lease, worker);
      KILN_TRY(held.begin(line));
      text = answer(request->text);
    }
    if (isInterrupted()) { // what the signal did to the measurement is not known
      KILN_TRY(line.put(list, number));
      KILN_TRY(release(lease));
      return true;
    }
    if (const std::optional<std::string> why = refusalOf(text)) {
      refused.insert(sweepOf(number));
      if (o.say)
        o.say("a sweep of " + o.address.text() + " is refused: " + *why);
    }
    // Nobody may wait for it any more.
    constexpr double kept = 600;
    KILN_TRY(line.ask({"SET", line.key(number, "answer"), sealed(signer, "answer", number, worker, text), "PX",
                       QueueLine::expiry(kept)})
                 .status());
    KILN_TRY(release(lease));
    return true;
  }

  const QueueOptions &o;
  const cache::Signer &signer;
  const std::string &worker;
  const Answer &answer;
  QueueLine line;
  std::set<std::string> refused; ///< sweeps
};

} // namespace

Status serveRedisQueue(QueueOptions options, const std::string &worker, double idle, const Answer &answer) {
  KILN_ASSIGN(const cache::Signer signer, cache::Signer::create(options.secret, options.library));
  return RedisWorker(options, signer, worker, answer).serve(idle);
}

} // namespace kiln::tune
