#include "Workers.h"

#include "compiler/codegen/Process.h"
#include "support/Text.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Message {
  std::uint64_t task;
  std::uint32_t begins, result;
};

void send(int pipe, const Message &message) {
  if (::write(pipe, &message, sizeof message) != sizeof message)
    ::_exit(3);
}

void onCrash(int signal) {
  void *frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), 2);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// One worker's work, on a thread with a stack of the size that contained compiles have.
struct Work {
  std::uint64_t next, end, step, most;
  int pipe;
  const std::function<unsigned(std::uint64_t)> *task;

  void run() {
    for (std::uint64_t n = 0; next < end && n < most; next += step, ++n) {
      send(pipe, {next, 1, 0});
      send(pipe, {next, 0, (*task)(next)});
    }
  }
};

[[noreturn]] void workerMain(Work work, int standardError, const WorkerOptions &options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(standardError, 2);
  const rlimit space{options.addressSpaceBytes, options.addressSpaceBytes}, noCore{0, 0};
  ::setrlimit(RLIMIT_AS, &space);
  ::setrlimit(RLIMIT_CORE, &noCore);
  void *warm[1];
  ::backtrace(warm, 1); // loads what it needs
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, options.stackBytes);
  pthread_t thread;
  auto body = [](void *argument) -> void * {
    stack_t stack = {};
    stack.ss_size = 256 << 10;
    stack.ss_sp = std::malloc(stack.ss_size);
    ::sigaltstack(&stack, nullptr);
    for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
      struct sigaction action = {};
      action.sa_handler = onCrash;
      action.sa_flags = SA_ONSTACK | SA_NODEFER;
      ::sigaction(signal, &action, nullptr);
    }
    static_cast<Work *>(argument)->run();
    return nullptr;
  };
  if (::pthread_create(&thread, &attributes, body, &work) != 0)
    ::_exit(4);
  ::pthread_join(thread, nullptr);
  ::_exit(0);
}

class Pool {
public:
  Pool(std::uint64_t first, std::uint64_t count, unsigned results, const std::function<unsigned(std::uint64_t)> &task,
       const WorkerOptions &options)
      : first(first), end(first + count), task(task), options(options), workers(options.workers) {
    out.counts.resize(results);
    out.results.resize(count, lostResult);
    for (unsigned w = 0; w < options.workers; ++w)
      workers[w].next = first + w;
  }

  WorkerRun run() {
    for (Worker &w : workers)
      start(w);
    while (alive())
      turn();
    return std::move(out);
  }

private:
  struct Worker {
    std::uint64_t next = 0; ///< the first task that is not done
    pid_t process = 0;
    int pipe = -1, errors = -1;
    bool busy = false;
    Clock::time_point since;
    double processorSince = 0;

    /// Seconds of processor time that the process has used; 0 once it is gone.
    double processor() const {
      clockid_t clock;
      timespec time{};
      if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
        return 0;
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
  };

  bool alive() const {
    for (const Worker &w : workers)
      if (w.process)
        return true;
    return false;
  }

  void start(Worker &w) {
    if (w.next >= end || out.lost.size() >= options.maxLost)
      return;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      std::abort();
    w.errors = ::memfd_create("stderr", MFD_CLOEXEC);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      workerMain({w.next, end, options.workers, options.tasksAWorker, ends[1], &task}, w.errors, options);
    }
    ::close(ends[1]);
    w.process = child;
    w.pipe = ends[0];
    w.busy = false;
    w.since = Clock::now();
  }

  void turn() {
    std::vector<pollfd> waiting;
    for (const Worker &w : workers)
      waiting.push_back({w.process ? w.pipe : -1, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), 500);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Worker &w = workers[i];
      if (!w.process)
        continue;
      if (waiting[i].revents)
        read(w);
      else if (w.busy && w.processor() - w.processorSince > options.deadlineSeconds)
        ended(w, format("no end within %g s of processor time", options.deadlineSeconds));
      else if (w.busy && seconds(w.since) > options.wallDeadlineSeconds)
        ended(w, format("no end within %g s", options.wallDeadlineSeconds));
    }
  }

  static double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

  void read(Worker &w) {
    Message message;
    const ssize_t n = ::read(w.pipe, &message, sizeof message);
    if (n < 0 && errno == EINTR)
      return;
    if (n != sizeof message)
      return ended(w, {});
    if (message.begins) {
      w.busy = true;
      w.since = Clock::now();
      w.processorSince = w.processor();
      return;
    }
    w.busy = false;
    w.next = message.task + options.workers;
    ++out.done;
    ++out.counts.at(message.result);
    out.results.at(message.task - first) = static_cast<unsigned char>(message.result);
    if (const double took = w.processor() - w.processorSince; took > out.slowestSeconds) {
      out.slowestSeconds = took;
      out.slowest = message.task;
    }
  }

  void ended(Worker &w, std::string why) {
    ::kill(w.process, SIGKILL);
    int status = 0;
    ::waitpid(w.process, &status, 0);
    if (why.empty() && WIFSIGNALED(status))
      why = signalName(WTERMSIG(status));
    else if (why.empty() && WEXITSTATUS(status) != 0)
      why = format("it ended with status %d", WEXITSTATUS(status));
    if (why.empty() && w.busy)
      why = "it ended without a word";
    if (!why.empty()) {
      Lost lost{w.next, why, {}};
      char text[16384];
      const off_t size = ::lseek(w.errors, 0, SEEK_END);
      const ssize_t n = ::pread(w.errors, text, sizeof text, std::max<off_t>(0, size - off_t(sizeof text)));
      lost.said.assign(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      out.lost.push_back(std::move(lost));
      w.next += options.workers;
    }
    ::close(w.pipe);
    ::close(w.errors);
    w.process = 0;
    start(w);
  }

  const std::uint64_t first, end;
  const std::function<unsigned(std::uint64_t)> &task;
  const WorkerOptions options;
  std::vector<Worker> workers;
  WorkerRun out;
};

} // namespace

WorkerRun runTasks(std::uint64_t first, std::uint64_t count, unsigned results,
                   const std::function<unsigned(std::uint64_t)> &task, const WorkerOptions &options) {
  return Pool(first, count, results, task, options).run();
}

} // namespace kiln::test
