#include "runtime/io/File.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
namespace fs = std::filesystem;

namespace {

std::size_t filesIn(const std::string &folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class FileTest : public testing::Test {
protected:
  /// Ends a child by `signal` when it has written half of a file over an older one, and returns the signal it died of.
  int endedWriting(OutputFile::Way way, int signal) {
    const pid_t child = fork();
    if (child == 0) {
      removeTemporariesOnSignals();
      Result<OutputFile> out = OutputFile::create(path, way);
      if (!out.ok() || !out->write("half").ok())
        _exit(1);
      if (way == OutputFile::Way::Named && filesIn(folder.path()) != 2) // the temporary is there
        _exit(2);
      kill(getpid(), signal);
      _exit(3);
    }
    int state = 0;
    waitpid(child, &state, 0);
    return WIFSIGNALED(state) ? WTERMSIG(state) : -WEXITSTATUS(state);
  }

  test::TemporaryDirectory folder;
  std::string path = folder.path() + "/x.txt";
};

constexpr OutputFile::Way bothWays[] = {OutputFile::Way::Nameless, OutputFile::Way::Named};

TEST_F(FileTest, WritesAndReads) {
  for (const OutputFile::Way way : bothWays)
    for (const char *text : {"hello", "again", ""}) { // the second one replaces the first
      const bool exists = fs::exists(path);
      auto out = OutputFile::create(path, way);
      ASSERT_TRUE(out.ok()) << out.status().toString();
      ASSERT_TRUE(*text == 0 || out->write(text).ok());
      EXPECT_EQ(fs::exists(path), exists);
      ASSERT_TRUE(out->commit().ok());
      auto read = readTextFile(path);
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(*read, text);
      EXPECT_EQ(filesIn(folder.path()), 1u);
    }
}

TEST_F(FileTest, WithoutCommitNothingChanges) {
  std::ofstream(path) << "old";
  for (const OutputFile::Way way : bothWays) {
    {
      auto out = OutputFile::create(path, way);
      ASSERT_TRUE(out.ok());
      ASSERT_TRUE(out->write("new").ok());
    }
    EXPECT_EQ(*readTextFile(path), "old");
    EXPECT_EQ(filesIn(folder.path()), 1u);
  }
}

TEST_F(FileTest, NothingIsThereBeforeTheFirstWrite) {
  for (const OutputFile::Way way : bothWays) {
    auto out = OutputFile::create(path, way);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(filesIn(folder.path()), 0u);
  }
}

TEST_F(FileTest, ASignalLeavesNoTemporary) {
  std::ofstream(path) << "old";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(endedWriting(OutputFile::Way::Nameless, signal), signal);
    EXPECT_EQ(endedWriting(OutputFile::Way::Named, signal), signal);
    EXPECT_EQ(filesIn(folder.path()), 1u) << signal;
  }
  // No handler sees this one; only a file without a name leaves nothing, where the file system has them.
  if (const int fd = open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600); fd >= 0) {
    close(fd);
    EXPECT_EQ(endedWriting(OutputFile::Way::Nameless, SIGKILL), SIGKILL);
    EXPECT_EQ(filesIn(folder.path()), 1u);
  }
  EXPECT_EQ(*readTextFile(path), "old");
}

TEST_F(FileTest, AChildLeavesItsParentsTemporaries) {
  auto out = OutputFile::create(path, OutputFile::Way::Named);
  ASSERT_TRUE(out.ok() && out->write("x").ok());
  const pid_t child = fork();
  if (child == 0) {
    removeListedTemporaries();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(filesIn(folder.path()), 1u);
  EXPECT_TRUE(out->commit().ok());
  EXPECT_EQ(*readTextFile(path), "x");
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

TEST_F(FileTest, DevicesAndPipesAreWrittenAndStay) {
  auto null = OutputFile::create("/dev/null");
  ASSERT_TRUE(null.ok());
  EXPECT_TRUE(null->write("x").ok() && null->commit().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  auto full = OutputFile::create("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_NE(full->write("x").toString().find("No space left on device (make room"), std::string::npos);
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  auto out = OutputFile::create(pipe);
  ASSERT_TRUE(out.ok());
  std::string read;
  std::thread reader([&] { std::getline(std::ifstream(pipe), read); });
  EXPECT_TRUE(out->write("through").ok() && out->commit().ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(OutputFile::create(folder.path()).ok());
  EXPECT_FALSE(OutputFile::create("").ok());
  EXPECT_FALSE(OutputFile::create(folder.path() + "/missing/x").ok());
  EXPECT_FALSE(InputFile::open(folder.path()).ok());
  EXPECT_FALSE(InputFile::open("/dev/zero").ok());
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(InputFile::open(pipe).ok());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {AF_UNIX, {}};
  const std::string name = folder.path() + "/s";
  std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
  EXPECT_NE(OutputFile::create(name).status().message().find("it is a socket"), std::string::npos);
  close(socket);
}

TEST_F(FileTest, MessagesNameTheFileAndTheReason) {
  const Status missing = readTextFile(path).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_NE(missing.message().find(path), std::string::npos);
  EXPECT_NE(missing.message().find("No such file"), std::string::npos);
  EXPECT_EQ(missing.remedy(), "check the name and the folder");
  const Status unwritable = OutputFile::create(folder.path() + "/missing/x").status();
  EXPECT_EQ(unwritable.code(), StatusCode::IoError);
  EXPECT_NE(unwritable.message().find("missing/x"), std::string::npos);
  EXPECT_EQ(unwritable.remedy(), "the folder must exist and be writable");
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
  EXPECT_NE(written.toString().find("File too large (raise the largest size of a file"), std::string::npos)
      << written.toString();
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
