#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

class Damage : public testing::Test {
protected:
  Damage() : cache(openCache(folder.path())) {
    EXPECT_TRUE(cache->store(key, entry).ok());
    good = readBytes(path);
  }

  /// Looks up with `bytes` in place of the entry: must be a miss that is counted.
  void expectDamaged(std::string_view bytes, const std::string &what) {
    writeBytes(path, bytes);
    const CacheCounters before = cache->counters();
    MissReason why = MissReason::None;
    const auto found = cache->lookup(key, &why);
    ASSERT_TRUE(found.ok()) << what << ": " << found.status().message();
    ASSERT_FALSE(found->has_value()) << what;
    ASSERT_EQ(why, MissReason::Damaged) << what;
    const CacheCounters after = cache->counters();
    ASSERT_EQ(after.damaged, before.damaged + 1) << what;
    ASSERT_EQ(after.misses, before.misses + 1) << what;
    ASSERT_EQ(after.hits, before.hits) << what;
  }

  void expectHit() {
    const auto found = cache->lookup(key);
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ(**found, entry);
  }

  kiln::test::TemporaryDirectory folder;
  std::unique_ptr<KernelCache> cache;
  KeyText key = sampleKey(1);
  Entry entry = sampleEntry(1, 100);
  std::string path = entryPathOf(key, folder.path());
  std::string good;
};

} // namespace

TEST_F(Damage, EveryFlippedBitIsAMiss) {
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      ASSERT_NO_FATAL_FAILURE(expectDamaged(bad, "byte " + std::to_string(at) + " bit " + std::to_string(bit)));
    }
  writeBytes(path, good);
  expectHit();
}

TEST_F(Damage, EveryByteSetToAnyValueOfASampleIsAMiss) {
  std::mt19937 random(3);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (char value : {'\0', '\xff', static_cast<char>(random())}) {
      std::string bad = good;
      bad[at] = value;
      if (bad != good) {
        ASSERT_NO_FATAL_FAILURE(expectDamaged(bad, "byte " + std::to_string(at)));
      }
    }
}

TEST_F(Damage, EveryTruncationIsAMiss) {
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    ASSERT_NO_FATAL_FAILURE(expectDamaged(std::string_view(good).substr(0, bytes), std::to_string(bytes) + " bytes"));
}

/// A torn write of a file system that lost power: the length is right, the end is zeros.
TEST_F(Damage, EveryZeroedTailIsAMiss) {
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    std::string bad = good.substr(0, bytes) + std::string(good.size() - bytes, '\0');
    if (bad != good) {
      ASSERT_NO_FATAL_FAILURE(expectDamaged(bad, std::to_string(bytes) + " bytes left"));
    }
  }
}

TEST_F(Damage, TrailingBytesAreAMiss) {
  for (std::size_t more : {1, 15, 16, 17, 4096})
    for (char filler : {'\0', 'x'})
      ASSERT_NO_FATAL_FAILURE(expectDamaged(good + std::string(more, filler), std::to_string(more) + " bytes more"));
  ASSERT_NO_FATAL_FAILURE(expectDamaged(good + good, "twice"));
}

TEST_F(Damage, RandomBytesAreAMiss) {
  std::mt19937 random(4);
  for (int i = 0; i < kiln::test::pick(500, 10000); ++i) {
    std::string bad(random() % 600, ' ');
    for (char &c : bad)
      c = static_cast<char>(random());
    if (i % 2) // some get past the first checks
      bad.replace(0, std::min<std::size_t>(bad.size(), 16), good.substr(0, std::min<std::size_t>(bad.size(), 16)));
    ASSERT_NO_FATAL_FAILURE(expectDamaged(bad, "random bytes " + std::to_string(i)));
  }
}

TEST_F(Damage, StoreReplacesADamagedEntry) {
  expectDamaged("nonsense", "nonsense");
  ASSERT_TRUE(cache->store(key, entry).ok());
  expectHit();
}

TEST_F(Damage, AnEntryUnderAnotherNameIsAMiss) {
  const KeyText other = sampleKey(2);
  writeBytes(entryPathOf(other, folder.path()), good);
  MissReason why = MissReason::None;
  const auto found = cache->lookup(other, &why);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(why, MissReason::OtherKey);
}

TEST_F(Damage, WhatIsNoRegularFileIsAMiss) {
  const auto expectMiss = [&](const char *what) {
    MissReason why = MissReason::None;
    const auto found = cache->lookup(key, &why);
    ASSERT_TRUE(found.ok()) << what << ": " << found.status().message();
    EXPECT_FALSE(found->has_value()) << what;
    EXPECT_EQ(why, MissReason::Damaged) << what;
  };
  const std::string aside = folder.path() + "/aside";
  writeBytes(aside, good);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::symlink(aside.c_str(), path.c_str()), 0);
  expectMiss("symbolic link to a good entry");
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expectMiss("named pipe");
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  expectMiss("directory");
  ASSERT_EQ(::rmdir(path.c_str()), 0);
}

/// A sparse file of a terabyte must not be read.
TEST_F(Damage, AHugeFileIsAMiss) {
  if (::truncate(path.c_str(), off_t(1) << 40) != 0)
    GTEST_SKIP() << "the file system of the temporary directory takes no file of 1 TiB";
  MissReason why = MissReason::None;
  ASSERT_TRUE(cache->lookup(key, &why).ok());
  EXPECT_EQ(why, MissReason::Damaged);
}
