#include "compiler/codegen/Containment.h"
#include "CodegenHarness.h"
#include "tests/support/TestTier.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

void writeNull() {
  volatile int *nowhere = nullptr;
  *nowhere = 1;
}

int overflowStack(volatile int *deep) {
  if (deep && deep[0] < 0)
    return 0; // never
  volatile int here[1024];
  here[0] = deep ? deep[0] + 1 : 0;
  return overflowStack(here) + here[0];
}

bool contains(const std::string &text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

constexpr std::array crashSignals = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};

/// The handlers as the application has them.
std::array<void *, crashSignals.size()> handlers() {
  std::array<void *, crashSignals.size()> out{};
  for (std::size_t i = 0; i < crashSignals.size(); ++i) {
    struct sigaction action;
    ::sigaction(crashSignals[i], nullptr, &action);
    out[i] = reinterpret_cast<void *>(action.sa_handler);
  }
  return out;
}

/// A compile that stays inside until told to end.
class HeldCompile {
public:
  HeldCompile() : thread([this] { status = runContained([this] { hold(); }); }) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return inside; });
  }
  Status finish() {
    {
      std::lock_guard lock(mutex);
      leave = true;
    }
    changed.notify_all();
    thread.join();
    return status;
  }

private:
  void hold() {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [this] { return leave; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false, leave = false;
  Status status;
  std::thread thread;
};

} // namespace

TEST(Containment, WhatReturnsIsOk) {
  int value = 0;
  EXPECT_TRUE(runContained([&] { value = 7; }).ok());
  EXPECT_EQ(value, 7);
}

TEST(Containment, CrashesComeBackAsAStatusAgainAndAgain) {
  const auto before = handlers();
  for (int i = 0; i < pick(20, 1000); ++i) {
    Status fatal = runContained([] { llvm::report_fatal_error("reason 42"); });
    EXPECT_EQ(fatal.code(), StatusCode::Internal);
    EXPECT_TRUE(contains(fatal.message(), "reason 42")) << fatal.toString();
    Status null = runContained(writeNull);
    EXPECT_TRUE(contains(null.message(), "SIGSEGV")) << null.toString();
    Status aborted = runContained([] { std::abort(); });
    EXPECT_TRUE(contains(aborted.message(), "SIGABRT")) << aborted.toString();
    EXPECT_EQ(handlers(), before);
  }
  EXPECT_TRUE(processIsSuspect());
}

TEST(Containment, StackOverflow) {
  ContainmentOptions small;
  small.stackBytes = 1 << 20;
  for (int i = 0; i < pick(20, 1000); ++i) {
    Status status = runContained([] { overflowStack(nullptr); }, small);
    EXPECT_TRUE(contains(status.message(), "SIGSEGV")) << status.toString();
  }
}

TEST(Containment, TheStackIsAsLargeAsAskedFor) {
  Status status = runContained([] {
    volatile char large[48 << 20];
    for (std::size_t i = 0; i < sizeof large; i += 4096)
      large[i] = 1;
  });
  EXPECT_TRUE(status.ok()) << status.toString();
}

// LLVM's own function for this ends the process.
TEST(ContainmentDeathTest, WithoutAThreadTheCallerLivesAndIsTold) {
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) // they reserve terabytes
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto before = handlers();
        unsigned long pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = pages * 4096 + (std::size_t(16) << 20); // less than a stack
        ::setrlimit(RLIMIT_AS, &limit);
        bool ran = false;
        const Status status = runContained([&] { ran = true; });
        const bool told = status.code() == StatusCode::OutOfMemory && contains(status.message(), "64 MiB") &&
                          contains(status.remedy(), "ulimit -v");
        // Small stacks still fit; nothing is suspect; the handlers are the application's.
        ContainmentOptions small;
        small.stackBytes = 1 << 20;
        const bool later = runContained([&] { ran = true; }, small).ok() && ran;
        std::fprintf(stderr, "%s", status.toString().c_str());
        ::_exit(told && later && !processIsSuspect() && handlers() == before ? 0 : 1);
      },
      testing::ExitedWithCode(0), "there is no thread to compile on");
#endif
}

TEST(Containment, SuspectProcessesUseAChild) {
  EXPECT_FALSE(runContained(writeNull).ok());
  EXPECT_TRUE(processIsSuspect());
  EXPECT_EQ(effectiveIsolation(Isolation::Thread), Isolation::Child);
  EXPECT_EQ(effectiveIsolation(Isolation::None), Isolation::None);
  EXPECT_EQ(effectiveIsolation(Isolation::Child), Isolation::Child);
}

