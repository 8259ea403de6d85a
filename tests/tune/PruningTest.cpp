#include "runtime/tune/Pruning.h"

#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

Target hopper() {
  return **findTarget("sm_90a");
}

Rule ruleOf(const std::optional<Rejection> &r) {
  EXPECT_TRUE(r.has_value());
  return r ? r->rule : Rule::Rank;
}

TEST(PruningTest, WhatAProgramNeedsAtTheLimits) {
  const Target t = hopper();
  ProgramNeeds n;
  n.warps = 8, n.registers = 255, n.sharedBytes = t.sharedOptIn;
  EXPECT_FALSE(judge(n, t));
  n.sharedBytes += 1;
  EXPECT_EQ(ruleOf(judge(n, t)), Rule::SharedMemory);
  n.sharedBytes = 0, n.registers = 256;
  EXPECT_EQ(ruleOf(judge(n, t)), Rule::Registers);
  n.warps = 16, n.registers = 128; // 65,536 registers of a multiprocessor
  EXPECT_FALSE(judge(n, t));
  n.registers = 129;
  EXPECT_EQ(ruleOf(judge(n, t)), Rule::Registers);
  n.warps = 33;
  EXPECT_EQ(ruleOf(judge(n, t)), Rule::Threads);
}

TEST(PruningTest, WhatCodeHas) {
  const Target t = hopper();
  EXPECT_FALSE(judge(CodeReport{256, 255, 200000, 0}, t, 0));
  EXPECT_EQ(ruleOf(judge(CodeReport{256, 255, 200000, 4}, t, 0)), Rule::Spills);
  EXPECT_FALSE(judge(CodeReport{256, 255, 200000, 4}, t, 4));
  EXPECT_EQ(ruleOf(judge(CodeReport{256, 255, 200000, 5}, t, 4)), Rule::Spills);
  EXPECT_EQ(ruleOf(judge(CodeReport{1024, 128, 0, 0}, t, 0)), Rule::Occupancy);
}

struct Case {
  Space space = *Space::create({{"n", {"0", "1", "2", "3", "4", "5", "6", "7"}}});
  /// 0 and 1 are rejected; the estimate of n is 10 - n, 5 has none.
  Pruned pruned = *prune(space, [](const Configuration &c) -> Result<std::variant<Rejection, std::optional<double>>> {
    const int n = std::stoi(c[0]);
    if (n < 2)
      return std::variant<Rejection, std::optional<double>>(Rejection{Rule::Kernel, "too small"});
    return std::variant<Rejection, std::optional<double>>(n == 5 ? std::nullopt : std::optional<double>(10 - n));
  });
};

TEST(PruningTest, CountsAddUpToTheSpace) {
  Case c;
  EXPECT_EQ(c.pruned.kept.size(), 6u);
  EXPECT_EQ(c.pruned.rejected[static_cast<unsigned>(Rule::Kernel)], 2u);
  EXPECT_EQ(c.pruned.example[static_cast<unsigned>(Rule::Kernel)], "n=0: too small");
  keepBest(c.pruned, c.space, 6);
  EXPECT_EQ(c.pruned.kept.size(), 6u);
  keepBest(c.pruned, c.space, 3);
  std::size_t all = c.pruned.kept.size();
  for (const std::size_t n : c.pruned.rejected)
    all += n;
  EXPECT_EQ(all, c.space.size());
}

TEST(PruningTest, TheModelsBestAreKept) {
  Case c;
  keepBest(c.pruned, c.space, 5);
  std::vector<std::size_t> numbers;
  for (const Candidate &k : c.pruned.kept)
    numbers.push_back(k.number);
  EXPECT_EQ(numbers, (std::vector<std::size_t>{2, 3, 4, 6, 7})); // 5, which has no estimate, goes first
  keepBest(c.pruned, c.space, 1);
  EXPECT_EQ(c.pruned.kept[0].number, 7u);
}

TEST(PruningTest, TheDefaultIsKept) {
  Case c;
  c.pruned.kept[0].isDefault = true; // 2, whose estimate is the worst
  keepBest(c.pruned, c.space, 1);
  ASSERT_EQ(c.pruned.kept.size(), 1u);
  EXPECT_EQ(c.pruned.kept[0].number, 2u);
}

TEST(PruningTest, WithoutAnOrderNoneIsDropped) {
  Case c;
  for (Candidate &k : c.pruned.kept)
    k.estimate.reset();
  keepBest(c.pruned, c.space, 2);
  EXPECT_EQ(c.pruned.kept.size(), 6u);
}

TEST(PruningTest, NothingLeftNamesTheRules) {
  Case c;
  const std::string text = nothingLeft(c.pruned).toString();
  EXPECT_NE(text.find("kernel rejects 2 (n=0: too small)"), std::string::npos) << text;
}

} // namespace
} // namespace kiln::tune
