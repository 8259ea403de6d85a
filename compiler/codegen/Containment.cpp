#include "compiler/codegen/Containment.h"

#include "compiler/codegen/Process.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <pthread.h>

namespace kiln {
namespace {

/// What the thread of one compile shares with its caller.  Plain memory: it is written while the heap may be broken.
struct Frame {
  std::array<char, 4096> reason{};
};

/// Set on the threads of compiles.  Initial exec: signal handlers read it, and lazy thread storage would allocate
/// there.
[[gnu::tls_model("initial-exec")]] thread_local Frame *currentFrame = nullptr;

/// The signals that llvm::CrashRecoveryContext takes over.
constexpr std::array<int, 6> crashSignals = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
using Actions = std::array<struct sigaction, crashSignals.size()>;

/// Written before the handlers are installed, read by them: they stay valid for a handler that still runs afterwards.
Actions applicationActions, recoveryActions;

void forwardToApplication(int signal, siginfo_t *info, void *context, const struct sigaction &action) {
  if (action.sa_flags & SA_SIGINFO)
    return action.sa_sigaction(signal, info, context);
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
    return action.sa_handler(signal);
  const bool fault = info->si_code > 0; // raised by an instruction, not sent by a process
  if (action.sa_handler == SIG_IGN && !fault)
    return;
  // The default action: a fault happens again on return, a signal that was sent must be sent again.
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  ::sigaction(signal, &fallback, nullptr);
  if (!fault)
    ::raise(signal);
}

void onSignal(int signal, siginfo_t *info, void *context) {
  for (std::size_t i = 0; i < crashSignals.size(); ++i) {
    if (crashSignals[i] != signal)
      continue;
    // LLVM's handler jumps back into runContained; on foreign threads it would drop all containment.
    if (currentFrame && llvm::CrashRecoveryContext::GetCurrent())
      return recoveryActions[i].sa_handler(signal);
    return forwardToApplication(signal, info, context, applicationActions[i]);
  }
}

void onFatalError(void *, const char *reason, bool) {
  if (!currentFrame || !llvm::CrashRecoveryContext::GetCurrent())
    return; // Not a compile of ours: LLVM goes on as it would without a handler.
  std::snprintf(currentFrame->reason.data(), currentFrame->reason.size(), "%s", reason);
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(1);
}

void onBadAlloc(void *, const char *, bool generateCrashDiagnostics) {
  onFatalError(nullptr, "out of memory", generateCrashDiagnostics);
}

/// Handlers while any compile runs.  One object a compile; the first installs, the last restores.
class Handlers {
public:
  Handlers() {
    std::lock_guard guard(lock());
    if (users()++ == 0)
      install();
  }
  ~Handlers() {
    std::lock_guard guard(lock());
    if (--users() == 0)
      restore();
  }
  Handlers(const Handlers &) = delete;
  Handlers &operator=(const Handlers &) = delete;

private:
  static std::mutex &lock() {
    static std::mutex mutex;
    return mutex;
  }
  static unsigned &users() {
    static unsigned count = 0;
    return count;
  }
  static void install() {
    for (std::size_t i = 0; i < crashSignals.size(); ++i)
      ::sigaction(crashSignals[i], nullptr, &applicationActions[i]);
    llvm::CrashRecoveryContext::Enable();
    for (std::size_t i = 0; i < crashSignals.size(); ++i) {
      ::sigaction(crashSignals[i], nullptr, &recoveryActions[i]);
      struct sigaction action = {};
      action.sa_sigaction = onSignal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK; // a stack overflow leaves no other stack
      sigemptyset(&action.sa_mask);
      ::sigaction(crashSignals[i], &action, nullptr);
    }
    llvm::install_fatal_error_handler(onFatalError);
    llvm::install_bad_alloc_error_handler(onBadAlloc);
  }
  static void restore() {
    llvm::remove_bad_alloc_error_handler();
    llvm::remove_fatal_error_handler();
    Actions now;
    for (std::size_t i = 0; i < crashSignals.size(); ++i)
      ::sigaction(crashSignals[i], nullptr, &now[i]);
    llvm::CrashRecoveryContext::Disable();
    for (std::size_t i = 0; i < crashSignals.size(); ++i) {
      // A handler that the application set while a compile ran is the one to keep.
      const bool ours = (now[i].sa_flags & SA_SIGINFO) && now[i].sa_sigaction == onSignal;
      ::sigaction(crashSignals[i], ours ? &applicationActions[i] : &now[i], nullptr);
    }
  }
};

std::atomic<bool> &suspect() {
  static std::atomic<bool> flag = false;
  return flag;
}

/// A signal stack for one thread, freed by the thread that waits for it.
class SignalStack {
public:
  void use() {
    stack_t stack = {};
    stack.ss_sp = bytes.get();
    stack.ss_size = size;
    ::sigaltstack(&stack, nullptr);
  }

private:
  static constexpr std::size_t size = 64 << 10; // a frame with all vector registers is below 8 KiB
  std::unique_ptr<char[]> bytes = std::make_unique<char[]>(size);
};

} // namespace

Result<Isolation> parseIsolation(std::string_view text) {
  if (text == "none")
    return Isolation::None;
  if (text == "thread")
    return Isolation::Thread;
  if (text == "child")
    return Isolation::Child;
  return Status::invalid("unknown isolation '" + std::string(text) + "'", "use none, thread or child");
}

bool processIsSuspect() {
  return suspect().load(std::memory_order_acquire);
}

Isolation effectiveIsolation(Isolation requested) {
  return requested == Isolation::Thread && processIsSuspect() ? Isolation::Child : requested;
}

namespace {

/// One contained run: what its thread is given, and what it leaves.
struct ContainedRun {
  llvm::function_ref<void()> fn;
  Frame frame;
  SignalStack signalStack;
  bool finished = false;
  int exitCode = 0;

