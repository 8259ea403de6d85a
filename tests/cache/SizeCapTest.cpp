#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

/// Keys of two digits, so that all entries are of one size.
KeyText keyOf(int i) {
  return sampleKey(10 + i);
}
Entry entryOf(int i) {
  return sampleEntry(10 + i, 1000);
}

class SizeCap : public testing::Test {
protected:
  std::unique_ptr<KernelCache> open(std::uint64_t entries, int touchSeconds = 0) {
    CacheOptions options;
    options.directory = folder.path();
    options.maxBytes = entries * entryBytes(); // "sm_80" is a byte shorter than "sm_90a"
    options.touchInterval = std::chrono::seconds(touchSeconds);
    return openCache(options);
  }
  static std::uint64_t entryBytes() { return encodeEntry(keyOf(1).serialise(), entryOf(1)).size(); }
  std::string pathOf(int i) { return entryPathOf(keyOf(i), folder.path()); }
  /// Numbers of the entries that are there.
  std::set<int> present() {
    std::set<int> out;
    const std::vector<std::string> names = namesIn(folder.path());
    for (int i = 0; i < 80; ++i)
      for (const std::string &name : names)
        if (folder.path() + "/" + name == pathOf(i))
          out.insert(i);
    return out;
  }
  kiln::test::TemporaryDirectory folder;
};

} // namespace

TEST_F(SizeCap, TheLeastRecentlyUsedGoFirst) {
  const auto cache = open(10);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(cache->store(keyOf(i), entryOf(i)).ok());
    setAge(pathOf(i), 1000 - 10 * i);
  }
  EXPECT_EQ(present().size(), 10u);
  for (int used : {0, 3}) // the oldest and another one are used
    ASSERT_TRUE(cache->lookup(keyOf(used)).ok());
  ASSERT_TRUE(cache->store(keyOf(20), entryOf(20)).ok());
  // 11 entries; down to nine tenths of the cap.
  EXPECT_EQ(present(), (std::set{0, 3, 4, 5, 6, 7, 8, 9, 20}));
  EXPECT_EQ(cache->counters().evicted, 2u);
  for (int i : {0, 3, 9, 20}) {
    const auto found = cache->lookup(keyOf(i));
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ(**found, entryOf(i));
  }
}

TEST_F(SizeCap, HoldsOverManyStores) {
  const auto cache = open(10);
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(cache->store(keyOf(i), entryOf(i)).ok());
    ASSERT_LE(present().size(), 10u);
    ASSERT_TRUE(present().contains(i)); // never the one just stored
    setAge(pathOf(i), 1000 - i);
  }
  EXPECT_EQ(cache->counters().evicted + present().size(), 80u);
}

/// The clock of the machine that wrote the others is ahead: the entry just stored is not the one that goes.
TEST_F(SizeCap, TheEntryJustStoredStays) {
  const auto cache = open(5);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(cache->store(keyOf(i), entryOf(i)).ok());
    setAge(pathOf(i), -1000 - i);
  }
  ASSERT_TRUE(cache->store(keyOf(20), entryOf(20)).ok());
  EXPECT_EQ(present(), (std::set{2, 3, 4, 20}));
}

/// Short processes that store one kernel each: the cap holds although no process stores much.
TEST_F(SizeCap, ASmallCapHoldsOverManyProcesses) {
  constexpr std::uint64_t cap = 100 << 10;
  std::uint64_t most = 0, written = 0;
  for (int i = 0; i < 70; ++i) {
    CacheOptions options;
    options.directory = folder.path();
    options.maxBytes = cap;
    ASSERT_TRUE(openCache(options)->store(keyOf(i), sampleEntry(10 + i, 4800)).ok());
    std::uint64_t total = 0;
    const auto entries = openCache(folder.path())->list();
    ASSERT_TRUE(entries.ok());
    for (const EntryInfo &info : *entries)
      total += info.bytes;
    written += readBytes(pathOf(i)).size();
    most = std::max(most, total);
  }
  EXPECT_GT(written, 3 * cap);
  EXPECT_LE(most, cap + cap / 20);
}

/// Entries far below the cap are not measured at each store: that costs a call an entry.
TEST_F(SizeCap, SmallEntriesAreSeldomMeasured) {
  HookedLayer layer;
  int lists = 0;
  layer.before = [&](int, const std::string &name) {
    lists += name == "list";
    return 0;
  };
  CacheOptions options;
  options.directory = folder.path();
  options.maxBytes = 2000 * entryBytes();
  options.files = &layer;
  const auto cache = openCache(options);
  lists = 0;
  for (int i = 0; i < 64; ++i)
    ASSERT_TRUE(cache->store(keyOf(i), entryOf(i)).ok());
  EXPECT_LT(lists, 64); // of `pending` and of the directory, of about one store in sixteen
}

TEST_F(SizeCap, ZeroMeansNone) {
  const auto cache = open(0);
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(cache->store(keyOf(i), entryOf(i)).ok());
  EXPECT_EQ(present().size(), 40u);
}

TEST_F(SizeCap, AnEntryLargerThanTheCapIsRefusedAndNothingRemoved) {
  const auto cache = open(3);
  ASSERT_TRUE(cache->store(keyOf(1), entryOf(1)).ok());
  const Status refused = cache->store(keyOf(2), sampleEntry(12, 5000));
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_NE(refused.message().find(std::to_string(3 * entryBytes())), std::string::npos) << refused.message();
  EXPECT_EQ(cache->counters().storeFailures, 1u);
  EXPECT_EQ(present(), std::set{1});
}

TEST_F(SizeCap, AHitRenewsTheTimeOfUseAtMostOnceAnInterval) {
  const auto cache = open(10, 60);
  ASSERT_TRUE(cache->store(keyOf(1), entryOf(1)).ok());
  setAge(pathOf(1), 30);
  ASSERT_TRUE(cache->lookup(keyOf(1)).ok());
  EXPECT_GE(ageOf(pathOf(1)), 29);
  setAge(pathOf(1), 90);
  ASSERT_TRUE(cache->lookup(keyOf(1)).ok());
  EXPECT_LE(ageOf(pathOf(1)), 2);
  setAge(pathOf(1), -7200); // of a clock that was wrong
  ASSERT_TRUE(cache->lookup(keyOf(1)).ok());
  EXPECT_LE(std::abs(ageOf(pathOf(1))), 2);
}

/// A reader that has the file open is not disturbed by its removal.
TEST_F(SizeCap, EvictionDuringALookupDoesNotHarmIt) {
  ASSERT_TRUE(open(10)->store(keyOf(1), entryOf(1)).ok());
  HookedLayer layer;
  layer.before = [&](int, const std::string &name) {
    if (name == "read") {
      PruneOptions all;
      all.all = true;
      EXPECT_TRUE(openCache(folder.path())->prune(all).ok());
    }
    return 0;
  };
  CacheOptions options;
  options.directory = folder.path();
  options.files = &layer;
  const auto found = openCache(options)->lookup(keyOf(1));
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ(**found, entryOf(1));
  EXPECT_TRUE(present().empty());
}
