#include "runtime/io/File.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
namespace fs = std::filesystem;

namespace {

std::size_t filesIn(const std::string &folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class FileTest : public testing::Test {
protected:
  test::TemporaryDirectory folder;
  std::string path = folder.path() + "/x.txt";
};

TEST_F(FileTest, WritesAndReads) {
  auto out = OutputFile::create(path);
  ASSERT_TRUE(out.ok()) << out.status().toString();
  ASSERT_TRUE(out->write("hello").ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(out->commit().ok());
  auto text = readTextFile(path);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "hello");
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

TEST_F(FileTest, WithoutCommitNothingChanges) {
  std::ofstream(path) << "old";
  {
    auto out = OutputFile::create(path);
    ASSERT_TRUE(out.ok());
    ASSERT_TRUE(out->write("new").ok());
  }
  EXPECT_EQ(*readTextFile(path), "old");
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

TEST_F(FileTest, FollowsSymbolicLinks) {
  std::ofstream(path) << "old";
  const std::string link = folder.path() + "/link";
  fs::create_symlink(path, link);
  auto out = OutputFile::create(link);
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(out->write("new").ok());
  ASSERT_TRUE(out->commit().ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*readTextFile(path), "new");
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_FALSE(OutputFile::create(folder.path()).ok());
  EXPECT_FALSE(OutputFile::create("/dev/null").ok());
  EXPECT_FALSE(OutputFile::create("").ok());
  EXPECT_FALSE(OutputFile::create(folder.path() + "/missing/x").ok());
  EXPECT_FALSE(InputFile::open(folder.path()).ok());
  EXPECT_FALSE(InputFile::open("/dev/zero").ok());
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(InputFile::open(pipe).ok());
  EXPECT_FALSE(OutputFile::create(pipe).ok());
}

TEST_F(FileTest, MessagesNameTheFileAndTheReason) {
  const Status missing = readTextFile(path).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_NE(missing.message().find(path), std::string::npos);
  EXPECT_NE(missing.message().find("No such file"), std::string::npos);
  const Status unwritable = OutputFile::create(folder.path() + "/missing/x").status();
  EXPECT_EQ(unwritable.code(), StatusCode::IoError);
  EXPECT_NE(unwritable.message().find("missing/x"), std::string::npos);
  std::ofstream(path) << "12345";
  EXPECT_NE(readTextFile(path, 4).status().message().find("5 bytes; the limit is 4"), std::string::npos);
}

TEST_F(FileTest, AWriteThatFailsLeavesNothing) {
  // A file size limit of 4 bytes stands for a full disk.
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{4, old.rlim_max};
  const auto oldHandler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status written;
  {
    auto out = OutputFile::create(path);
    if (out.ok())
      written = out->write("more than four bytes");
  }
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, oldHandler);
  EXPECT_EQ(written.code(), StatusCode::IoError);
  EXPECT_NE(written.message().find("File too large"), std::string::npos) << written.message();
  EXPECT_EQ(filesIn(folder.path()), 0u);
}

TEST_F(FileTest, UnreadableFile) {
  std::ofstream(path) << "secret";
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  if (access(path.c_str(), R_OK) == 0)
    GTEST_SKIP() << "this user reads every file (root)";
  EXPECT_NE(readTextFile(path).status().message().find("Permission denied"), std::string::npos);
}

} // namespace
