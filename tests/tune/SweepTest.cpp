#include "runtime/tune/Sweep.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace kiln::tune {
namespace {

/// Counts those that are inside.
class AtATime {
public:
  AtATime(std::atomic<unsigned> &now, std::atomic<unsigned> &most) : now(now) {
    const unsigned n = ++now;
    for (unsigned m = most; m < n && !most.compare_exchange_weak(m, n);) {
    }
  }
  ~AtATime() { --now; }
  AtATime(const AtATime &) = delete;
  AtATime &operator=(const AtATime &) = delete;

private:
  std::atomic<unsigned> &now;
};

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
  Result<Entry> measure(const Configuration &c, unsigned number = 0) {
    const int n = std::stoi(c[0]);
    const AtATime counted(measuring, mostAtATime);
    for (unsigned waited = 0; mostAtATime < awaitsMeasurers && waited < 20000; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    ++calls[n];
    measurers[number].insert(std::this_thread::get_id());
    Entry e;
    e.outcome = n % 7 == 0 ? Outcome::Wrong : Outcome::Good;
    e.milliseconds = std::abs(n - 20) + 1;
    return e;
  }
  Result<Entry> prepare(const Configuration &c) {
    const AtATime counted(preparing, mostPrepared);
    for (unsigned waited = 0; awaitsTwo && mostPrepared < 2 && waited < 20000; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Entry e;
    e.outcome = refused.contains(std::stoi(c[0])) ? Outcome::Refused : Outcome::Good;
    return e;
  }
  SweepResult run(Journal *journal, const SweepOptions &options, const std::string &search = "random") {
    const auto searcher = makeSearcher(search, *space, kept, 3);
    auto result = runSweep(*space, kept, **searcher, journal,
                           {[&](const Configuration &c, unsigned number) { return measure(c, number); },
                            [&](const Configuration &c) -> Result<Entry> { return prepare(c); }},
                           options, [&](const SweepState &s) { seen.push_back(s.done); });
    EXPECT_TRUE(result.ok());
    return std::move(*result);
  }

  std::optional<Space> space;
  std::vector<Candidate> kept;
  JournalHeader header{"k", "f32", "sm_90a", "d", "c", "measured", "h"};
  test::TemporaryDirectory folder;
  std::mutex mutex;
  std::map<int, int> calls;
  std::set<int> refused;
  unsigned awaitsMeasurers = 0;                             ///< the first wait until so many measure
  std::map<unsigned, std::set<std::thread::id>> measurers; ///< who measured as which
  bool awaitsTwo = false; ///< the first that is prepared waits for a second one
  std::atomic<unsigned> measuring{0}, mostAtATime{0}, preparing{0}, mostPrepared{0};
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
    const auto r = runSweep(*space, kept, **searcher, journal.get(), {[&](const Configuration &c, unsigned) {
      if (c[0] == "5")
        interrupted = true;
      return measure(c);
    }},
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
  const auto r = runSweep(*space, kept, **searcher, nullptr, {[](const Configuration &, unsigned) -> Result<Entry> {
    return Status(StatusCode::OutOfMemory, "no process can be started");
  }},
                          {}, {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), StatusCode::OutOfMemory);
}

/// One thread measures what four prepare: as many configurations, each measured once, never two at a time.
TEST_F(SweepTest, PreparingRunsAheadOfOneMeasurer) {
  refused = {3, 20}, awaitsTwo = true;
  const auto journal = open();
  const SweepResult r = run(journal.get(), {.jobs = 4, .measurers = 1});
  EXPECT_EQ(r.end, SweepEnd::Complete);
  EXPECT_EQ(r.state.done, 30u);
  EXPECT_EQ(r.state.best->milliseconds, 2); // 19, for 21 is wrong
  EXPECT_EQ(r.state.failures[static_cast<unsigned>(Outcome::Refused)], 2u);
  EXPECT_EQ(calls.size(), 28u);
  for (const auto &[n, count] : calls)
    EXPECT_EQ(count, 1) << n;
  EXPECT_EQ(mostAtATime, 1u);
  EXPECT_GT(mostPrepared, 1u);
  EXPECT_EQ(readJournal(folder.path() + "/j")->entries.size(), 30u);
}

/// Three devices: each configuration on one of them, and each device always by the same thread.
TEST_F(SweepTest, SeveralMeasurersShareTheConfigurations) {
  awaitsMeasurers = 3;
  const auto journal = open();
  const SweepResult r = run(journal.get(), {.jobs = 4, .measurers = 3});
  EXPECT_EQ(r.end, SweepEnd::Complete);
  EXPECT_EQ(r.state.done, 30u);
  EXPECT_EQ(r.state.best->key(), "n=20");
  EXPECT_EQ(calls.size(), 30u);
  for (const auto &[n, count] : calls)
    EXPECT_EQ(count, 1) << n;
  EXPECT_EQ(mostAtATime, 3u);
  EXPECT_EQ(measurers.size(), 3u);
  for (const auto &[number, threads] : measurers) {
    EXPECT_LT(number, 3u);
    EXPECT_EQ(threads.size(), 1u);
  }
  EXPECT_EQ(readJournal(folder.path() + "/j")->entries.size(), 30u);
}

TEST_F(SweepTest, SeveralMeasurersEndWithAnInterruptionAndABudget) {
  for (unsigned round = 0; round < test::pick(20u, 200u); ++round) {
    EXPECT_EQ(run(nullptr, {.budget = 9, .jobs = 3, .measurers = 3}).state.done, 9u);
    std::atomic<bool> interrupted{false};
    std::atomic<unsigned> measured{0};
    const unsigned last = 1 + round % 29;
    const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
    const auto r = runSweep(*space, kept, **searcher, nullptr,
                            {[&](const Configuration &c, unsigned number) {
                               if (++measured == last)
                                 interrupted = true;
                               return measure(c, number);
                             },
                             [&](const Configuration &c) -> Result<Entry> { return prepare(c); }},
                            {.jobs = 3, .measurers = 3, .interrupted = &interrupted}, {});
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->end, SweepEnd::Interrupted);
    EXPECT_LT(r->state.done, last);
    EXPECT_LE(measured, last + 2); // those that were being measured
  }
}

TEST_F(SweepTest, APipelineEndsWithItsBudgetItsTimeAndAnInterruption) {
  for (unsigned round = 0; round < test::pick(20u, 200u); ++round) {
    calls.clear();
    EXPECT_EQ(run(nullptr, {.budget = 9, .jobs = 3, .measurers = 1}).state.done, 9u);
    EXPECT_EQ(calls.size(), 9u);
  }
  const SweepResult late = run(nullptr, {.seconds = 1e-9, .jobs = 3, .measurers = 1});
  EXPECT_EQ(late.end, SweepEnd::Budget);
  EXPECT_EQ(late.state.done, 0u);
  // The time ends in the third measurement, when others wait: none is begun any more.
  std::atomic<unsigned> begun{0};
  std::atomic<bool> signal{false};
  for (const bool alsoInterrupted : {false, true}) {
    begun = 0;
    const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
    const auto r = runSweep(*space, kept, **searcher, nullptr,
                            {[&](const Configuration &c, unsigned) {
                               if (++begun == 3) {
                                 std::this_thread::sleep_for(std::chrono::seconds(2));
                                 signal = alsoInterrupted;
                               }
                               return measure(c);
                             },
                             [&](const Configuration &c) -> Result<Entry> { return prepare(c); }},
                            {.seconds = 1, .jobs = 3, .measurers = 1, .interrupted = &signal}, {});
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->end, alsoInterrupted ? SweepEnd::Interrupted : SweepEnd::Budget);
    EXPECT_EQ(begun, 3u);
    EXPECT_EQ(r->state.done, alsoInterrupted ? 2u : 3u);
  }
  for (unsigned last = 1; last < 30; last += 4) {
    std::atomic<bool> interrupted{false};
    std::atomic<unsigned> measured{0};
    const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
    const auto r = runSweep(*space, kept, **searcher, nullptr,
                            {[&](const Configuration &c, unsigned) {
                               if (++measured == last)
                                 interrupted = true;
                               return measure(c);
                             },
                             [&](const Configuration &c) -> Result<Entry> { return prepare(c); }},
                            {.jobs = 3, .measurers = 1, .interrupted = &interrupted}, {});
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->end, SweepEnd::Interrupted);
    EXPECT_EQ(r->state.done, last - 1);
  }
}

TEST_F(SweepTest, AFailureOfTheMachineryEndsAPipeline) {
  for (const auto &[measures, number] : {std::pair(false, 1u), {true, 1u}, {false, 3u}, {true, 3u}}) {
    const auto searcher = makeSearcher("exhaustive", *space, kept, 1);
    const auto fails = [](const Configuration &, unsigned) -> Result<Entry> {
      return Status(StatusCode::OutOfMemory, "no process can be started");
    };
    const auto r =
        runSweep(*space, kept, **searcher, nullptr,
                 {fails, [&, measures = measures](const Configuration &c) -> Result<Entry> { return measures ? prepare(c) : fails(c, 0); }},
                 {.jobs = 3, .measurers = number}, {});
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), StatusCode::OutOfMemory);
  }
}

} // namespace
} // namespace kiln::tune
