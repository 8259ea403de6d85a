//===- RedisConnection.h - Commands to a server, each within a time limit -===//
//
// One command at a time, one answer each.  Every call returns soon after its deadline whatever the server does (sends a
// byte a second, claims gigabytes, closes), but for a name that the system's resolver looks up, which has no limit: the
// caller is a thread that nobody waits for.  After a failure the connection is closed; the next command opens it anew.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REMOTE_REDISCONNECTION_H
#define KILN_RUNTIME_CACHE_REMOTE_REDISCONNECTION_H

#include "runtime/cache/remote/RedisAddress.h"
#include "runtime/cache/remote/RedisLibrary.h"

#include <chrono>
#include <initializer_list>
#include <optional>

struct addrinfo;

namespace kiln::cache {

/// What a server sent, as a message shows it: printable, and no longer than a line can bear.
std::string printable(std::string_view text);

class RedisConnection {
public:
  using Clock = std::chrono::steady_clock;

  RedisConnection(RedisAddress address, const KilnRedisTable &library)
      : address(std::move(address)), library(library) {}
  ~RedisConnection() { close(); }
  RedisConnection(const RedisConnection &) = delete;
  RedisConnection &operator=(const RedisConnection &) = delete;

  /// The text of the answer, or nothing where the server has none.  An answer of more than `mostBytes` is a failure.
  /// Unsupported: the server has no such command, does not permit it, or has something else under this key, and will
  /// say so again.
  Result<std::optional<std::string>> command(std::initializer_list<std::string_view> words, Clock::time_point deadline,
                                             std::size_t mostBytes = 1024);

private:
  Status connect(Clock::time_point deadline);
  Status connectTo(const addrinfo &to, Clock::time_point deadline);
  Result<std::optional<std::string>> ask(std::initializer_list<std::string_view> words, Clock::time_point deadline,
                                         std::size_t mostBytes);
  Status waitFor(short events, Clock::time_point deadline) const;
  Status failed(const std::string &what) const;
  Status errorOf(std::string_view answer) const;
  void close();

  const RedisAddress address;
  const KilnRedisTable &library;
  int socket = -1;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REMOTE_REDISCONNECTION_H
