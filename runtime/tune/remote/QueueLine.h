//===- QueueLine.h - A connection to a queue's server that is given time ------===//
//
// What both sides of RedisQueue.h ask the server, and the names of its keys.  A server that fails is asked again, until
// it has been silent for too long.  Not thread safe: each thread has one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_QUEUELINE_H
#define KILN_RUNTIME_TUNE_REMOTE_QUEUELINE_H

#include "runtime/cache/remote/RedisConnection.h"
#include "runtime/tune/remote/RedisQueue.h"

namespace kiln::tune {

class QueueLine {
public:
  using Clock = std::chrono::steady_clock;
  using Text = std::optional<std::string>;

  explicit QueueLine(const QueueOptions &options) : o(options), connection(options.address.server, *options.library) {}

  /// The server's answer.  What it will never do is not asked again.
  Result<Text> ask(std::initializer_list<std::string_view> words);
  /// One try: is there a server, does it let us in, and does it have the youngest command that is needed?
  Status greet();

  /// Puts a number into a list, which goes when nobody renews it.
  Status put(const std::string &list, const std::string &number);

  std::string key(const std::string &number, const char *what) const { return prefix() + number + ":" + what; }
  std::string waiting() const { return prefix() + "waiting"; }
  std::string listOf(const std::string &worker) const { return prefix() + "to:" + worker; }
  /// In milliseconds, as Redis takes it.
  static std::string expiry(double seconds);

private:
  std::string prefix() const { return "kiln:tune:1:" + o.address.name + ":"; }
  Result<Text> askOnce(std::initializer_list<std::string_view> words, Clock::time_point until);
  const QueueOptions &o;
  cache::RedisConnection connection;
};

/// A signed text that belongs to a request: `kind` is "request" or "answer".
std::string sealed(const cache::Signer &signer, const char *kind, const std::string &number, const std::string &worker,
                   const std::string &text);
struct Opened {
  std::string worker, text;
};
/// The failure says that the server is not to be trusted.
Result<Opened> unsealed(const QueueOptions &options, const cache::Signer &signer, const char *kind,
                        const std::string &number, const std::string &value);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_QUEUELINE_H
