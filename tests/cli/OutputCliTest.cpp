// Results that do not arrive, outputs that are no ordinary files, and runs that are interrupted.
#include "tests/cli/Program.h"

#include "runtime/io/Npy.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

class OutputCliTest : public CachedCliTest {
protected:
  /// A run of `add` whose two buffers have `n` elements of fp32.
  Words addRun(unsigned n, const std::string &first, const std::string &second) {
    return {"run",      write("add.ptx", addPtx),
            "--grid",   std::to_string((n + 255) / 256),
            "--block",  "256",
            "--arg",    floats("x.npy", n),
            "--arg",    "out:f32:" + std::to_string(n),
            "--arg",    "u32:" + std::to_string(n),
            "--output", "0:" + first,
            "--output", "1:" + second,
            "--target", "sm_80"};
  }
};

TEST_F(OutputCliTest, AFullStandardOutputIsAFailure) {
  const std::string x = floats("x.npy", 64);
  for (const Words &words :
       {Words{"compile", "softmax", "--target", "sm_80"},
        Words{"run", "add", "--x", x, "--y", x, "--target", "sm_80", "--json"},
        Words{"run", "add", "--x", x, "--y", x, "--target", "sm_80"},
        Words{"check", "copy", "--target", "sm_80", "--dtype", "f32", "--schedule", "in-order"},
        Words{"demo", "copy", "--target", "sm_80", "--dtype", "f32"},
        Words{"bench", "copy", "--target", "sm_80", "--dtype", "f32"}, Words{"explain", "add"}, Words{"devices"},
        Words{"devices", "--json"}, Words{"cache", "stats"}, Words{"--version"}, Words{"run", "--help"}}) {
    const Outcome o = kilnInto("/dev/full", words);
    EXPECT_EQ(o.status, 2) << words[0] << o.err;
    EXPECT_NE(o.err.find("kiln: cannot write standard output"), std::string::npos) << words[0] << o.err;
  }
  // A worse status stays.
  const Outcome findings =
      kilnInto("/dev/full", {"run", write("add.ptx", addPtx), "--grid", "1", "--block", "64", "--arg", x, "--arg",
                             "out:f32:63", "--arg", "u32:64", "--target", "sm_80"});
  EXPECT_EQ(findings.status, 1) << findings.err;
}

TEST_F(OutputCliTest, AClosedStandardOutputIsAFailureAndNoFilesDescriptor) {
  const std::string y = file("y.npy");
  const Outcome o = kilnInto("", addRun(64, "/dev/null", y));
  EXPECT_EQ(o.status, 2) << o.err;
  EXPECT_NE(o.err.find("kiln: cannot write standard output: Bad file descriptor"), std::string::npos) << o.err;
  EXPECT_TRUE(readNpy(y).ok()) << readNpy(y).status().toString(); // nothing was printed into it
  EXPECT_EQ(kilnInto("", {"run", "nothing"}).status, 2);
}

TEST_F(OutputCliTest, DevicesAndPipesAreWritten) {
  EXPECT_EQ(kiln({"compile", "add", "--target", "sm_80", "-o", "/dev/null"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const Outcome full = kiln({"compile", "add", "--target", "sm_80", "-o", "/dev/full"});
  EXPECT_EQ(full.status, 2);
  EXPECT_NE(full.err.find("cannot write '/dev/full': No space left on device (make room there"), std::string::npos)
      << full.err;
  const std::string pipe = file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    const int fd = open(pipe.c_str(), O_RDONLY);
    char bytes[4096];
    for (ssize_t n; (n = ::read(fd, bytes, sizeof bytes)) > 0;)
      read.append(bytes, static_cast<std::size_t>(n));
    close(fd);
  });
  const Outcome o = kiln({"compile", "add", "--target", "sm_80", "-o", pipe});
  if (o.status != 0) // nobody opened it
    close(open(pipe.c_str(), O_WRONLY | O_NONBLOCK));
  reader.join();
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(read, kiln({"compile", "add", "--target", "sm_80"}).out);
  EXPECT_EQ(files(), Words{"pipe"});
}

/// Ended when the first output is written whole and none has its name yet: the second one is a pipe that holds less.
TEST_F(OutputCliTest, AnInterruptedRunLeavesNothing) {
  const std::string pipe = file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Words words = addRun(100000, file("x2.npy"), pipe);
  const Words before = files();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int read = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(read, 0);
    const pid_t child = startKiln(words);
    ASSERT_GT(child, 0);
    pollfd ready{read, POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 60000), 1);
    EXPECT_EQ(kill(child, signal), 0);
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == signal) << state;
    close(read);
    Words after = files();
    std::erase(after, "cache");
    EXPECT_EQ(after, before) << signal;
  }
}

} // namespace
} // namespace kiln::test