TEST(Containment, IsolationNames) {
  EXPECT_EQ(*parseIsolation("thread"), Isolation::Thread);
  EXPECT_EQ(*parseIsolation("none"), Isolation::None);
  EXPECT_EQ(*parseIsolation("child"), Isolation::Child);
  EXPECT_FALSE(parseIsolation("").ok());
  EXPECT_FALSE(parseIsolation("Thread").ok());
}

// Without a handler LLVM calls exit(1) here.
TEST(Containment, LlvmErrorsOfACompileAreDiagnostics) {
  for (int i = 0; i < pick(20, 1000); ++i) {
    Emitted made = emit(
        kernelWith("llvm.inline_asm has_side_effects asm_dialect = att \"mov $0, 1;\", \"=x\" : () -> i32"), "sm_80");
    EXPECT_TRUE(made.contained.ok()) << made.contained.toString();
    EXPECT_FALSE(made.ok);
    EXPECT_FALSE(made.diagnostics.empty());
  }
}

TEST(Containment, ACompileOnAnotherThreadFinishesWhileOneCrashes) {
  const std::string text = sample("mirror.mlir");
  const std::string expected = emit(text, "sm_80").ptx;
  ASSERT_FALSE(expected.empty());
  std::atomic<bool> stop = false;
  std::atomic<int> good = 0, bad = 0;
  std::thread compiles([&] {
    do
      (emit(text, "sm_80").ptx == expected ? good : bad)++;
    while (!stop);
  });
  for (int i = 0; i < pick(20, 1000); ++i) {
    EXPECT_FALSE(runContained(writeNull).ok());
    EXPECT_FALSE(runContained([] { llvm::report_fatal_error("again"); }).ok());
    EXPECT_FALSE(runContained([] { std::abort(); }).ok());
  }
  stop = true;
  compiles.join();
  EXPECT_GT(good, 0);
  EXPECT_EQ(bad, 0);
}

TEST(Containment, ManyThreadsCrashAtOnce) {
  const auto before = handlers();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < pick(10, 200); ++i) {
        const std::string reason = "thread " + std::to_string(t) + " turn " + std::to_string(i);
        Status status =
            (i + t) % 2 ? runContained([&] { llvm::report_fatal_error(reason.c_str()); }) : runContained(writeNull);
        wrong += !contains(status.message(), (i + t) % 2 ? reason : std::string("SIGSEGV"));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(handlers(), before);
}

namespace {
sigjmp_buf applicationJump;
std::atomic<void *> faultAddress;
void applicationHandler(int, siginfo_t *info, void *) {
  faultAddress = info->si_addr;
  ::siglongjmp(applicationJump, 1);
}
} // namespace

// A garbage collector or an interpreter may live on its faults; they must reach it while a compile runs elsewhere.
TEST(Containment, FaultsOfOtherThreadsReachTheApplicationsHandler) {
  void *page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  struct sigaction mine = {}, before;
  mine.sa_sigaction = applicationHandler;
  mine.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &mine, &before);
  HeldCompile compile;
  for (int i = 0; i < 3; ++i) {
    faultAddress = nullptr;
    if (sigsetjmp(applicationJump, 1) == 0) {
      *static_cast<volatile char *>(page) = 1;
      ADD_FAILURE() << "the write should have faulted";
    }
    EXPECT_EQ(faultAddress, page);
  }
  Status contained = runContained(writeNull); // and compiles are still contained
  EXPECT_TRUE(contains(contained.message(), "SIGSEGV"));
  EXPECT_TRUE(compile.finish().ok());
  struct sigaction after;
  ::sigaction(SIGSEGV, &before, &after);
  EXPECT_EQ(after.sa_sigaction, applicationHandler) << "the application's handler is back";
  EXPECT_TRUE(after.sa_flags & SA_SIGINFO);
  ::munmap(page, 4096);
}

TEST(Containment, AHandlerSetDuringACompileIsKept) {
  struct sigaction before;
  ::sigaction(SIGFPE, nullptr, &before);
  HeldCompile compile;
  struct sigaction mine = {};
  mine.sa_sigaction = applicationHandler;
  mine.sa_flags = SA_SIGINFO;
  ::sigaction(SIGFPE, &mine, nullptr);
  EXPECT_TRUE(compile.finish().ok());
  struct sigaction after;
  ::sigaction(SIGFPE, &before, &after);
  EXPECT_EQ(after.sa_sigaction, applicationHandler);
}

// A crash of the application's own still ends it, with the signal that it was.
TEST(ContainmentDeathTest, CrashesOfOtherThreadsAreNotSwallowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        HeldCompile compile;
        writeNull();
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(
      {
        HeldCompile compile;
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}
