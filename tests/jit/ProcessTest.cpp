// Several processes, and what a process that only hits the cache has mapped.
#include "tests/jit/JitFixture.h"

#include <cstdio>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class ProcessTest : public JitTest {
protected:
  void write(const std::string &program) { std::ofstream(path()) << program; }
  std::string path() const { return folder.path() + "/program"; }

  /// Starts kiln-jit-child; its output goes to the file `number`.
  pid_t start(unsigned number, const char *compiler = fakeCompiler) {
    return startWith(number, {"kiln-jit-child", folder.path() + "/cache", compiler, path()});
  }
  pid_t startWith(unsigned number, const std::vector<std::string> &words) {
    const std::string out = output(number);
    std::vector<char *> pointers;
    for (const std::string &word : words)
      pointers.push_back(const_cast<char *>(word.c_str()));
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      if (!std::freopen(out.c_str(), "w", stdout))
        ::_exit(99);
      ::execv(KILN_BINARY_DIR "/tests/kiln-jit-child", pointers.data());
      ::_exit(98);
    }
    return child;
  }
  std::string output(unsigned number) const { return folder.path() + "/output" + std::to_string(number); }
  std::string finish(pid_t child, unsigned number) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    std::ifstream in(output(number));
    std::string line;
    std::getline(in, line);
    return line;
  }
};

TEST_F(ProcessTest, FourProcessesCompileOnce) {
  write(addProgram("sleep 300\n"));
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 4; ++i)
    children.push_back(start(i));
  unsigned compiled = 0;
  for (unsigned i = 0; i < 4; ++i)
    compiled += finish(children[i], i).starts_with("compiles=1 ");
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(compiled, 1u);
}

/// Each process wants all of the keys, and begins with another one; the compiles are long enough to meet each other.
TEST_F(ProcessTest, SixtyFourProcessesCompileEightKeysOnceEach) {
  constexpr unsigned processes = 64, keys = 8;
  const std::string programs = folder.path() + "/key";
  for (unsigned k = 0; k < keys; ++k)
    std::ofstream(programs + std::to_string(k)) << addProgram("sleep " + std::to_string(k + 1) + "\n");
  for (int round = 0; round < pick(1, 100); ++round) {
    const std::string cache = folder.path() + "/cache" + std::to_string(round);
    std::filesystem::remove(compileLog);
    std::vector<pid_t> children;
    for (unsigned i = 0; i < processes; ++i) {
      std::vector<std::string> words = {"kiln-jit-child", cache, fakeCompiler};
      for (unsigned k = 0; k < keys; ++k)
        words.push_back(programs + std::to_string((i + k) % keys));
      children.push_back(startWith(i, words));
    }
    unsigned compiled = 0, found = 0;
    for (unsigned i = 0; i < processes; ++i) {
      unsigned here = 0, disk = 0;
      EXPECT_EQ(std::sscanf(finish(children[i], i).c_str(), "compiles=%u disk=%u", &here, &disk), 2);
      compiled += here, found += disk;
    }
    EXPECT_EQ(compiles(), keys);
    EXPECT_EQ(compiled, keys);
    EXPECT_EQ(found, (processes - 1) * keys);
    ASSERT_FALSE(HasFailure()) << "round " << round;
    std::filesystem::remove_all(cache);
  }
}

TEST_F(ProcessTest, AHitMapsNoCompiler) {
  write(addProgram());
  const std::string miss = finish(start(0), 0);
  EXPECT_TRUE(miss.starts_with("compiles=1 disk=0 compiler=mapped llvm=absent")) << miss;
  const std::string hit = finish(start(1), 1);
  EXPECT_TRUE(hit.starts_with("compiles=0 disk=1 compiler=absent llvm=absent")) << hit;
  EXPECT_EQ(compiles(), 1u);
}

/// A process that dies while it compiles leaves the lock to the next one.
TEST_F(ProcessTest, AKilledCompileIsDoneByTheNext) {
  write(addProgram("sleep 60000\n"));
  const pid_t victim = start(0);
  for (unsigned i = 0; i < 500 && compiles() == 0; ++i)
    ::usleep(10000);
  ASSERT_EQ(compiles(), 1u);
  ::kill(victim, SIGKILL);
  int status = 0;
  ::waitpid(victim, &status, 0);
  write(addProgram("sleep 1\n"));
  EXPECT_TRUE(finish(start(1), 1).starts_with("compiles=1 "));
}

} // namespace
