// Searches over spaces that an H200 measured (docs/records/spaces): the 200 configurations that the model likes best of
// each.  What is the best of two hundred, nobody knows better than the spread of its own samples.
#include "runtime/tune/Replay.h"
#include "runtime/tune/Search.h"
#include "runtime/tune/Sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace kiln::tune {
namespace {

struct Recorded {
  std::string name;
  JournalContents journal;
  Replay replay;
};

std::vector<Recorded> recorded() {
  std::vector<std::string> files;
  for (const auto &file : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/docs/records/spaces"))
    files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  std::vector<Recorded> out;
  for (const std::string &file : files) {
    Result<JournalContents> journal = readJournal(file);
    EXPECT_TRUE(journal.ok()) << journal.status().toString();
    if (!journal)
      continue;
    Result<Replay> replay = Replay::create(*journal);
    EXPECT_TRUE(replay.ok()) << file << ": " << replay.status().toString();
    if (replay)
      out.push_back({std::filesystem::path(file).stem().string(), std::move(*journal), std::move(*replay)});
  }
  EXPECT_GE(out.size(), 6u);
  return out;
}

/// The best of so many that a search measured.
double foundBy(const std::string &search, const Recorded &space, std::uint64_t seed, std::size_t budget) {
  const auto searcher = makeSearcher(search, space.replay.space(), space.replay.candidates(), seed);
  EXPECT_TRUE(searcher.ok());
  const auto result =
      runSweep(space.replay.space(), space.replay.candidates(), **searcher, nullptr,
               {[&](const Configuration &c, unsigned) { return space.replay.measure(c); }}, {.budget = budget}, {});
  EXPECT_TRUE(result.ok());
  return result && result->state.best ? result->state.best->milliseconds : 1e9;
}

TEST(RecordedSpaces, HaveADefaultWithinATenthOfTheBest) {
  for (const Recorded &space : recorded()) {
    EXPECT_EQ(space.journal.header.objective, "measured");
    EXPECT_EQ(space.journal.entries.size(), 200u) << space.name;
    unsigned defaults = 0;
    for (const Entry &e : space.journal.entries)
      if (e.isDefault) {
        ++defaults;
        EXPECT_TRUE(e.good()) << space.name;
        EXPECT_LE(e.milliseconds, 1.1 * space.replay.best().milliseconds) << space.name;
      }
    EXPECT_EQ(defaults, 1u) << space.name;
  }
}

/// The default, which a sweep tries first, and the model's next four.
TEST(RecordedSpaces, TheFirstFiveHoldTheBest) {
  unsigned held = 0;
  const std::vector<Recorded> all = recorded();
  for (const Recorded &space : all)
    held += foundBy("model", space, 1, 5) <= space.replay.best().greatest;
  EXPECT_GE(held, 0.9 * static_cast<double>(all.size()));
}

TEST(RecordedSpaces, TwentySearchesEndWithinTwoPercent) {
  unsigned model = 0, random = 0, tried = 0;
  for (const Recorded &space : recorded())
    for (std::uint64_t seed = 1; seed <= 20; ++seed, ++tried) {
      const auto isNear = [&](const char *search) {
        return foundBy(search, space, seed, 20) <= 1.02 * space.replay.best().milliseconds;
      };
      model += isNear("model"), random += isNear("random");
    }
  EXPECT_GE(model, 0.95 * tried);
  EXPECT_GT(model, 2 * random); // it is no matter of twenty tries
  std::printf("20 of 200 measured, within 2 %% of the best: model %u, random %u of %u\n", model, random, tried);
}

/// All of them are measured in the end, whatever the order.
TEST(RecordedSpaces, WholeSearchesFindTheBest) {
  for (const Recorded &space : recorded())
    for (const char *search : {"exhaustive", "random", "model"})
      EXPECT_EQ(foundBy(search, space, 3, 0), space.replay.best().milliseconds) << space.name << " " << search;
}

} // namespace
} // namespace kiln::tune
