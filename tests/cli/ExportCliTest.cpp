// `kiln compile --emit c`: what is written compiles as C11 and as C++ without CUDA's headers, launches by a driver that
// records, and refuses what its code does not hold for.
#include "runtime/io/File.h"
#include "tests/cli/Program.h"

#include <cstdlib>
#include <fstream>
#include <sys/wait.h>

namespace kiln::test {
namespace {

/// A driver: one GPU of compute capability $CAPABILITY, whose calls are lines of standard output.
constexpr const char *driver = R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int fails(const char *name) { const char *f = getenv("FAIL"); return f && !strcmp(f, name) ? 700 : 0; }
int cuCtxGetDevice(int *device) { *device = 3; return fails("device"); }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int of = atoi(getenv("CAPABILITY"));
  *value = attribute == 75 ? of / 10 : attribute == 76 ? of % 10 : -1;
  return device == 3 ? 0 : 101;
}
int cuModuleLoadData(void **module, const void *image) {
  const unsigned char *c = image;
  *module = (void *)8;
  const char *what = c[0] == 0x7f && c[1] == 'E' ? "ELF" : strstr(image, ".target ") + 8;
  printf("load %.*s\n", (int)strcspn(what, "\n"), what);
  return fails("load");
}
int cuModuleUnload(void *module) { printf("unload %d\n", (int)(long)module); return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = (void *)16; printf("function %s of %d\n", name, (int)(long)module); return fails("function");
}
int cuFuncGetAttribute(int *value, int attribute, void *function) { *value = 0; return attribute == 1 && function ? 0 : 1; }
int cuFuncSetAttribute(void *function, int attribute, int value) {
  printf("attribute %d = %d of %d\n", attribute, value, (int)(long)function); return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **p, void **extra) {
  printf("launch %d grid %u %u %u block %u %u %u shared %u stream %d: %llx %llx %g %d\n", (int)(long)f, gx, gy, gz, bx,
         by, bz, shared, (int)(long)stream, *(unsigned long long *)p[0], *(unsigned long long *)p[1], *(float *)p[2],
         *(int *)p[3]);
  return extra ? 1 : fails("launch");
}
)";

/// ./program X OUT N GRID
constexpr const char *program = R"(#include "scaled.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  scaled_kernel k;
  int s = scaled_load(&k);
  if (s == 0 && argc == 5) {
    s = scaled_launch(&k, (CUstream)32, (unsigned)atoi(argv[4]), 2, 1, strtoull(argv[1], 0, 16), strtoull(argv[2], 0, 16),
                      0.5f, atoi(argv[3]));
    scaled_unload(&k);
    if (s == 0 && (s = scaled_launch(&k, 0, 1, 1, 1, 0, 0, 0, 0)) != -2)
      return 99;
    s = s == -2 ? 0 : s;
  }
  printf("%s\n", scaled_message(s));
  return s < 0 ? -s : s != 0;
}
)";

class ExportCliTest : public CachedCliTest {
protected:
  int shell(const std::string &command) {
    const int state = std::system(("cd '" + folder.path() + "' && (" + command + ") >out.txt 2>&1").c_str());
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }
  std::string printed() const { return *readTextFile(file("out.txt")); }

  Outcome exported(std::vector<std::string> words) {
    words.insert(words.begin(), {"compile", KILN_SOURCE_DIR "/docs/examples/scale.mlir", "--emit", "c"});
    return kiln(words);
  }
  /// The program, of C that was exported as scaled.
  void build() {
    std::ofstream(file("driver.c")) << driver;
    std::ofstream(file("main.c")) << program;
    ASSERT_EQ(shell("cc -std=c11 -Wall -Wextra -Werror -pedantic -c scaled.c main.c && cc -std=c11 -c driver.c && "
                    "cc scaled.o main.o driver.o -o program"),
              0)
        << printed();
    ASSERT_EQ(
        shell("echo '#include \"scaled.h\"' >header.cpp && c++ -std=c++17 -Wall -Werror -fsyntax-only header.cpp"), 0)
        << printed();
  }
};

