#include "compiler/codegen/Conversation.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln {

Result<std::unique_ptr<Conversation>> Conversation::start(ProcessSpec spec) {
  spec.channel = true;
  std::unique_ptr<Conversation> out(new Conversation);
  KILN_ASSIGN(out->started, startProcess(spec));
  out->mostOutput = spec.maxOutputBytes;
  out->mostAnswer = spec.maxResponseBytes;
  return out;
}

Conversation::~Conversation() {
  finish(/*kill=*/true);
}

bool Conversation::hasEnded() const {
  char byte;
  return started.process < 0 || ::recv(started.channel.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// Takes what is left of the program's words, and its end.
void Conversation::finish(bool kill) {
  if (started.process < 0)
    return;
  started.channel.close(); // it may be waiting for a request
  // A program that closed its channel is about to end; one that does not is killed.
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  int status = 0;
  pid_t ended = 0;
  for (bool isKilled = false;;) {
    if (!isKilled && (kill || Clock::now() >= deadline)) {
      ::kill(started.process, SIGKILL);
      isKilled = true;
    }
    ended = ::waitpid(started.process, &status, isKilled ? 0 : WNOHANG);
    if (ended == started.process || (ended < 0 && errno != EINTR))
      break;
    if (started.printed.open()) {
      pollfd wait = {started.printed.get(), POLLIN, 0};
      ::poll(&wait, 1, 10);
      readOutput();
    } else if (!isKilled) {
      ::usleep(1000);
    }
  }
  // What lies in the pipe; whoever else has it open may go on writing.
  for (unsigned pieces = 0; pieces < 1024 && readOutput(); ++pieces) {
  }
  started.printed.close();
  started.process = -1;
  if (ended < 0) // the application waits for all children itself or ignores SIGCHLD: the end stays unknown
    return;
  setEnd(how, status);
}

bool Conversation::readOutput() {
  return readPiece(started.printed, how.output, mostOutput);
}

bool Conversation::waitFor(short events, Clock::time_point deadline) {
  pollfd waits[2] = {{started.channel.get(), events, 0}, {started.printed.get(), POLLIN, 0}};
  const int ready = ::poll(waits, 2, millisecondsLeft(deadline));
  if (ready < 0)
    return errno == EINTR;
  if (waits[1].revents)
    readOutput();
  return ready > 0;
}

std::optional<std::string> Conversation::ask(std::string_view request, double seconds) {
  if (started.process < 0)
    return {};
  how.output.clear();
  const auto deadline = deadlineAfter(seconds);
  std::string line(request);
  line += '\n';
  for (std::size_t sent = 0;;) {
    if (sent < line.size()) {
      const ssize_t n = ::send(started.channel.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
        continue;
      }
      if (errno != EAGAIN && errno != EINTR)
        sent = line.size(); // it is gone: what it said before still counts
    }
    char buffer[1 << 16];
    const ssize_t n = ::recv(started.channel.get(), buffer, sizeof buffer, 0);
    if (n > 0) {
      received.append(buffer, static_cast<std::size_t>(n));
      if (const std::size_t end = received.find('\n'); end != std::string::npos) {
        std::string answer = received.substr(0, end);
        received.erase(0, end + 1);
        return answer;
      }
      if (received.size() > mostAnswer) {
        how.overflow = true;
        finish(/*kill=*/true);
        return {};
      }
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      finish(/*kill=*/false);
      return {};
    }
    if (!waitFor(static_cast<short>(POLLIN | (sent < line.size() ? POLLOUT : 0)), deadline) ||
        Clock::now() >= deadline) {
      how.timedOut = true;
      finish(/*kill=*/true);
      return {};
    }
  }
}

int answerRequests(const std::function<std::pair<std::string, bool>(const std::string &request)> &handler) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // also while a request is worked on
  std::string received;
  char buffer[1 << 12];
  for (;;) {
    const std::size_t end = received.find('\n');
    if (end == std::string::npos) {
      const ssize_t n = ::recv(channelDescriptor, buffer, sizeof buffer, 0);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return n == 0 ? 0 : 2;
      received.append(buffer, static_cast<std::size_t>(n));
      continue;
    }
    const auto [answer, goesOn] = handler(received.substr(0, end));
    received.erase(0, end + 1);
    if (!sendToStarter(answer + '\n') || !goesOn)
      return 0;
  }
}

} // namespace kiln
