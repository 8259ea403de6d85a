// Several processes, and what a process that only hits the cache has mapped.
#include "tests/jit/JitFixture.h"

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
    const std::string out = output(number), cache = folder.path() + "/cache", program = path();
    const pid_t child = ::fork();
    if (child == 0) {
      if (!std::freopen(out.c_str(), "w", stdout))
        ::_exit(99);
      ::execl(KILN_BINARY_DIR "/tests/kiln-jit-child", "kiln-jit-child", cache.c_str(), compiler, program.c_str(),
              static_cast<char *>(nullptr));
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
