#include "runtime/cache/Entry.h"
#include "runtime/cache/Hash.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace kiln;
using namespace kiln::cache;

TEST(Hash, IsXxh3OfKnownTexts) {
  EXPECT_EQ(hexText(hash128("")), "99aa06d3014798d86001c324468d497f"); // published with XXH3
  EXPECT_EQ(hexText({0x0123456789abcdef, 0xfedcba9876543210}), "0123456789abcdeffedcba9876543210");
}

TEST(Entry, FileIsAsDocumented) {
  const Entry entry{EntryKind::Cubin,
                    std::string("\x7f"
                                "ELF",
                                4),
                    "{}"};
  const std::string file = encodeEntry("key", entry);
  std::string expected("\x89KILN\r\n\x1a"
                       "\1\0\0\0"
                       "\2\0\0\0"
                       "\3\0\0\0\0\0\0\0"
                       "\2\0\0\0\0\0\0\0"
                       "\4\0\0\0\0\0\0\0"
                       "key{}\x7f"
                       "ELF",
                       49);
  const XXH128_hash_t sum = XXH3_128bits(expected.data(), expected.size());
  for (std::uint64_t half : {sum.low64, sum.high64})
    for (int i = 0; i < 8; ++i)
      expected += static_cast<char>(half >> (8 * i));
  EXPECT_EQ(file, expected);

  const Result<EntryView> view = decodeEntry(file);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(view->kind, EntryKind::Cubin);
  EXPECT_EQ(view->keyText, "key");
  EXPECT_EQ(view->metadata, "{}");
  EXPECT_EQ(view->payload, entry.payload);
}

static std::string withChecksum(std::string front) {
  const XXH128_hash_t sum = XXH3_128bits(front.data(), front.size());
  for (std::uint64_t half : {sum.low64, sum.high64})
    for (int i = 0; i < 8; ++i)
      front += static_cast<char>(half >> (8 * i));
  return front;
}

/// A file whose checksum is right and whose header lies.
TEST(Entry, LyingHeadersAreRefused) {
  const std::string good = encodeEntry("key", {EntryKind::Ptx, "payload", "{}"});
  const std::string front = good.substr(0, good.size() - entryChecksumBytes);
  ASSERT_TRUE(decodeEntry(withChecksum(front)).ok());
  const auto with = [&](std::size_t at, std::string_view bytes) {
    std::string out = front;
    out.replace(at, bytes.size(), bytes);
    return decodeEntry(withChecksum(out)).status().message();
  };
  const std::string_view huge("\xff\xff\xff\xff\xff\xff\xff\xff", 8), half("\0\0\0\0\0\0\0\x80", 8);
  EXPECT_NE(with(0, "X").find("does not begin like an entry"), std::string::npos);
  EXPECT_NE(with(8, std::string_view("\2", 1)).find("version 2, this program reads version 1"), std::string::npos);
  EXPECT_NE(with(12, std::string_view("\0", 1)).find("kind is 0"), std::string::npos);
  EXPECT_NE(with(12, std::string_view("\4", 1)).find("kind is 4"), std::string::npos);
  for (std::size_t at : {16, 24, 32}) {
    EXPECT_NE(with(at, huge).find("cut short"), std::string::npos);
    EXPECT_NE(with(at, half).find("cut short"), std::string::npos);
    EXPECT_NE(with(at, std::string_view("\0", 1)).find("follow its end"), std::string::npos);
  }
  // Two halves of 2^64 sum to nothing.
  std::string twice = front;
  twice.replace(16, 8, half);
  twice.replace(24, 8, half);
  EXPECT_FALSE(decodeEntry(withChecksum(twice)).ok());
  EXPECT_NE(decodeEntryHeader(front, maxEntryFileBytes + 1).status().message().find("limit"), std::string::npos);
}

TEST(Entry, EmptyPartsAreFine) {
  const std::string file = encodeEntry("", {EntryKind::Ptx, "", ""});
  EXPECT_EQ(file.size(), entryHeaderBytes + entryChecksumBytes);
  EXPECT_TRUE(decodeEntry(file).ok());
}
