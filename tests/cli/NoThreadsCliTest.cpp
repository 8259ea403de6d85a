// A compile where the system gives no thread for it: a process serves, and without either the user is told.
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

class NoThreadsCliTest : public CliTest {
protected:
  void SetUp() override { setenv("TMPDIR", folder.path().c_str(), 1); } // where a reproducer would go
  void TearDown() override {
    unsetenv("TMPDIR");
    for (const char *variable : {"LD_PRELOAD", "KILN_TEST_THREADS", "KILN_TEST_PROCESSES"})
      unsetenv(variable);
  }
  static void allow(const char *threads, const char *processes) {
    setenv("LD_PRELOAD", KILN_BINARY_DIR "/tests/libkiln-no-threads.so", 1);
    setenv("KILN_TEST_THREADS", threads, 1);
    setenv("KILN_TEST_PROCESSES", processes, 1);
  }
  const std::vector<std::string> compile = {"compile", "add", "--target", "sm_80"};
};

TEST_F(NoThreadsCliTest, AProcessServesWhereThereIsNoThread) {
  const Outcome usual = kiln(compile);
  ASSERT_EQ(usual.status, 0) << usual.err;
  allow("0", "1"); // the helper has no thread either, and needs none
  const Outcome o = kiln(compile);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, usual.out);
  EXPECT_EQ(o.err, usual.err);
}

TEST_F(NoThreadsCliTest, WhatIsForTheBackgroundIsDoneAtOnce) {
  std::ofstream(file("calls")) << "add --dtype f32 --with x=64 --with y=64\n";
  allow("0", "1");
  const Outcome o = kiln({"warm", file("calls"), "--target", "sm_80", "--cache-dir", file("cache")});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, "1 calls for sm_80: 1 kernels compiled, 0 found, 0 calls failed\n");
}

TEST_F(NoThreadsCliTest, WithoutEitherTheUserIsTold) {
  allow("0", "0");
  const Outcome o = kiln(compile);
  EXPECT_EQ(o.status, 4) << o.out;
  EXPECT_EQ(o.out, "");
  EXPECT_NE(o.err.find("the compiler could not start: "), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("Resource temporarily unavailable"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("raise the limits on address space (ulimit -v) and on tasks"), std::string::npos) << o.err;
  EXPECT_EQ(files(), std::vector<std::string>()) << "nothing crashed: there is nothing to reproduce";
}

} // namespace
} // namespace kiln::test
