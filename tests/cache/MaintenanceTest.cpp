#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

class Maintenance : public testing::Test {
protected:
  Maintenance() : cache(openCache(folder.path())) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(cache->store(sampleKey(i), sampleEntry(i, 1000)).ok());
      setAge(pathOf(i), 1000 * (i + 1));
    }
  }
  std::string pathOf(int i) { return entryPathOf(sampleKey(i), folder.path()); }
  std::vector<bool> present() {
    std::vector<bool> out;
    for (int i = 0; i < 5; ++i)
      out.push_back(::access(pathOf(i).c_str(), F_OK) == 0);
    return out;
  }
  /// Flips a byte of the payload: the header stays good.
  void damagePayload(int i) {
    std::string bytes = readBytes(pathOf(i));
    bytes[bytes.size() - 100] ^= 1;
    writeBytes(pathOf(i), bytes);
    setAge(pathOf(i), 1000 * (i + 1));
  }
  kiln::test::TemporaryDirectory folder;
  std::unique_ptr<KernelCache> cache;
};

} // namespace

TEST_F(Maintenance, ListGivesKeysSizesAndAges) {
  const auto all = cache->list();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const EntryInfo &info = (*all)[static_cast<std::size_t>(i)]; // the most recently used first
    EXPECT_EQ(info.key, sampleKey(i));
    EXPECT_EQ(info.kind, sampleEntry(i).kind);
    EXPECT_EQ(info.metadata, sampleEntry(i).metadata);
    EXPECT_EQ(folder.path() + "/" + info.fileName, pathOf(i));
    EXPECT_EQ(info.bytes, readBytes(pathOf(i)).size());
    EXPECT_NEAR(static_cast<double>(info.idle.count()), 1000 * (i + 1), 5);
    EXPECT_EQ(info.damage, "");
  }
}

TEST_F(Maintenance, ListReadsNoPayload) {
  HookedLayer layer;
  CacheOptions options;
  options.directory = folder.path();
  options.files = &layer;
  ASSERT_TRUE(openCache(folder.path())->store(sampleKey(9), sampleEntry(9, 5'000'000)).ok());
  layer.pieceBytes = 4096; // a read a page: the payload alone would be 1,200
  ASSERT_TRUE(openCache(options)->list().ok());
  EXPECT_LT(layer.calls, 200);
}

TEST_F(Maintenance, VerifyReportsTheDamagedOnes) {
  damagePayload(1);
  writeBytes(pathOf(3), "short");
  setAge(pathOf(3), 4000);
  const auto all = cache->verify();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ((*all)[i].damage, i == 1 ? "its checksum does not hold" : i == 3 ? "it is cut short at 5 bytes" : "");
  // `list` sees only what is wrong with the front.
  const auto listed = cache->list();
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ((*listed)[1].damage, "");
  EXPECT_NE((*listed)[3].damage, "");
}

TEST_F(Maintenance, AMisnamedEntryIsReported) {
  writeBytes(pathOf(0), readBytes(pathOf(1)));
  const auto all = cache->verify();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)[0].damage, "its name is not the one of its key");
}

TEST_F(Maintenance, PruneToASize) {
  PruneOptions options;
  options.maxBytes = readBytes(pathOf(0)).size() + readBytes(pathOf(1)).size();
  const auto report = cache->prune(options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(present(), (std::vector<bool>{true, true, false, false, false}));
  EXPECT_EQ(report->removed, 3u);
  EXPECT_EQ(report->kept, 2u);
  EXPECT_EQ(report->keptBytes, *options.maxBytes);
}

TEST_F(Maintenance, PruneToAnAge) {
  PruneOptions options;
  options.maxIdle = std::chrono::seconds(3500);
  ASSERT_TRUE(cache->prune(options).ok());
  EXPECT_EQ(present(), (std::vector<bool>{true, true, true, false, false}));
}

TEST_F(Maintenance, PruneTheDamaged) {
  damagePayload(1);
  writeBytes(pathOf(3), "short");
  PruneOptions options;
  options.damaged = true;
  const auto report = cache->prune(options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->removed, 2u);
  EXPECT_EQ(present(), (std::vector<bool>{true, false, true, false, true}));
}

TEST_F(Maintenance, PruneAll) {
  PruneOptions options;
  options.all = true;
  const auto report = cache->prune(options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->removed, 5u);
  EXPECT_EQ(report->kept, 0u);
  EXPECT_EQ(report->keptBytes, 0u);
  EXPECT_EQ(namesIn(folder.path()), std::vector<std::string>{"pending"});
}

TEST_F(Maintenance, PruneWithoutOptionsRemovesNoEntry) {
  const auto report = cache->prune({});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->removed, 0u);
  EXPECT_EQ(present(), std::vector<bool>(5, true));
}

TEST_F(Maintenance, PruneSaysWhatItCouldNotRemove) {
  HookedLayer layer;
  layer.before = [](int, const std::string &name) { return name == "unlink" ? -EROFS : 0; };
  CacheOptions options;
  options.directory = folder.path();
  options.files = &layer;
  PruneOptions all;
  all.all = true;
  const auto report = openCache(options)->prune(all);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->removed, 0u);
  EXPECT_EQ(report->kept, 5u);
  ASSERT_EQ(report->failures.size(), 5u);
  EXPECT_NE(report->failures[0].find("Read-only file system"), std::string::npos);
}

/// A million entries are pruned in seconds only if each costs two calls.
TEST(MaintenanceOfMany, PruneMakesOneCallToMeasureAnEntryAndOneToRemoveIt) {
  constexpr int entries = 2000;
  const MemoryDirectory folder;
  for (int i = 0; i < entries; ++i) {
    const std::string path = folder.path() + "/" + hexText(hash128(std::to_string(i))) + ".kernel";
    writeBytes(path, "0123456789");
    setAge(path, 10 * (i + 1));
  }
  HookedLayer layer;
  CacheOptions options;
  options.directory = folder.path();
  options.files = &layer;
  const auto cache = openCache(options);
  layer.calls = 0;
  PruneOptions half;
  half.maxBytes = 10 * entries / 2;
  const auto report = cache->prune(half);
  const int calls = layer.calls;
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->removed, entries / 2u);
  EXPECT_EQ(report->kept, entries / 2u);
  EXPECT_EQ(report->keptBytes, *half.maxBytes);
  for (int i = 0; i < entries; i += 100) // the least recently used half
    EXPECT_EQ(::access((folder.path() + "/" + hexText(hash128(std::to_string(i))) + ".kernel").c_str(), F_OK) == 0,
              i < entries / 2)
        << i;
  EXPECT_LT(calls, entries + entries / 2 + 20);
}
