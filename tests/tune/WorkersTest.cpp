// What becomes of configurations that workers elsewhere measure, whatever the workers do.
#include "runtime/tune/remote/Workers.h"

#include <gtest/gtest.h>

#include <deque>

namespace kiln::tune {
namespace {

using End = Delivery::End;

/// Gives what the test says, one delivery after the other.
class Scripted : public Carrier {
public:
  std::deque<std::function<Result<Delivery>(const Work &work)>> script;
  std::vector<std::string> asked, left; ///< names of `to`; who was left out
  Status none;                          ///< what leaving one out gives
  bool knows = true;                    ///< who is lost

  std::optional<unsigned> workers() const override { return 1; }
  Result<Delivery> deliver(const std::string &request, const std::string &to, const Patience &) override {
    asked.push_back(to);
    if (script.empty())
      return Status(StatusCode::IoError, "the script is over");
    const auto next = script.front();
    script.pop_front();
    const Result<Work> work = readRequest(request);
    EXPECT_TRUE(work.ok()) << work.status().toString();
    return next(*work);
  }
  bool knowsWhoIsLost() const override { return knows; }
  void beginCall() override {}
  Status leaveOut(const std::string &worker, const std::string &) override {
    left.push_back(worker);
    return none;
  }

  void answer(const std::string &worker, double milliseconds) {
    script.emplace_back([=](const Work &work) {
      Entry e;
      e.configuration = work.configuration;
      e.outcome = Outcome::Good;
      e.milliseconds = milliseconds;
      return Result<Delivery>(Delivery{End::Answered, worker, answerText(e)});
    });
  }
  void end(End how, const std::string &worker, const std::string &text = {}) {
    script.emplace_back([=](const Work &) { return Result<Delivery>(Delivery{how, worker, text}); });
  }
};

class WorkersTest : public testing::Test {
protected:
  const Space space = *Space::create({{"tile", {"64", "128"}}, {"fast", {"true"}}});
  Scripted carrier;
  std::vector<std::string> said;
  Workers workers{carrier, {{"name", "matmul"}}, space, {}, [this](const std::string &line) { said.push_back(line); }};
};

TEST_F(WorkersTest, AnAnswerIsAnEntry) {
  carrier.answer("a", 2.5);
  const Result<Entry> e = workers.measure(space.at(1));
  ASSERT_TRUE(e.ok()) << e.status().toString();
  EXPECT_TRUE(e->good());
  EXPECT_EQ(e->key(), "tile=128, fast=true");
  EXPECT_EQ(e->milliseconds, 2.5);
  EXPECT_TRUE(said.empty());
}

TEST_F(WorkersTest, AnotherOneMeasuresWhatALostOneDidNot) {
  carrier.end(End::Lost, "a");
  carrier.end(End::NotBegun, "");
  carrier.end(End::Lost, "b");
  carrier.answer("c", 1);
  const Result<Entry> e = workers.measure(space.at(0));
  ASSERT_TRUE(e.ok()) << e.status().toString();
  EXPECT_TRUE(e->good());
  EXPECT_EQ(said, (std::vector<std::string>{"worker a was lost while it measured tile=64, fast=true",
                                            "worker b was lost while it measured tile=64, fast=true"}));
}

/// Otherwise one that brings its whole worker down would take all of them, one after the other.
TEST_F(WorkersTest, WhatLosesItsWorkersIsAFailureOfItsOwn) {
  for (const char *name : {"a", "b", "c", "d"})
    carrier.end(End::Lost, name);
  const Result<Entry> e = workers.measure(space.at(0));
  ASSERT_TRUE(e.ok()) << e.status().toString();
  EXPECT_EQ(e->outcome, Outcome::Crashed);
  EXPECT_EQ(e->message, "3 workers were lost while they measured it: a, b, c");
  EXPECT_EQ(e->key(), "tile=64, fast=true");
  EXPECT_EQ(carrier.script.size(), 1u);
}

/// A server that was restarted, or lies, leaves nothing in a journal.
TEST_F(WorkersTest, LossesThatAreSupposedEndTheSweep) {
  carrier.knows = false;
  for (const char *name : {"a", "b", "c", "d"})
    carrier.end(End::Lost, name);
  const Result<Entry> e = workers.measure(space.at(0));
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.status().code(), StatusCode::IoError);
  EXPECT_EQ(e.status().message(), "3 workers were lost while they measured tile=64, fast=true, or the queue's server "
                                  "lost their leases: a, b, c");
  EXPECT_NE(e.status().remedy().find("--journal"), std::string::npos);
  EXPECT_EQ(carrier.script.size(), 1u);
}

TEST_F(WorkersTest, WhoRefusesIsLeftOutAndSaidOnce) {
  carrier.end(End::Answered, "a", refusalText("another compiler"));
  carrier.end(End::Answered, "a", refusalText("another compiler"));
  carrier.answer("b", 1);
  ASSERT_TRUE(workers.measure(space.at(0)).ok());
  EXPECT_EQ(said, std::vector<std::string>{"worker a takes no part: another compiler"});
  EXPECT_EQ(carrier.left, (std::vector<std::string>{"a", "a"}));
  carrier.end(End::Answered, "b", refusalText("no memory"));
  carrier.none = Status(StatusCode::DeviceError, "no rank is left");
  EXPECT_EQ(workers.measure(space.at(0)).status().message(), "no rank is left");
}

TEST_F(WorkersTest, TheBestAreMeasuredByOneWorkerWhileItIsThere) {
  for (const char *name : {"a", "a", "b"}) {
    if (*name == 'b')
      carrier.end(End::NotBegun, "");
    carrier.answer(name, 1);
  }
  for (unsigned i = 0; i < 3; ++i)
    ASSERT_TRUE(workers.measureOnOne(space.at(0)).ok());
  EXPECT_EQ(carrier.asked, (std::vector<std::string>{"", "a", "a", ""}));
  carrier.answer("c", 1);
  ASSERT_TRUE(workers.measureOnOne(space.at(0)).ok());
  EXPECT_EQ(carrier.asked.back(), "b");
  const std::string part = " measures the best from now on in place of ", end = ": their times may be of two devices";
  EXPECT_EQ(said, (std::vector<std::string>{"worker b" + part + "a" + end, "worker c" + part + "b" + end}));
}

TEST_F(WorkersTest, AnswersThatAreNoneEndTheSweep) {
  Entry other;
  other.configuration = {{"tile", "128"}, {"fast", "true"}};
  for (const auto &[text, part] : {std::pair<std::string, const char *>("", "it is no JSON object"),
                                   {"[]", "it is no JSON object"},
                                   {"{\"entry\":7}", "it is no JSON object"},
                                   {"{\"entry\":{\"configuration\":{}}}", "it has no configuration"},
                                   {"{\"entry\":{\"configuration\":{\"tile\":64,\"fast\":true},\"outcome\":\"good\"}}",
                                    "a good configuration has no time"},
                                   {answerText(other), "it is one to tile=128, fast=true"}}) {
    carrier.end(End::Answered, "a", text);
    const Status s = workers.measure(space.at(0)).takeStatus();
    EXPECT_NE(s.message().find(part), std::string::npos) << text << ": " << s.toString();
    EXPECT_FALSE(s.remedy().empty());
  }
}

TEST(WorkersRequestTest, RequestsThatAreNoneAreRefused) {
  for (const char *text : {"", "7", "{}", "{\"call\":{}}", "{\"call\":7,\"configuration\":{}}",
                           "{\"call\":{},\"configuration\":[]}", "{\"call\":{},\"configuration\":{\"a\":1}}"})
    EXPECT_FALSE(readRequest(text).ok()) << text;
  EXPECT_TRUE(readRequest("{\"call\":{},\"configuration\":{\"a\":\"1\"}}").ok());
}

} // namespace
} // namespace kiln::tune
