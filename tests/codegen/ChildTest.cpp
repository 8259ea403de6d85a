#include "compiler/codegen/Child.h"
#include "tests/support/TestTier.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

ChildOptions childOptions(double deadline = 20) {
  ChildOptions options;
  options.program = KILN_BINARY_DIR "/tests/kiln-codegen-test-child";
  options.deadlineSeconds = deadline;
  return options;
}

Status failure(std::string_view request, double deadline = 20) {
  Result<std::string> answer = runInChild(request, childOptions(deadline));
  EXPECT_FALSE(answer.ok()) << request << " -> " << (answer.ok() ? *answer : "");
  return answer.status();
}

bool contains(const std::string &text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

} // namespace

TEST(Child, AnswersOfAnySizeComeBack) {
  for (std::size_t size : {std::size_t(0), std::size_t(1), std::size_t(70000), std::size_t(5) << 20}) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i)
      text[i] = static_cast<char>(i * 7 + i / 251);
    Result<std::string> answer = runInChild("echo " + text, childOptions());
    ASSERT_TRUE(answer.ok()) << answer.status().toString();
    EXPECT_TRUE(*answer == text) << size;
  }
}

TEST(Child, StandardOutputDoesNotDisturbTheAnswer) {
  Result<std::string> answer = runInChild("noise", childOptions());
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(*answer, "still understood");
}

TEST(Child, CrashesAreReportedWithTheSignal) {
  for (int i = 0; i < pick(5, 250); ++i) {
    EXPECT_TRUE(contains(failure("null").message(), "SIGSEGV"));
    EXPECT_TRUE(contains(failure("abort").message(), "SIGABRT"));
    EXPECT_TRUE(contains(failure("overflow").message(), "SIGSEGV"));
    Status fatal = failure("fatal");
    EXPECT_TRUE(contains(fatal.message(), "the test asked for it")) << fatal.toString();
    EXPECT_EQ(fatal.code(), StatusCode::Internal);
  }
}

TEST(Child, AnLlvmErrorThatEndsTheProcessIsReportedWithItsText) {
  Status status = failure("llvm-error");
  EXPECT_TRUE(contains(status.message(), "status 1")) << status.toString();
  EXPECT_TRUE(contains(status.message(), "an error without a handler")) << status.toString();
}

TEST(Child, SilentEndIsAFailure) {
  Status status = failure("exit");
  EXPECT_TRUE(contains(status.message(), "status 0 and no answer")) << status.toString();
}

TEST(Child, EndlessLoopIsStoppedAtTheDeadlineWhileAnotherAnswers) {
  for (const char *request : {"loop", "sleep", "close"}) {
    std::string other;
    std::thread thread([&] {
      if (Result<std::string> answer = runInChild("echo meanwhile", childOptions()); answer.ok())
        other = *answer;
    });
    const auto start = std::chrono::steady_clock::now();
    Status status = failure(request, 0.4);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    thread.join();
    EXPECT_EQ(status.code(), StatusCode::CompileError);
    EXPECT_TRUE(contains(status.message(), "0.4 s")) << status.toString();
    EXPECT_GE(seconds, 0.39);
    EXPECT_LT(seconds, 10) << "a loaded machine needs a little longer, not this";
    EXPECT_EQ(other, "meanwhile");
  }
}

TEST(Child, TooLargeAnAnswerIsRefused) {
  ChildOptions options = childOptions();
  options.maxResponseBytes = 1000;
  Result<std::string> answer = runInChild("echo " + std::string(5000, 'x'), options);
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(contains(answer.status().message(), "more than 1000 bytes")) << answer.status().toString();
}

TEST(Child, MissingAndForeignPrograms) {
  ChildOptions options = childOptions();
  options.program = "/no/such/program";
  Result<std::string> answer = runInChild("echo x", options);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), StatusCode::NotFound);
  EXPECT_TRUE(contains(answer.status().message(), "/no/such/program"));
  options.program = "/bin/echo"; // prints its arguments and answers nothing
  options.arguments = {"hello"};
  answer = runInChild("echo x", options);
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(contains(answer.status().message(), "no answer")) << answer.status().toString();
  EXPECT_TRUE(contains(answer.status().message(), "hello")) << answer.status().toString();
}

TEST(Child, StartsWithDefaultSignals) {
  sigset_t block, before;
  sigemptyset(&block);
  sigaddset(&block, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  auto old = ::signal(SIGUSR1, SIG_IGN);
  Result<std::string> answer = runInChild("mask", childOptions());
  ::signal(SIGUSR1, old);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(*answer, "open default");
}

// An application that lets the kernel reap its children hides how they ended; the answer still counts.
TEST(Child, WorksWhereTheApplicationIgnoresItsChildren) {
  auto old = ::signal(SIGCHLD, SIG_IGN);
  Result<std::string> good = runInChild("echo fine", childOptions()), bad = runInChild("abort", childOptions());
  ::signal(SIGCHLD, old);
  ASSERT_TRUE(good.ok()) << good.status().toString();
  EXPECT_EQ(*good, "fine");
  EXPECT_FALSE(bad.ok());
}

TEST(Child, LeavesNoProcessAndNoDescriptor) {
  auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  for (const char *request : {"echo x", "null", "exit"})
    (void)runInChild(request, childOptions()).ok();
  EXPECT_EQ(runInChild("sleep", childOptions(0.1)).ok(), false);
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was not waited for";
}

TEST(Child, EndsWithItsParent) {
  // The helper's parent is a process of its own, killed once the helper loops.
  TemporaryDirectory folder;
  const std::string mark = folder.path() + "/pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    (void)runInChild("mark " + mark, childOptions(60)).ok();
    ::_exit(0);
  }
  auto waitFor = [](auto condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition())
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  pid_t helper = 0;
  const bool started = waitFor([&] { return std::ifstream(mark) >> helper && helper > 0; });
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ASSERT_TRUE(started);
  // Nobody may be there to reap it: a zombie has no executable.
  EXPECT_TRUE(waitFor([&] {
    std::error_code error;
    return ::kill(helper, 0) != 0 ||
           std::filesystem::read_symlink("/proc/" + std::to_string(helper) + "/exe", error).empty();
  })) << "process "
      << helper;
}

TEST(Child, ProgramBesideThisOne) {
  EXPECT_EQ(programBeside(reinterpret_cast<const void *>(&childOptions), "kiln-codegen-test-child"),
            std::filesystem::canonical(KILN_BINARY_DIR "/tests/kiln-codegen-test-child").string());
  EXPECT_EQ(programBeside(reinterpret_cast<const void *>(&childOptions), "no-such-program"), "");
}
