#include "runtime/tune/Sweep.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace kiln::tune {
namespace {

class SweepTest : public testing::Test {
protected:
  SweepTest() {
    std::vector<std::string> values;
    for (int i = 0; i < 30; ++i)
      values.push_back(std::to_string(i));
    space = *Space::create({{"n", values}});
    for (std::size_t i = 0; i < space->size(); ++i)
      kept.push_back({i, std::nullopt});
  }
  std::unique_ptr<Journal> open() const { return std::move(*Journal::open(folder.path() + "/j", header)); }

  /// n takes |n - 20| + 1 milliseconds; every seventh is wrong.
  Result<Entry> measure(const Configuration &c) {
    const int n = std::stoi(c[0]);
    const std::lock_guard lock(mutex);
    ++calls[n];
    Entry e;
    e.outcome = n % 7 == 0 ? Outcome::Wrong : Outcome::Good;
    e.milliseconds = std::abs(n - 20) + 1;
    return e;
  }
  SweepResult run(Journal *journal, const SweepOptions &options, const std::string &search = "random") {
    const auto searcher = makeSearcher(search, *space, kept, 3);
    auto result = runSweep(
        *space, kept, **searcher, journal, [&](const Configuration &c) { return measure(c); }, options,
        [&](const SweepState &s) { seen.push_back(s.done); });
    EXPECT_TRUE(result.ok());
    return std::move(*result);
  }

  std::optional<Space> space;
  std::vector<Candidate> kept;
  JournalHeader header{"k", "f32", "sm_90a", "d", "c", "measured", "h"};
  test::TemporaryDirectory folder;
  std::mutex mutex;
  std::map<int, int> calls;
  std::vector<std::size_t> seen;
};

TEST_F(SweepTest, FindsTheFastestThatIsRight) {
  const SweepResult r = run(nullptr, {});
  EXPECT_EQ(r.end, SweepEnd::Complete);
  EXPECT_EQ(r.state.best->key(), "n=20");
  EXPECT_EQ(r.state.failures[static_cast<unsigned>(Outcome::Wrong)], 5u); // 21 would be the second best
  EXPECT_EQ(r.state.done, 30u);
  EXPECT_EQ(seen.size(), 30u);
  EXPECT_EQ(r.state.convergence.back().second, 1);
}

TEST_F(SweepTest, NothingIsMeasuredTwice) {
  for (const std::size_t budget : {4u, 9u, 0u}) {
    const auto journal = open();
    const SweepResult r = run(journal.get(), {.budget = budget});
    EXPECT_EQ(r.end, budget ? SweepEnd::Budget : SweepEnd::Complete);
  }
  EXPECT_EQ(calls.size(), 30u);
  for (const auto &[n, count] : calls)
    EXPECT_EQ(count, 1) << n;
  const auto journal = open();
  const SweepResult r = run(journal.get(), {});
  EXPECT_EQ(r.state.done, 0u);
  EXPECT_EQ(r.state.known, 30u);
  EXPECT_EQ(r.state.best->key(), "n=20"); // of the journal
}

TEST_F(SweepTest, AnInterruptionLosesOnlyWhatIsBeingMeasured) {
  std::atomic<bool> interrupted{false};
  const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
  {
    const auto journal = open();
    const auto r = runSweep(*space, kept, **searcher, journal.get(),
                            [&](const Configuration &c) {
                              if (c[0] == "5")
                                interrupted = true;
                              return measure(c);
                            },
                            {.interrupted = &interrupted}, {});
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->end, SweepEnd::Interrupted);
    EXPECT_EQ(r->state.done, 5u);
  }
  EXPECT_EQ(open()->entries().size(), 5u); // not 5, whose process got the signal too
}

TEST_F(SweepTest, SeveralAtATimeGiveTheSame) {
  const auto journal = open();
  const SweepResult r = run(journal.get(), {.jobs = 4});
  EXPECT_EQ(r.state.done, 30u);
  EXPECT_EQ(r.state.best->key(), "n=20");
  std::set<std::string> keys;
  for (const Entry &e : r.entries)
    keys.insert(e.key());
  EXPECT_EQ(keys.size(), 30u);
  EXPECT_EQ(readJournal(folder.path() + "/j")->entries.size(), 30u);
}

TEST_F(SweepTest, AFailureOfTheMachineryEndsIt) {
  const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
  const auto r = runSweep(*space, kept, **searcher, nullptr,
                          [](const Configuration &) -> Result<Entry> {
                            return Status(StatusCode::OutOfMemory, "no process can be started");
                          },
                          {}, {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), StatusCode::OutOfMemory);
}

} // namespace
} // namespace kiln::tune
