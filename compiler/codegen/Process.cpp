#include "compiler/codegen/Process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    close();
    fd = std::exchange(other.fd, -1);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }
  int get() const { return fd; }
  bool open() const { return fd >= 0; }

private:
  int fd = -1;
};

class SpawnActions {
public:
  SpawnActions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnActions(const SpawnActions &) = delete;
  SpawnActions &operator=(const SpawnActions &) = delete;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

int millisecondsLeft(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left + 1, 0, 1 << 30));
}

Status startFailure(const std::string &program, int error) {
  const std::string message = "'" + program + "' cannot be started: " + std::strerror(error);
  if (error == EAGAIN || error == ENOMEM)
    return {StatusCode::OutOfMemory, message, limitsRemedy()};
  return {error == ENOENT || error == EACCES ? StatusCode::NotFound : StatusCode::Internal, message};
}

/// Descriptors below 4 would be overwritten while the child's are arranged: moves `fd` out of the way.
Status moveUp(Descriptor &fd) {
  if (fd.get() >= 4)
    return {};
  Descriptor moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 4));
  if (!moved.open())
    return {StatusCode::Internal, std::string("a file descriptor cannot be copied: ") + std::strerror(errno)};
  fd = std::move(moved);
  return {};
}

class Run {
public:
  explicit Run(const ProcessSpec &spec)
      : spec(spec), deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                                std::clamp(spec.deadlineSeconds, 0.0, 1e6)))) {}

  Status start();
  void exchange();
  void wait();
  ProcessEnd end;

private:
  void send();
  void receive();
  void readOutput();
  void kill() { ::kill(process, SIGKILL); }

  const ProcessSpec &spec;
  const Clock::time_point deadline;
  Descriptor channel, printed;
  std::size_t sent = 0;
  pid_t process = -1;
};

Status Run::start() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return startFailure(spec.program, errno);
  printed = Descriptor(pipe[0]);
  Descriptor childPrinted(pipe[1]), childChannel;
  KILN_TRY(moveUp(childPrinted));
  if (spec.channel) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return startFailure(spec.program, errno);
    channel = Descriptor(pair[0]);
    childChannel = Descriptor(pair[1]);
    KILN_TRY(moveUp(childChannel));
    ::fcntl(channel.get(), F_SETFL, O_NONBLOCK);
  }
  ::fcntl(printed.get(), F_SETFL, O_NONBLOCK);

  SpawnActions actions;
  posix_spawn_file_actions_addopen(&actions.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.files, childPrinted.get(), 1);
  posix_spawn_file_actions_adddup2(&actions.files, childPrinted.get(), 2);
  if (spec.channel)
    posix_spawn_file_actions_adddup2(&actions.files, childChannel.get(), 3);
  posix_spawn_file_actions_addclosefrom_np(&actions.files, spec.channel ? 4 : 3);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

  std::vector<char *> argv{const_cast<char *>(spec.program.c_str())};
  for (const std::string &argument : spec.arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  if (int error =
          ::posix_spawnp(&process, spec.program.c_str(), &actions.files, &actions.attributes, argv.data(), environ))
    return startFailure(spec.program, error);
  return {};
}

void Run::send() {
  while (sent < spec.request.size()) {
    const ssize_t n = ::send(channel.get(), spec.request.data() + sent, spec.request.size() - sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR)
        return;
      break; // The program is gone: what it said before still counts.
    }
    sent += static_cast<std::size_t>(n);
  }
  sent = spec.request.size();
  ::shutdown(channel.get(), SHUT_WR);
}

void Run::receive() {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::recv(channel.get(), buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0)
      return channel.close();
    if (end.response.size() + static_cast<std::size_t>(n) > spec.maxResponseBytes) {
      end.overflow = true;
      kill();
      return channel.close();
    }
    end.response.append(buffer, static_cast<std::size_t>(n));
  }
}

void Run::readOutput() {
  char buffer[1 << 12];
  for (;;) {
    const ssize_t n = ::read(printed.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0)
      return printed.close();
    end.output.append(buffer, static_cast<std::size_t>(n));
    if (end.output.size() > 2 * spec.maxOutputBytes)
      end.output.erase(0, end.output.size() - spec.maxOutputBytes);
  }
}

void Run::exchange() {
  if (channel.open())
    send();
  while (channel.open() || printed.open()) {
    pollfd waits[2] = {
        {channel.get(), static_cast<short>(POLLIN | (sent < spec.request.size() ? POLLOUT : 0)), 0},
        {printed.get(), POLLIN, 0},
    };
    const int ready = ::poll(waits, 2, millisecondsLeft(deadline));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0) {
      end.timedOut = true;
      kill();
      return;
    }
    if (waits[0].revents & POLLOUT)
      send();
    if (waits[0].revents & (POLLIN | POLLHUP | POLLERR))
      receive();
    if (waits[1].revents)
      readOutput();
  }
}

void Run::wait() {
  int status = 0;
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    // Killed already: the process ends at once.
    const pid_t ended = ::waitpid(process, &status, end.timedOut || end.overflow ? 0 : WNOHANG);
    if (ended == process)
      break;
    if (ended < 0 && errno != EINTR)
      return; // The application waits for all children itself or ignores SIGCHLD: the end stays unknown.
    if (Clock::now() >= deadline && !end.timedOut) {
      end.timedOut = true;
      kill();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10000));
  }
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else if (WIFEXITED(status))
    end.exitStatus = WEXITSTATUS(status);
}

} // namespace

Result<ProcessEnd> runProcess(const ProcessSpec &spec) {
  Run run(spec);
  KILN_TRY(run.start());
  run.exchange();
  run.wait();
  if (run.end.output.size() > spec.maxOutputBytes)
    run.end.output.erase(0, run.end.output.size() - spec.maxOutputBytes);
  return std::move(run.end);
}

std::string limitsRemedy() {
  return "raise the limits on address space (ulimit -v) and on tasks (ulimit -u, the pids limit of a container)";
}

std::string signalName(int signal) {
  const char *name = ::sigabbrev_np(signal);
  const char *meaning = ::sigdescr_np(signal);
  if (!name)
    return "signal " + std::to_string(signal);
  return std::string("SIG") + name + (meaning ? std::string(" (") + meaning + ")" : std::string());
}

} // namespace kiln