TEST_F(ExportCliTest, LaunchesTheCodeOfTheGpuAndChecksWhatItReliesOn) {
  const Outcome made = exported({"--target", "sm_80,sm_90a", "--divisible", "x=16", "--divisible", "out=16", "--equals",
                                 "n=1000", "--nvjitlink", "none", "--ptxas", "none", "-o", file("scaled")});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.err.find("the driver will assemble"), std::string::npos) << made.err;
  build();
  const std::string launch = "function scale of 8\nlaunch 16 grid 2 2 1 block 128 1 1 shared 0 stream 32: 100 200 0.5 "
                             "1000\nunload 8\ngood\n";
  EXPECT_EQ(shell("CAPABILITY=90 ./program 100 200 1000 2"), 0);
  EXPECT_EQ(printed(), "load sm_90a\n" + launch);
  for (const char *gpu : {"80", "86", "120"}) { // PTX is for later GPUs, too
    EXPECT_EQ(shell(std::string("CAPABILITY=") + gpu + " ./program 100 200 1000 2"), 0);
    EXPECT_EQ(printed(), "load sm_80\n" + launch);
  }
  EXPECT_EQ(shell("CAPABILITY=75 ./program"), 1);
  EXPECT_EQ(printed(), "there is no code for this GPU, only for sm_90a, sm_80\n");
  const auto refused = [&](const std::string &call, const std::string &message) {
    EXPECT_NE(shell("CAPABILITY=80 " + call), 0);
    EXPECT_EQ(printed().find("launch"), std::string::npos) << printed();
    EXPECT_NE(printed().find(message), std::string::npos) << printed();
  };
  refused("./program 104 200 1000 2", "argument 0 'x' must be a multiple of 16");
  refused("./program 100 208 1000 2", "argument 1 'out' must be a multiple of 16");
  refused("./program 100 200 999 2", "argument 3 'n' must be 1000");
  refused("./program 100 200 1000 0", "grid_x, grid_y and grid_z must be at least 1");
  refused("FAIL=load ./program", "an error of the driver");
  refused("FAIL=function ./program", "unload 8"); // nothing stays loaded
  EXPECT_EQ(shell("CAPABILITY=80 FAIL=launch ./program 100 200 1000 2"), 1);
  const std::string header = *readTextFile(file("scaled.h"));
  for (const char *part : {"argument 3 'n' must be 1000", "sm_90a: 128 threads", "factor: f32", "uint64_t x"})
    EXPECT_NE(header.find(part), std::string::npos) << header;
}

TEST_F(ExportCliTest, AnAssemblersCodeIsForItsGenerationAlone) {
  const Outcome made = exported({"--target", "sm_80", "-o", file("scaled")});
  ASSERT_EQ(made.status, 0) << made.err;
  if (made.err.find("the driver will assemble") != std::string::npos)
    GTEST_SKIP() << made.err;
  build();
  EXPECT_EQ(shell("CAPABILITY=86 ./program 4 8 7 1"), 0)
      << printed(); // nothing was promised but elements' own alignment
  EXPECT_EQ(printed().find("load ELF\n"), 0u) << printed();
  EXPECT_NE(shell("CAPABILITY=86 ./program 6 8 7 1"), 0);
  EXPECT_NE(printed().find("argument 0 'x' must be a multiple of 4"), std::string::npos) << printed();
  EXPECT_NE(shell("CAPABILITY=90 ./program"), 0);
}

TEST_F(ExportCliTest, ThePagesProgramIsGood) {
  const std::string page = *readTextFile(KILN_SOURCE_DIR "/docs/commands.md"), open = "```c\n";
  const std::size_t from = page.find(open);
  ASSERT_NE(from, std::string::npos);
  const std::string code = page.substr(from + open.size(), page.find("```", from + 3) - from - open.size());
  const Outcome made = exported({"--target", "sm_80,sm_90a", "--divisible", "x=16", "--divisible", "out=16",
                                 "--nvjitlink", "none", "--ptxas", "none", "-o", file("scale_by")});
  ASSERT_EQ(made.status, 0) << made.err;
  std::ofstream(file("driver.c")) << driver;
  std::ofstream(file("page.c")) << "#include \"scale_by.h\"\n#include <stdio.h>\nint main(void) {\n"
                                   "CUstream stream = 0;\nuint64_t x = 8, out = 16;\nint32_t n = 600;\n"
                                << code << "}\n";
  EXPECT_EQ(shell("cc -std=c11 -Wall -Werror page.c scale_by.c -c && cc -std=c11 -c driver.c && "
                  "cc page.o scale_by.o driver.o -o page && CAPABILITY=80 ./page"),
            0)
      << printed();
  EXPECT_NE(printed().find("argument 0 'x' must be a multiple of 16\n"), std::string::npos) << printed();
}

TEST_F(ExportCliTest, WrongWordsAreRefused) {
  const auto refused = [&](const Outcome &o, const std::string &part) {
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  refused(exported({}), "name them with -o NAME");
  refused(exported({"-o", file("a-b")}), "no word of C");
  refused(exported({"-o", file("scaled.c")}), "without a suffix");
  refused(exported({"-o", file("s"), "--target", "sm_80,sm_80"}), "named twice");
  refused(exported({"-o", file("s"), "--target", "sm_80,"}), "target");
  refused(exported({"-o", file("s"), "--arch", "sm_90a"}), "--arch");
  EXPECT_FALSE(std::ifstream(file("s.c")).good());
}

} // namespace
} // namespace kiln::test
