#include "runtime/tune/Confirm.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace kiln::tune {
namespace {

Entry entryOf(int n, double ms) {
  Entry e;
  e.configuration = {{"n", std::to_string(n)}};
  e.outcome = Outcome::Good;
  e.milliseconds = ms;
  return e;
}
/// Sweeps of a device whose clock falls: the later the slower, and noise of 1 %.
class Device {
public:
  explicit Device(unsigned seed, double drift) : random(seed), drift(drift) {}
  /// n takes 1 + n / 50 milliseconds.
  Result<Entry> measure(const Configuration &c) {
    const int n = std::stoi(c[0]);
    order.push_back(n);
    Entry e = entryOf(n, (1 + n / 50.0) * (1 + drift * static_cast<double>(order.size())) * noise(random));
    if (n == broken)
      e.outcome = Outcome::Failed;
    return e;
  }
  std::vector<int> order;
  int broken = -1;

private:
  std::mt19937 random;
  std::normal_distribution<double> noise{1, 0.01};
  const double drift;
};

TEST(ConfirmTest, MeasuresTheBestInTurnThereAndBack) {
  Device device(1, 0);
  const auto r = confirm({entryOf(4, 9), entryOf(2, 5), entryOf(3, 6), entryOf(0, 7)},
                         [&](const Configuration &c, unsigned) { return device.measure(c); }, {.best = 3, .rounds = 3});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(device.order, (std::vector<int>{2, 3, 0, 0, 3, 2, 2, 3, 0}));
  ASSERT_EQ(r->size(), 3u);
  EXPECT_EQ((*r)[0].entry.key(), "n=0"); // the third of the sweep
  EXPECT_EQ((*r)[0].rounds.size(), 3u);
}

TEST(ConfirmTest, TheDefaultIsAmongThemAndStaysIfNothingIsClearlyBetter) {
  Entry usual = entryOf(20, 8); // 1.4 ms
  usual.isDefault = true;
  for (const double noise : {0.0, 0.5}) {
    unsigned turn = 0;
    const auto r =
        confirm({entryOf(1, 5), entryOf(2, 6), usual, entryOf(3, 7)},
                [&](const Configuration &c, unsigned) -> Result<Entry> {
                  return entryOf(std::stoi(c[0]), 1 + std::stoi(c[0]) / 50.0 + (turn++ % 4 == 0 ? noise : 0));
                },
                {.best = 2});
    ASSERT_TRUE(r.ok());
    ASSERT_EQ(r->size(), 3u);
    EXPECT_TRUE(r->back().entry.isDefault || noise > 0);
    EXPECT_EQ(clearlyBest(*r).entry.key(), noise > 0 ? "n=20" : "n=1") << noise;
  }
}

/// The sweep alone prefers what it measured first.
TEST(ConfirmTest, FindsTheFastestUnderADriftOfTheClock) {
  unsigned bySweep = 0, byRounds = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Device device(seed, 0.02);
    std::vector<Entry> entries;
    for (const int n : {2, 1, 0})
      entries.push_back(*device.measure({std::to_string(n)}));
    bySweep += std::min_element(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
                 return a.milliseconds < b.milliseconds;
               })->key() == "n=0";
    const auto r = confirm(entries, [&](const Configuration &c, unsigned) { return device.measure(c); }, {});
    ASSERT_TRUE(r.ok());
    byRounds += r->front().entry.key() == "n=0";
  }
  EXPECT_GT(byRounds, 185u);
  EXPECT_LT(bySweep, 150u);
}

TEST(ConfirmTest, EqualOnesAreTiedAndSlowerOnesAreNot) {
  unsigned tied = 0, slower = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise{1, 0.01};
    const auto r = confirm({entryOf(0, 1), entryOf(1, 1), entryOf(2, 1)},
                           [&](const Configuration &c, unsigned) -> Result<Entry> {
                             return entryOf(std::stoi(c[0]), (c[0] == "2" ? 1.1 : 1) * noise(random));
                           },
                           {});
    ASSERT_TRUE(r.ok());
    ASSERT_EQ((*r)[2].entry.key(), "n=2");
    tied += (*r)[1].isTied, slower += !(*r)[2].isTied;
    EXPECT_FALSE((*r)[0].isTied);
  }
  EXPECT_GT(tied, 120u);
  EXPECT_EQ(slower, 200u);
}

TEST(ConfirmTest, WhatFailsIsNoWinner) {
  Device device(1, 0);
  device.broken = 0;
  const auto measure = [&](const Configuration &c, unsigned) { return device.measure(c); };
  const auto r = confirm({entryOf(0, 1), entryOf(1, 1), entryOf(2, 1)}, measure, {});
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r->size(), 3u);
  EXPECT_EQ((*r)[0].entry.key(), "n=1");
  EXPECT_FALSE((*r)[1].failure);
  EXPECT_EQ((*r)[2].entry.key(), "n=0");
  ASSERT_TRUE((*r)[2].failure);
  EXPECT_EQ((*r)[2].failure->outcome, Outcome::Failed);
  EXPECT_EQ(std::count(device.order.begin(), device.order.end(), 0), 1);
  EXPECT_TRUE(confirm({entryOf(1, 1)}, measure, {})->empty());
  Entry wrong = entryOf(2, 0.5);
  wrong.outcome = Outcome::Wrong;
  EXPECT_TRUE(confirm({entryOf(1, 1), wrong}, measure, {})->empty());
}

TEST(ConfirmTest, AnInterruptionKeepsWholeRounds) {
  std::atomic<bool> interrupted{false};
  Device device(1, 0);
  const auto r = confirm({entryOf(0, 1), entryOf(1, 1)},
                         [&](const Configuration &c, unsigned) {
                           interrupted = device.order.size() == 4;
                           return device.measure(c);
                         },
                         {.interrupted = &interrupted});
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r->size(), 2u);
  EXPECT_EQ((*r)[0].rounds.size(), 2u);
  EXPECT_EQ((*r)[1].rounds.size(), 2u);
}

} // namespace
} // namespace kiln::tune
