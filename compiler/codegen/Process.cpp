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

class Run {
public:
  explicit Run(const ProcessSpec &spec) : spec(spec), deadline(deadlineAfter(spec.deadlineSeconds)) {}

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
  void kill() {
    const bool isCancelled = spec.cancelled && spec.cancelled->load() && Clock::now() < deadline;
    ::kill(process, isCancelled ? spec.cancelSignal : SIGKILL);
  }
  /// At the deadline, or when somebody cancels.
  bool isOver() const { return Clock::now() >= deadline || (spec.cancelled && spec.cancelled->load()); }
  /// How long to wait for something to happen.
  int patience() const {
    constexpr int look = 50; // for who cancels
    return spec.cancelled ? std::min(look, millisecondsLeft(deadline)) : millisecondsLeft(deadline);
  }

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

void Run::exchange() {
  if (channel.open())
    send();
  while (channel.open() || printed.open()) {
    pollfd waits[2] = {
        {channel.get(), static_cast<short>(POLLIN | (sent < spec.request.size() ? POLLOUT : 0)), 0},
        {printed.get(), POLLIN, 0},
    };
    const int ready = ::poll(waits, 2, patience());
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready < 0 || isOver()) { // it may print without end
      end.timedOut = true;
      kill();
      return;
    }
    if (waits[0].revents & POLLOUT)
      send();
    if (waits[0].revents & (POLLIN | POLLHUP | POLLERR))
      receive();
    if (waits[1].revents)
      readPiece(printed, end.output, spec.maxOutputBytes);
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
    if (isOver() && !end.timedOut) {
      end.timedOut = true;
      kill();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10000));
  }
  setEnd(end, status);
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
