//===- FakeServer.h - Servers that behave as none should, and a real one ----===//
#ifndef KILN_TESTS_CACHE_REMOTE_FAKESERVER_H
#define KILN_TESTS_CACHE_REMOTE_FAKESERVER_H

#include "runtime/cache/remote/RedisLayer.h"
#include "tests/cache/CacheTestSupport.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace kiln::cache::test {

/// Listens on a port of this machine; each connection gets a thread that runs `serve(socket)`.
class FakeServer {
public:
  explicit FakeServer(std::function<void(int socket)> serve);
  ~FakeServer();
  RedisAddress address() const;
  unsigned connections() const { return accepted; }

private:
  std::function<void(int)> serve;
  int listener = -1;
  std::string port;
  std::atomic<unsigned> accepted{0};
  std::atomic<bool> isStopped{false};
  std::vector<int> sockets; ///< the accepting thread's until it is joined
  std::vector<std::thread> threads;
  std::thread acceptor;
};

/// Reads what comes, until the other side closes; `answer`, if not empty, is sent after the first piece.
std::function<void(int)> answering(std::string answer);
void sendAll(int socket, std::string_view bytes);

/// redis-server on a Unix socket.  Null, with the test skipped by the caller, where it is not installed.
class RealServer {
public:
  static std::unique_ptr<RealServer> start(const std::vector<std::string> &options = {});
  ~RealServer();
  RedisAddress address() const;

private:
  RealServer() = default;
  kiln::test::TemporaryDirectory folder;
  int process = -1;
};

/// The library, or null if it was not built.
const KilnRedisTable *redisLibrary();
/// With 200 ms of patience.
RedisOptions optionsFor(const RedisAddress &address);
std::unique_ptr<RedisLayer> layerFor(RedisOptions options);

} // namespace kiln::cache::test

#endif // KILN_TESTS_CACHE_REMOTE_FAKESERVER_H
