#include "tests/cache/remote/FakeServer.h"

#include "runtime/cache/remote/RedisConnection.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cache::test {

FakeServer::FakeServer(std::function<void(int)> what) : serve(std::move(what)) {
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr *>(&at), size) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr *>(&at), &size) != 0)
    ADD_FAILURE() << "no port to listen on";
  port = std::to_string(ntohs(at.sin_port));
  acceptor = std::thread([this] {
    while (!isStopped) {
      pollfd one{listener, POLLIN, 0};
      if (::poll(&one, 1, 20) <= 0)
        continue;
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0)
        continue;
      ++accepted;
      sockets.push_back(socket);
      threads.emplace_back([this, socket] { serve(socket); });
    }
  });
}

FakeServer::~FakeServer() {
  isStopped = true;
  acceptor.join();
  for (const int socket : sockets)
    ::shutdown(socket, SHUT_RDWR);
  for (std::thread &thread : threads)
    thread.join();
  for (const int socket : sockets)
    ::close(socket);
  ::close(listener);
}

RedisAddress FakeServer::address() const {
  RedisAddress out;
  out.host = "127.0.0.1";
  out.port = port;
  return out;
}

void sendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0)
      return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::function<void(int)> answering(std::string answer) {
  return [answer = std::move(answer)](int socket) {
    char piece[4096];
    bool isFirst = true;
    while (::recv(socket, piece, sizeof piece, 0) > 0)
      if (std::exchange(isFirst, false))
        sendAll(socket, answer);
  };
}

std::unique_ptr<RealServer> RealServer::start(const std::vector<std::string> &options) {
  std::unique_ptr<RealServer> out(new RealServer);
  const std::string path = out->address().socket;
  std::vector<std::string> words = {"redis-server", "--port", "0",     "--unixsocket",    path, "--save", "",
                                    "--appendonly", "no",     "--dir", out->folder.path()};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  out->process = ::fork();
  if (out->process == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  for (int i = 0; i < 500; ++i) {
    int status = 0;
    if (::waitpid(out->process, &status, WNOHANG) == out->process) {
      out->process = -1;
      return nullptr;
    }
    // It answers, if only that it wants a password: the socket is there before anybody listens.
    RedisConnection connection(out->address(), *redisLibrary());
    const auto answer = connection.command({"PING"}, RedisConnection::Clock::now() + std::chrono::seconds(1));
    if (answer.ok() || answer.status().message().find("NOAUTH") != std::string::npos)
      return out;
    ::usleep(20'000);
  }
  return nullptr;
}

RealServer::~RealServer() {
  if (process > 0) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
}

RedisAddress RealServer::address() const {
  RedisAddress out;
  out.socket = folder.path() + "/redis.sock";
  return out;
}

const KilnRedisTable *redisLibrary() {
  static const KilnRedisTable *const table = [] {
    const auto opened = openRedisLibrary(KILN_BINARY_DIR "/bin/libkiln-redis.so");
    return opened ? *opened : nullptr;
  }();
  return table;
}

RedisOptions optionsFor(const RedisAddress &address) {
  RedisOptions out;
  out.address = address;
  out.secret = "a secret of the tests";
  out.library = redisLibrary();
  return out;
}

std::unique_ptr<RedisLayer> layerFor(RedisOptions options) {
  auto made = redisLayer(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().toString();
  return made ? std::move(*made) : nullptr;
}

} // namespace kiln::cache::test
