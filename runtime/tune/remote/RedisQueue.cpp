// The sweep's side of a queue.
#include "runtime/tune/remote/QueueLine.h"

#include <mutex>
#include <random>
#include <thread>

namespace kiln::tune {
namespace {

using Clock = QueueLine::Clock;

/// No two sweeps of a queue have the same.
std::string randomName() {
  std::random_device device;
  std::string out;
  for (unsigned i = 0; i < 4; ++i) {
    char part[9];
    std::snprintf(part, sizeof part, "%08x", static_cast<unsigned>(device()));
    out += part;
  }
  return out;
}

class RedisQueue final : public Carrier {
public:
  RedisQueue(QueueOptions options, cache::Signer signer) : o(std::move(options)), signer(std::move(signer)) {}

  std::optional<unsigned> workers() const override { return {}; }
  /// A lease is the word of the server, which may have been restarted or lie.
  bool knowsWhoIsLost() const override { return false; }
  void beginCall() override { sweep = randomName(); }
  /// It leaves itself out, and may take part in other sweeps.
  Status leaveOut(const std::string &, const std::string &) override { return {}; }

  Result<Delivery> deliver(const std::string &request, const std::string &to, const Patience &patience) override {
    QueueLine line(o);
    const std::string number = sweep + "." + std::to_string(next++);
    const std::string list = to.empty() ? line.waiting() : line.listOf(to);
    const std::string expiry = QueueLine::expiry(10 * o.silence); // only of a sweep that was killed
    KILN_TRY(
        line.ask({"SET", line.key(number, "request"), sealed(signer, "request", number, to, request), "PX", expiry})
            .status());
    KILN_TRY(line.ask({"RPUSH", list, number}).status());
    Result<Delivery> out = waitFor(line, number, list, !to.empty(), expiry, patience);
    withdraw(line, number, list);
    return out;
  }

private:
  Result<Delivery> waitFor(QueueLine &line, const std::string &number, const std::string &list, bool isForOne,
                           const std::string &expiry, const Patience &patience) {
    const auto silence = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.silence));
    const Clock::time_point begin = Clock::now();
    Clock::time_point look = begin;
    std::optional<Clock::time_point> gone; // since when it is neither in the list nor leased
    std::string worker;                    // that has the lease
    for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, std::chrono::milliseconds(100))) {
      if (patience.isInterrupted())
        return Status(StatusCode::NotReady, "interrupted while a worker was waited for");
      KILN_ASSIGN(QueueLine::Text answer, line.ask({"GET", line.key(number, "answer")}));
      const Clock::time_point now = Clock::now();
      if (!answer && now >= look) {
        look = now + silence / 16;
        KILN_TRY(line.ask({"PEXPIRE", line.key(number, "request"), expiry}).status());
        KILN_TRY(line.ask({"PEXPIRE", list, expiry}).status());
        KILN_ASSIGN(const QueueLine::Text lease, line.ask({"GET", line.key(number, "lease")}));
        KILN_ASSIGN(const QueueLine::Text place, line.ask({"LPOS", list, number}));
        if (lease && worker.empty())
          sawWorker();
        if (lease) {
          worker = cache::printable(*lease); // it is not signed
          gone.reset();
        } else if (place) { // where it was from the beginning, or a worker that ends has put it back
          worker.clear();
          gone.reset();
          if (isForOne && now - begin > silence)
            return Delivery();
          if (patience.begin && now >= *patience.begin)
            return Status(StatusCode::NotReady, "no worker of " + o.address.text() + " was free in time",
                          "start more of them: kiln tune --work ADDRESS");
          if (now - begin > silence)
            sayThatNobodyWorks();
        } else if (!gone) { // a server that was restarted has the lease again when it is renewed
          gone = Clock::now();
        } else if (now - *gone > silence) {
          // An answer that came since it was looked for is one.
          KILN_ASSIGN(answer, line.ask({"GET", line.key(number, "answer")}));
          if (!answer && worker.empty()) // taken by one that was lost at once, or the server lost it
            return Delivery();
          if (!answer)
            return Delivery{Delivery::End::Lost, worker, ""};
        }
      }
      if (answer) {
        KILN_ASSIGN(Opened opened, unsealed(o, signer, "answer", number, *answer));
        return Delivery{Delivery::End::Answered, std::move(opened.worker), std::move(opened.text)};
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(pause, silence / 16));
    }
  }

  /// Nobody is to begin it any more.  A server that fails now keeps it until it expires.
  void withdraw(QueueLine &line, const std::string &number, const std::string &list) {
    if (line.ask({"DEL", line.key(number, "request"), line.key(number, "answer")}).ok())
      (void)line.ask({"LREM", list, "0", number}).ok();
  }

  void sawWorker() {
    const std::lock_guard lock(mutex);
    isWorkedOn = true;
  }
  /// Once, and not where workers are only busy.
  void sayThatNobodyWorks() {
    const std::lock_guard lock(mutex);
    if (std::exchange(isWorkedOn, true) || !o.say)
      return;
    o.say("no worker has taken a configuration yet; start one: kiln tune --work " + o.address.text());
  }

  const QueueOptions o;
  const cache::Signer signer;
  std::string sweep = randomName(); ///< of a call
  std::atomic<std::uint64_t> next{1};
  std::mutex mutex;
  bool isWorkedOn = false;
};

} // namespace

Result<std::unique_ptr<Carrier>> openRedisQueue(QueueOptions options) {
  KILN_ASSIGN(cache::Signer signer, cache::Signer::create(options.secret, options.library));
  KILN_TRY(QueueLine(options).greet());
  return std::unique_ptr<Carrier>(std::make_unique<RedisQueue>(std::move(options), std::move(signer)));
}

} // namespace kiln::tune
