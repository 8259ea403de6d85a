#include "runtime/tune/Progress.h"

#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

SweepState half() {
  SweepState s;
  s.done = 10, s.total = 20, s.seconds = 65;
  s.failures[static_cast<unsigned>(Outcome::Wrong)] = 2;
  Entry best;
  best.outcome = Outcome::Good, best.milliseconds = 0.25, best.configuration = {{"warps", "4"}};
  s.best = s.last = best;
  return s;
}

TEST(ProgressTest, TheBarSaysHowFarItIs) {
  EXPECT_EQ(barText(half(), 200), "[==========          ] 10/20, 1:05 left, best 0.2500 ms (warps=4), 2 wrong");
  EXPECT_EQ(barText(half(), 30).size(), 30u);
  SweepState s = half();
  s.done = 20;
  EXPECT_EQ(barText(s, 29), "[====================] 20/20,");
}

TEST(ProgressTest, LinesOfAPipe) {
  EXPECT_EQ(lineText(half()), "10/20  0.2500 ms  warps=4");
  SweepState s = half();
  s.last->outcome = Outcome::TimedOut, s.last->message = "it took longer than 3 seconds";
  EXPECT_EQ(lineText(s), "10/20  timeout  warps=4: it took longer than 3 seconds");
}

TEST(ProgressTest, APipeGetsNoControlCharacters) {
  std::FILE *const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(file);
    progress.show(half());
  }
  std::rewind(file);
  char text[200] = {};
  ASSERT_GT(std::fread(text, 1, sizeof text - 1, file), 0u);
  std::fclose(file);
  EXPECT_EQ(std::string(text), lineText(half()) + "\n");
}

} // namespace
} // namespace kiln::tune