  void operator()() {
    signalStack.use();
    llvm::CrashRecoveryContext recovery;
    currentFrame = &frame;
    finished = recovery.RunSafely(fn);
    currentFrame = nullptr;
    exitCode = recovery.RetCode;
  }
};

/// Runs it on a thread of its own and waits; 0, or why there is no such thread.  Not by LLVM's own function, which ends
/// the process if there is none.
int runOnThread(ContainedRun &run, std::size_t stackBytes) {
  pthread_attr_t attributes;
  if (const int error = ::pthread_attr_init(&attributes))
    return error;
  pthread_t thread;
  int error = ::pthread_attr_setstacksize(&attributes, stackBytes);
  if (!error)
    error = ::pthread_create(
        &thread, &attributes,
        [](void *given) -> void * {
          (*static_cast<ContainedRun *>(given))();
          return nullptr;
        },
        &run);
  ::pthread_attr_destroy(&attributes);
  return error ? error : ::pthread_join(thread, nullptr);
}

} // namespace

Status runContained(llvm::function_ref<void()> fn, const ContainmentOptions &options) {
  ContainedRun run{.fn = fn, .frame = {}, .signalStack = {}};
  int error;
  {
    Handlers handlers;
    error = runOnThread(run, options.stackBytes);
  }
  if (error)
    return {StatusCode::OutOfMemory,
            "there is no thread to compile on, with a stack of " + std::to_string(options.stackBytes >> 20) +
                " MiB: " + std::strerror(error),
            limitsRemedy()};
  if (run.finished)
    return {};
  suspect().store(true, std::memory_order_release);
  if (run.frame.reason[0])
    return {StatusCode::Internal, std::string("the compiler gave up: ") + run.frame.reason.data()};
  const int signal = run.exitCode - 128; // as shells count; set by the recovery context
  return {StatusCode::Internal, "the compiler crashed: " + signalName(signal)};
}

} // namespace kiln
