// Packs: what was put in is found without its assembler, and under nothing else; every damaged byte is refused.
#include "runtime/cache/Pack.h"
#include "tests/cache/CacheTestSupport.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace kiln::cache::test {
namespace {

class PackTest : public testing::Test {
protected:
  std::string path() const { return folder.path() + "/kernels.pack"; }
  void write(const std::string &bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
    ::chmod(path().c_str(), 0644);
  }
  static std::vector<std::pair<KeyText, Entry>> some(int count) {
    std::vector<std::pair<KeyText, Entry>> out;
    for (int i = 0; i < count; ++i)
      out.emplace_back(sampleKey(i), sampleEntry(i, 100 + static_cast<std::size_t>(i), 0));
    return out;
  }
  kiln::test::TemporaryDirectory folder;
};

TEST_F(PackTest, HasWhatWasPutIn) {
  const auto entries = some(50);
  write(encodePack(entries));
  const auto pack = packLayer(path());
  EXPECT_EQ(pack->name(), "'" + path() + "'");
  EXPECT_FALSE(pack->isRemote());
  for (const auto &[key, entry] : entries) {
    const auto found = pack->lookup(key);
    ASSERT_TRUE(found.ok()) << found.status().toString();
    ASSERT_TRUE(*found);
    EXPECT_EQ(**found, entry);
  }
  const auto none = pack->lookup(sampleKey(50));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
}

TEST_F(PackTest, TheAssemblerDoesNotMatterAndEverythingElseDoes) {
  auto entries = some(3);
  entries.emplace_back(KeyText(sampleKey(1)).set("assembler", "another"), sampleEntry(7, 10, 0));
  write(encodePack(entries));
  const auto pack = packLayer(path());
  const auto found = pack->lookup(KeyText(sampleKey(1)).set("assembler", "ptxas 12.4"));
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(*found);
  EXPECT_EQ(**found, entries[1].second); // the first of two that differ in nothing else
  for (const char *field : {"program", "configuration", "code target"}) {
    const auto other = pack->lookup(KeyText(sampleKey(1)).set(field, "another"));
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(*other) << field;
  }
  const auto more = pack->lookup(KeyText(sampleKey(1)).set("more", ""));
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
}

TEST_F(PackTest, AFileThatComesLaterIsFound) {
  const auto pack = packLayer(path());
  const auto absent = pack->lookup(sampleKey(0));
  ASSERT_TRUE(absent.ok()) << absent.status().toString();
  EXPECT_FALSE(*absent);
  write("no pack");
  EXPECT_NE(pack->lookup(sampleKey(0)).status().toString().find("is damaged: it has 7 bytes"), std::string::npos);
  write(encodePack(some(1)));
  const auto found = pack->lookup(sampleKey(0));
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(*found);
  std::filesystem::remove(path()); // what was opened stays
  EXPECT_TRUE(*pack->lookup(sampleKey(0)));
}

TEST_F(PackTest, AnEmptyOneHasNothing) {
  write(encodePack({}));
  const auto found = packLayer(path())->lookup(sampleKey(0));
  ASSERT_TRUE(found.ok()) << found.status().toString();
  EXPECT_FALSE(*found);
}

/// One of them is another byte, or the end is missing: each entry is right, or its lookup says what is wrong.
TEST_F(PackTest, DamageIsNeverAnEntry) {
  const auto entries = some(2);
  const std::string good = encodePack(entries);
  const auto check = [&](const std::string &bytes) {
    write(bytes);
    const auto pack = packLayer(path());
    unsigned right = 0;
    for (const auto &[key, entry] : entries) {
      const auto found = pack->lookup(key);
      if (found && *found) {
        EXPECT_EQ(**found, entry);
        ++right;
      }
    }
    return right;
  };
  ASSERT_EQ(check(good), 2u);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    EXPECT_LT(check(bytes), 2u) << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_LT(check(good.substr(0, size)), 2u) << size;
}

/// An index whose checksum is right and whose numbers lie.
TEST_F(PackTest, LyingIndexesAreRefused) {
  const std::string good = encodePack(some(2));
  constexpr std::size_t index = 16 + 2 * 32;
  const auto refusal = [&](std::size_t at, std::string_view bytes) {
    std::string out = good;
    out.replace(at, bytes.size(), bytes);
    const Hash128 sum = hash128(std::string_view(out).substr(0, index));
    for (int i = 0; i < 8; ++i) {
      out[index + static_cast<std::size_t>(i)] = static_cast<char>(sum.low >> (8 * i));
      out[index + 8 + static_cast<std::size_t>(i)] = static_cast<char>(sum.high >> (8 * i));
    }
    write(out);
    return packLayer(path())->lookup(sampleKey(0)).status().toString();
  };
  const std::string_view huge("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  EXPECT_NE(refusal(0, "x").find("does not begin like a pack"), std::string::npos);
  EXPECT_NE(refusal(8, "\2").find("format version 2, this program reads version 1"), std::string::npos);
  EXPECT_NE(refusal(12, huge.substr(0, 4)).find("no room for its 4294967295 entries"), std::string::npos);
  EXPECT_NE(refusal(32, huge).find("lies outside"), std::string::npos);
  EXPECT_NE(refusal(40, huge).find("lies outside"), std::string::npos);
  EXPECT_NE(refusal(16, huge).find("out of order"), std::string::npos);
}

TEST_F(PackTest, OneThatOthersMayWriteToIsRefused) {
  write(encodePack(some(1)));
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  const auto found = packLayer(path())->lookup(sampleKey(0));
  EXPECT_FALSE(found.ok());
  EXPECT_NE(found.status().toString().find("the pack"), std::string::npos) << found.status().toString();
}

} // namespace
} // namespace kiln::cache::test
