#include "runtime/cache/remote/RedisConnection.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::cache {
namespace {

bool isForGood(std::string_view error) {
  return error.starts_with("ERR unknown command") || error.starts_with("NOPERM") || error.starts_with("WRONGTYPE");
}

} // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t most = 200;
  std::string out(text.substr(0, most));
  for (char &c : out)
    if (c < ' ' || c > '~')
      c = '?';
  return out;
}

Status RedisConnection::failed(const std::string &what) const {
  return {StatusCode::IoError, address.text() + ": " + what};
}

Status RedisConnection::errorOf(std::string_view answer) const {
  return {isForGood(answer) ? StatusCode::Unsupported : StatusCode::IoError,
          address.text() + ": it answered '" + printable(answer) + "'"};
}

void RedisConnection::close() {
  if (socket >= 0)
    ::close(std::exchange(socket, -1));
}

Status RedisConnection::waitFor(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return failed("no answer in time");
    pollfd one{socket, events, 0};
    const int n = ::poll(&one, 1, static_cast<int>(left.count()));
    if (n > 0)
      return {};
    if (n < 0 && errno != EINTR)
      return failed(std::strerror(errno));
  }
}

Status RedisConnection::connectTo(const addrinfo &to, Clock::time_point deadline) {
  close();
  socket = ::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0)
    return failed(std::strerror(errno));
  if (::connect(socket, to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS)
      return failed(std::strerror(errno));
    KILN_TRY(waitFor(POLLOUT, deadline));
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return failed(std::strerror(error ? error : errno));
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // of no use to a Unix socket, and no harm
  return {};
}

Status RedisConnection::connect(Clock::time_point deadline) {
  if (!address.socket.empty()) {
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    if (address.socket.size() >= sizeof path.sun_path)
      return failed("the path of a Unix socket has at most " + std::to_string(sizeof path.sun_path - 1) + " bytes");
    std::memcpy(path.sun_path, address.socket.c_str(), address.socket.size() + 1);
    addrinfo to{};
    to.ai_family = AF_UNIX;
    to.ai_addr = reinterpret_cast<sockaddr *>(&path);
    to.ai_addrlen = sizeof path;
    KILN_TRY(connectTo(to, deadline));
  } else {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0)
      return failed(::gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
    Status status = failed("it has no address");
    for (const addrinfo *one = found; one; one = one->ai_next)
      if (status = connectTo(*one, deadline); status.ok())
        break;
    KILN_TRY(std::move(status));
  }
  if (!address.password.empty()) {
    const auto answer = address.user.empty() ? ask({"AUTH", address.password}, deadline, 1024)
                                             : ask({"AUTH", address.user, address.password}, deadline, 1024);
    KILN_TRY(answer.status());
  }
  if (!address.database.empty())
    KILN_TRY(ask({"SELECT", address.database}, deadline, 1024).status());
  return {};
}

Result<std::optional<std::string>> RedisConnection::command(std::initializer_list<std::string_view> words,
                                                            Clock::time_point deadline, std::size_t mostBytes) {
  // A server may have closed a connection that was idle: then the command has not begun, and is sent again once.
  const bool wasOpen = socket >= 0;
  if (Status s = wasOpen ? Status() : connect(deadline); !s.ok()) {
    close();
    return s;
  }
  Result<std::optional<std::string>> answer = ask(words, deadline, mostBytes);
  if (!answer) {
    close();
    if (wasOpen && Clock::now() < deadline)
      return command(words, deadline, mostBytes);
  }
  return answer;
}

Result<std::optional<std::string>> RedisConnection::ask(std::initializer_list<std::string_view> words,
                                                        Clock::time_point deadline, std::size_t mostBytes) {
  using Out = std::optional<std::string>;
  std::vector<const char *> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  std::size_t length = 0;
  const std::unique_ptr<char, void (*)(char *)> wire(
      library.format(static_cast<int>(texts.size()), texts.data(), sizes.data(), &length), library.release);
  const std::unique_ptr<void, void (*)(void *)> reader(library.makeReader(), library.freeReader);
  if (!wire || !reader)
    return Status(StatusCode::OutOfMemory, "no memory for a message to " + address.text());

  for (std::size_t sent = 0; sent < length;) {
    const ssize_t n = ::send(socket, wire.get() + sent, length - sent, MSG_NOSIGNAL);
    if (n >= 0)
      sent += static_cast<std::size_t>(n);
    else if (errno == EAGAIN)
      KILN_TRY(waitFor(POLLOUT, deadline));
    else if (errno != EINTR)
      return failed(std::strerror(errno));
  }

  constexpr std::size_t pieceBytes = 1 << 16, overhead = 64;
  std::vector<char> piece(pieceBytes);
  std::size_t got = 0;
  for (;;) {
    KILN_TRY(waitFor(POLLIN, deadline));
    const ssize_t n = ::recv(socket, piece.data(), piece.size(), 0);
    if (n == 0)
      return failed("it closed the connection");
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR)
        continue;
      return failed(std::strerror(errno));
    }
    got += static_cast<std::size_t>(n);
    if (got > mostBytes + overhead)
      return failed("its answer is longer than " + std::to_string(mostBytes) + " bytes");
    const KilnRedisReply reply = library.feed(reader.get(), piece.data(), static_cast<std::size_t>(n));
    switch (reply.kind) {
    case KilnRedisReply::Incomplete:
      continue;
    case KilnRedisReply::Text:
    case KilnRedisReply::Number:
      return Out(std::string(reply.text, reply.bytes));
    case KilnRedisReply::Nothing:
      return Out();
    case KilnRedisReply::Error:
      return errorOf(std::string_view(reply.text, reply.bytes));
    case KilnRedisReply::Unexpected:
      break;
    }
    return failed("its answer is none that Redis gives to " + std::string(*words.begin()));
  }
}

} // namespace kiln::cache
