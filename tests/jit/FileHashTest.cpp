// A changed compiler never hits; an unchanged one is not read again.
#include "runtime/jit/FileHash.h"
#include "tests/jit/JitFixture.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class FileHashTest : public JitTest {
protected:
  void SetUp() override {
    JitTest::SetUp();
    cache::CacheOptions how;
    how.directory = folder.path() + "/memo";
    auto opened = cache::KernelCache::open(how);
    ASSERT_TRUE(opened.ok()) << opened.status().toString();
    memo = std::move(*opened);
    path = folder.path() + "/file";
    write("first contents");
  }
  void write(const std::string &contents) { std::ofstream(path) << contents; }
  /// As if the time had come at which a stamp of now is remembered.
  void settle() {
    ::usleep(20000); // more than one tick of the file system's clock
    later += FileHashes::settleSeconds;
  }
  FileHashes::Hashed hash(const FileHashes &hashes) {
    auto hashed = hashes.hash(path);
    EXPECT_TRUE(hashed.ok()) << hashed.status().toString();
    return *hashed;
  }
  std::shared_ptr<cache::KernelCache> memo;
  std::string path;
  std::int64_t later = 0;
};

/// By its definition, one segment after the other: whatever threads do.
TEST_F(FileHashTest, TheHashIsThatOfTheContents) {
  const auto expected = [](const std::string &contents) {
    constexpr std::size_t segment = std::size_t(4) << 20;
    std::string hashes;
    for (std::size_t i = 0; i <= contents.size() / segment; ++i) {
      const std::string text = cache::hexText(cache::hash128(contents.substr(i * segment, segment)));
      for (std::size_t k = 0; k < text.size(); k += 2)
        hashes.push_back(static_cast<char>(std::stoi(text.substr(k, 2), nullptr, 16)));
    }
    return cache::hexText(cache::hash128(hashes));
  };
  std::string contents(std::size_t(9) << 20, 'k');
  for (std::size_t i = 0; i < contents.size(); i += 4097)
    contents[i] = static_cast<char>(i / 4097);
  for (const std::size_t size : {std::size_t(0), std::size_t(5), std::size_t(4) << 20, contents.size() - 3}) {
    write(contents.substr(0, size));
    EXPECT_EQ(hash(FileHashes(nullptr)).hash, expected(contents.substr(0, size))) << size;
  }
  write(contents);
  const std::string whole = hash(FileHashes(nullptr)).hash;
  EXPECT_EQ(whole, expected(contents));
  for (const std::size_t at : {std::size_t(0), std::size_t(5) << 20, contents.size() - 1}) {
    std::string other = contents;
    other[at] ^= 1;
    write(other);
    EXPECT_NE(hash(FileHashes(nullptr)).hash, whole) << at;
  }
}

TEST_F(FileHashTest, RememberedOnceTheFileIsAtRestAndForgottenWhenItChanges) {
  // The clock goes on while the test runs: what is written later is as young as what was written first.
  const FileHashes hashes(memo, [&] { return std::time(nullptr) + later; });
  const std::string first = hash(hashes).hash;
  EXPECT_TRUE(hash(hashes).read); // too young to be trusted
  settle();
  EXPECT_TRUE(hash(hashes).read);
  EXPECT_FALSE(hash(hashes).read);
  EXPECT_EQ(hash(hashes).hash, first);

  // The same size and the old time of modification: the time of change gives it away.
  struct stat before{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  write("FIRST contents");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  later = 0;
  const FileHashes::Hashed changed = hash(hashes);
  EXPECT_TRUE(changed.read);
  EXPECT_NE(changed.hash, first);

  // Replaced by another file with the same times.
  settle();
  EXPECT_TRUE(hash(hashes).read);
  EXPECT_FALSE(hash(hashes).read);
  std::ofstream(path + "2") << "Third contents";
  ASSERT_EQ(::utimensat(AT_FDCWD, (path + "2").c_str(), times, 0), 0);
  ASSERT_EQ(::rename((path + "2").c_str(), path.c_str()), 0);
  EXPECT_TRUE(hash(hashes).read);
  EXPECT_NE(hash(hashes).hash, changed.hash);
}

TEST_F(FileHashTest, MissingFilesAreNamed) {
  path += "x";
  const Status s = FileHashes(memo).hash(path).status();
  EXPECT_EQ(s.code(), StatusCode::NotFound);
  EXPECT_NE(s.message().find(path), std::string::npos);
}

/// One byte of the compiler that no test reads: its kernels are compiled anew.
TEST_F(FileHashTest, AChangedCompilerMisses) {
  const std::string compiler = folder.path() + "/libkiln-compiler.so";
  std::filesystem::copy_file(fakeCompiler, compiler);
  JitOptions options = jitOptions();
  options.knobs.compiler = compiler;
  ASSERT_TRUE(makeJit(options)->compile(addSource()).ok());
  ASSERT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 1u);
  const std::string other = folder.path() + "/libkiln-compiler-2.so";
  std::filesystem::copy_file(fakeCompiler, other);
  options.knobs.compiler = other; // another path with the same contents
  ASSERT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 1u);
  std::ofstream(other, std::ios::app) << '\n';
  options.explainMisses = true;
  auto last = makeJit(options);
  auto loaded = last->compile(addSource());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(compiles(), 2u);
  EXPECT_NE((*loaded)->report().reason.find("differs in compiler"), std::string::npos) << (*loaded)->report().reason;
}

} // namespace
