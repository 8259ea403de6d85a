// Every byte of a cache entry flipped, every truncation: the call compiles again, gives the right result, and repairs
// the entry.  tests/cache has the same of the cache alone.
#include "tests/jit/JitFixture.h"

#include <filesystem>

using namespace kiln;
using namespace kiln::test;

namespace {

class DamagedEntryTest : public JitTest {
protected:
  void SetUp() override {
    JitTest::SetUp();
    ASSERT_TRUE(jit->compile(addSource()).ok());
    // The entry is the file that holds the PTX.
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder.path() + "/cache"))
      if (file.is_regular_file() && read(file.path()).find(addPtx) != std::string::npos)
        path = file.path();
    ASSERT_FALSE(path.empty());
    good = read(path);
  }

  static std::string read(const std::filesystem::path &from) {
    std::ifstream in(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void expectRepaired(const std::string &bytes, const std::string &what) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const unsigned before = compiles();
    auto fresh = makeJit();
    auto loaded = fresh->compile(addSource());
    ASSERT_TRUE(loaded.ok()) << what << ": " << loaded.status().toString();
    ASSERT_EQ((*loaded)->report().source, FirstCallReport::Source::Compiled) << what;
    ASSERT_EQ(compiles(), before + 1) << what;
    ASSERT_TRUE(read(path) == good) << what << ": the entry is not as it was";
    if (++checked % 50 == 0) {
      JitKernel *add = kernelOf(*fresh, addSource());
      auto x = floats(128, 1, 1), y = floats(128, 0, 2), out = floats(128, -1, 0);
      ASSERT_TRUE(add->launch({1}, nullptr, *x, *y, *out, 128).ok()) << what;
      float last = 0;
      ASSERT_TRUE(out->copyToHost(4 * 127, std::as_writable_bytes(std::span(&last, 1))).ok());
      ASSERT_EQ(last, 128 + 254) << what;
    }
  }

  std::filesystem::path path;
  std::string good;
  unsigned checked = 0;
};

TEST_F(DamagedEntryTest, EveryFlippedByteIsCompiledAgain) {
  for (std::size_t at = 0; at < good.size(); at += pick<std::size_t>(61, 1)) {
    std::string bad = good;
    bad[at] = static_cast<char>(~bad[at]);
    ASSERT_NO_FATAL_FAILURE(expectRepaired(bad, "byte " + std::to_string(at)));
  }
}

TEST_F(DamagedEntryTest, EveryTruncationIsCompiledAgain) {
  for (std::size_t bytes = 0; bytes < good.size(); bytes += pick<std::size_t>(61, 1))
    ASSERT_NO_FATAL_FAILURE(expectRepaired(good.substr(0, bytes), std::to_string(bytes) + " bytes"));
}

} // namespace
