#include "runtime/tune/Replay.h"

#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

Entry entry(const std::string &warps, double ms, Outcome outcome = Outcome::Good) {
  Entry e;
  e.configuration = {{"warps", warps}};
  e.outcome = outcome, e.milliseconds = ms, e.estimate = 2 * ms;
  return e;
}

TEST(ReplayTest, AnswersAsTheJournal) {
  JournalContents journal;
  journal.entries = {entry("8", 3), entry("16", 2), entry("4", 1, Outcome::Wrong)};
  const auto replay = Replay::create(journal);
  ASSERT_TRUE(replay.ok());
  EXPECT_EQ(replay->space().parameters()[0].values, (std::vector<std::string>{"4", "8", "16"})); // numbers by size
  EXPECT_EQ(replay->candidates().size(), 3u);
  EXPECT_EQ(replay->candidates()[2].estimate, 4);
  EXPECT_EQ(replay->best().key(), "warps=16"); // not the wrong one, which is faster
  EXPECT_EQ(replay->measure({"8"})->milliseconds, 3);
  EXPECT_EQ(replay->measure({"4"})->outcome, Outcome::Wrong);
}

TEST(ReplayTest, RefusesWhatHasNothingToFind) {
  JournalContents journal;
  EXPECT_FALSE(Replay::create(journal).ok());
  journal.entries = {entry("8", 0, Outcome::Compile)};
  EXPECT_NE(Replay::create(journal).status().toString().find("no good configuration"), std::string::npos);
  journal.entries = {entry("8", 1), entry("4", 1)};
  journal.entries[1].configuration = {{"stages", "4"}};
  EXPECT_NE(Replay::create(journal).status().toString().find("other parameters"), std::string::npos);
}

} // namespace
} // namespace kiln::tune
