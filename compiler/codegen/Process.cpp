#include "compiler/codegen/Process.h"

#include "compiler/codegen/ProcessStart.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

int millisecondsLeft(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left + 1, 0, 1 << 30));
}

class Run {
public:
  explicit Run(const ProcessSpec &spec)
      : spec(spec), deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                                std::clamp(spec.deadlineSeconds, 0.0, 1e6)))) {}

  Status start() {
    KILN_ASSIGN(StartedProcess started, startProcess(spec));
    process = started.process;
    channel = std::move(started.channel), printed = std::move(started.printed);
    return {};
  }
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
