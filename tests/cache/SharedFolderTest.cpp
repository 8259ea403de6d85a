#include "runtime/cache/SharedFolder.h"

#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace kiln::cache::test {
namespace {

class SharedFolderTest : public testing::Test {
protected:
  const kiln::test::TemporaryDirectory folder;
  const KeyText key = sampleKey(1);
  const Entry entry = sampleEntry(1);
  std::string fill() {
    EXPECT_TRUE(openCache(folder.path())->store(key, entry).ok());
    return entryPathOf(key, folder.path());
  }
};

TEST_F(SharedFolderTest, GivesWhatACacheStored) {
  fill();
  const std::unique_ptr<Layer> layer = sharedFolder(folder.path());
  EXPECT_FALSE(layer->isRemote());
  const auto found = layer->lookup(key);
  ASSERT_TRUE(found.ok()) << found.status().toString();
  ASSERT_TRUE(*found);
  EXPECT_EQ(**found, entry);
  const auto other = layer->lookup(sampleKey(2));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(*other);
  // Read, not written: what is offered is not there afterwards.
  layer->offer(sampleKey(2), sampleEntry(2));
  EXPECT_FALSE(*layer->lookup(sampleKey(2)));
}

TEST_F(SharedFolderTest, TheFolderMayComeLater) {
  const std::unique_ptr<Layer> layer = sharedFolder(folder.path() + "/later");
  const auto before = layer->lookup(key);
  ASSERT_TRUE(before.ok()) << before.status().toString();
  EXPECT_FALSE(*before);
  ASSERT_TRUE(openCache(folder.path() + "/later")->store(key, entry).ok());
  EXPECT_TRUE(*layer->lookup(key));
}

TEST_F(SharedFolderTest, RefusesWhatOthersMayWrite) {
  const std::string path = fill();
  const std::unique_ptr<Layer> layer = sharedFolder(folder.path());
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const auto file = layer->lookup(key);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("can be written to by others"), std::string::npos) << file.status().toString();
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_FALSE(layer->lookup(key).ok());
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0); // others may read
  EXPECT_TRUE(layer->lookup(key).ok());
}

TEST_F(SharedFolderTest, EveryDamagedByteIsAMiss) {
  const std::string path = fill(), good = readBytes(path);
  const std::unique_ptr<Layer> layer = sharedFolder(folder.path());
  for (std::size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    writeBytes(path, bad);
    EXPECT_FALSE(layer->lookup(key).ok()) << "byte " << i;
  }
  writeBytes(path, good.substr(0, good.size() / 2));
  EXPECT_FALSE(layer->lookup(key).ok());
  // A whole entry of another key under this name.
  writeBytes(path, encodeEntry(sampleKey(3).serialise(), sampleEntry(3)));
  const auto other = layer->lookup(key);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(*other);
}

} // namespace
} // namespace kiln::cache::test
