#include "compiler/codegen/Conversation.h"
#include "tests/support/TestTier.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

std::unique_ptr<Conversation> startChild() {
  ProcessSpec spec;
  spec.program = KILN_BINARY_DIR "/tests/kiln-codegen-test-child";
  spec.arguments = {"lines"};
  spec.maxResponseBytes = 1 << 20;
  auto out = Conversation::start(std::move(spec));
  EXPECT_TRUE(out.ok());
  return out ? std::move(*out) : nullptr;
}

} // namespace

TEST(Conversation, OneProgramAnswersManyRequests) {
  const auto talk = startChild();
  const auto first = talk->ask("pid", 20);
  ASSERT_TRUE(first);
  for (std::size_t size : {std::size_t(0), std::size_t(1), std::size_t(70000), std::size_t(900000)})
    EXPECT_EQ(talk->ask("echo " + std::string(size, 'x'), 20), std::string(size, 'x'));
  EXPECT_EQ(talk->ask("noise", 20), "still understood");
  EXPECT_EQ(talk->ask("pid", 20), first);
}

TEST(Conversation, AnEndSaysHow) {
  {
    const auto talk = startChild();
    EXPECT_EQ(talk->ask("null", 20), std::nullopt);
    EXPECT_EQ(talk->end().signal, SIGSEGV);
    EXPECT_EQ(talk->ask("echo x", 20), std::nullopt); // it has ended
  }
  {
    const auto talk = startChild();
    EXPECT_EQ(talk->ask("llvm-error", 20), std::nullopt);
    EXPECT_EQ(talk->end().exitStatus, 1);
    EXPECT_NE(talk->end().output.find("an error without a handler"), std::string::npos) << talk->end().output;
  }
  {
    const auto talk = startChild();
    EXPECT_EQ(talk->ask("echo " + std::string(2 << 20, 'x'), 20), std::nullopt);
    EXPECT_TRUE(talk->end().overflow);
  }
}

TEST(Conversation, TheDeadlineIsOfEachRequest) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char *request : {"loop", "sleep", "close"}) {
    const auto talk = startChild();
    ASSERT_TRUE(talk->ask("echo x", 20));
    EXPECT_EQ(talk->ask(request, 0.2), std::nullopt) << request;
    EXPECT_TRUE(talk->end().timedOut || std::string(request) == "close");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Conversation, AnEndBetweenRequestsIsSeen) {
  const auto talk = startChild();
  const std::string process = *talk->ask("pid", 20);
  EXPECT_FALSE(talk->hasEnded());
  ASSERT_EQ(::kill(std::stoi(process), SIGKILL), 0);
  for (int waited = 0; !talk->hasEnded() && waited < 20000; ++waited)
    ::usleep(1000);
  EXPECT_TRUE(talk->hasEnded());
  EXPECT_EQ(talk->ask("echo x", 20), std::nullopt);
  EXPECT_EQ(talk->end().signal, SIGKILL);
}

/// It may print faster than anyone reads.
TEST(Conversation, WhatPrintsWithoutEndHasADeadline) {
  const auto talk = startChild();
  EXPECT_EQ(talk->ask("print", 0.5), std::nullopt);
  EXPECT_TRUE(talk->end().timedOut);
  EXPECT_NE(talk->end().output.find("on and on"), std::string::npos);
  EXPECT_LE(talk->end().output.size(), 2u * (64 << 10));
}

TEST(Conversation, LeavesNoProgramRunning) {
  std::string process;
  {
    const auto talk = startChild();
    process = *talk->ask("pid", 20);
    ASSERT_TRUE(std::filesystem::exists("/proc/" + process));
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + process));
}

TEST(Conversation, AProgramThatDoesNotExist) {
  ProcessSpec spec;
  spec.program = "/nowhere/at/all";
  EXPECT_EQ(Conversation::start(spec).status().code(), StatusCode::NotFound);
}
