// A forked child gets a status, at once, for known and unknown classes; the parent goes on.
#include "tests/jit/JitFixture.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class ForkTest : public JitTest {};

TEST_F(ForkTest, AForkedChildIsRefused) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  ASSERT_TRUE(made.ok());
  JitKernel *add = kernelOf(**made, addSource());
  const auto call = [&](std::uint64_t x) {
    return add->launch({1}, nullptr, x, std::uint64_t(256), std::uint64_t(256), 5);
  };
  ASSERT_TRUE(call(256).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Status known = call(256), unknown = call(4), compile = (*made)->compile(addSource()).status(),
                 workspace = (*made)->workspace(100, nullptr).status();
    int wrong = 0;
    for (const Status *s : {&known, &unknown, &compile, &workspace})
      wrong += s->code() != StatusCode::Unsupported || s->message().find("was forked") == std::string::npos;
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(call(256).ok());
  EXPECT_TRUE(call(4).ok());
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(ForkTest, AJitMadeInTheChildWorks) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    NullDevice null;
    auto made = Jit::create(null, jitOptions());
    ::_exit(made.ok() && (*made)->compile(addSource()).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
