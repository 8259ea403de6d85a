#include "compiler/codegen/ProcessStart.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace kiln {
namespace {

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

Status startFailure(const std::string &program, int error) {
  const std::string message = "'" + program + "' cannot be started: " + std::strerror(error);
  if (error == EAGAIN || error == ENOMEM)
    return {StatusCode::OutOfMemory, message, limitsRemedy()};
  return {error == ENOENT || error == EACCES ? StatusCode::NotFound : StatusCode::Internal, message};
}

/// Lower descriptors would be overwritten while the child's are arranged: moves `fd` out of the way.
Status moveUp(Descriptor &fd) {
  if (fd.get() > channelDescriptor)
    return {};
  Descriptor moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, channelDescriptor + 1));
  if (!moved.open())
    return {StatusCode::Internal, std::string("a file descriptor cannot be copied: ") + std::strerror(errno)};
  fd = std::move(moved);
  return {};
}

} // namespace

void Descriptor::close() {
  if (fd >= 0)
    ::close(fd);
  fd = -1;
}

Result<StartedProcess> startProcess(const ProcessSpec &spec) {
  StartedProcess out;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return startFailure(spec.program, errno);
  out.printed = Descriptor(pipe[0]);
  Descriptor childPrinted(pipe[1]), childChannel;
  KILN_TRY(moveUp(childPrinted));
  if (spec.channel) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return startFailure(spec.program, errno);
    out.channel = Descriptor(pair[0]);
    childChannel = Descriptor(pair[1]);
    KILN_TRY(moveUp(childChannel));
    ::fcntl(out.channel.get(), F_SETFL, O_NONBLOCK);
  }
  ::fcntl(out.printed.get(), F_SETFL, O_NONBLOCK);

  SpawnActions actions;
  posix_spawn_file_actions_addopen(&actions.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.files, childPrinted.get(), 1);
  posix_spawn_file_actions_adddup2(&actions.files, childPrinted.get(), 2);
  if (spec.channel)
    posix_spawn_file_actions_adddup2(&actions.files, childChannel.get(), channelDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&actions.files, channelDescriptor + (spec.channel ? 1 : 0));
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
          ::posix_spawnp(&out.process, spec.program.c_str(), &actions.files, &actions.attributes, argv.data(), environ))
    return startFailure(spec.program, error);
  // One that cannot be set is no reason to do without the process; it has no more right than this one.
  if (spec.niceness > ::getpriority(PRIO_PROCESS, 0))
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(out.process), spec.niceness);
  return out;
}

Clock::time_point deadlineAfter(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)));
}

int millisecondsLeft(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left + 1, 0, 1 << 30));
}

bool readPiece(Descriptor &printed, std::string &output, std::size_t most) {
  if (!printed.open())
    return false;
  char buffer[1 << 14];
  const ssize_t n = ::read(printed.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0) {
    printed.close();
    return false;
  }
  output.append(buffer, static_cast<std::size_t>(n));
  if (output.size() > 2 * most)
    output.erase(0, output.size() - most);
  return true;
}

void setEnd(ProcessEnd &end, int status) {
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else if (WIFEXITED(status))
    end.exitStatus = WEXITSTATUS(status);
}

bool sendToStarter(std::string_view text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(channelDescriptor, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

} // namespace kiln
