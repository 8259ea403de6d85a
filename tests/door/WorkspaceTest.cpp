// A caller's workspace: a call says how many bytes it needs, takes exactly these, and refuses fewer by name.
#include "runtime/door/bench/NullCall.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::door;

namespace {

struct DoorWorkspace : NullCall, testing::Test {
  void make(const std::string &name) {
    JitOptions options;
    options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
    options.diskCache = false;
    ASSERT_EQ(NullCall::make(name, std::move(options)).toString(), "");
    ASSERT_EQ(workspaceOf(*family, values, bytes).toString(), "");
  }
  /// The call with a workspace of `size` bytes as its last argument.
  Failure with(std::int64_t size) {
    given.data = size ? reinterpret_cast<void *>(workspace.address()) : nullptr;
    extent = size;
    values.push_back({ffiTensorPointer, 0, {0}});
    values.back().object = &given;
    Failure out = run(*family, values);
    values.pop_back();
    return out;
  }
  std::size_t bytes = 0;
  std::int64_t extent = 0;
  FfiTensor given{nullptr, nullPlace.type, nullPlace.number, 1, 1, 8, 1, &extent, nullptr, 0};
};

TEST_F(DoorWorkspace, IsAsLargeAsTheCallSays) {
  ASSERT_NO_FATAL_FAILURE(make("attention_backward"));
  ASSERT_GT(bytes, 0U);
  const auto needed = static_cast<std::int64_t>(bytes);
  EXPECT_EQ(with(needed).toString(), "");
  for (const std::int64_t less : {needed - 1, std::int64_t(1), std::int64_t(0)}) {
    const Failure f = with(less);
    EXPECT_EQ(f.kind, "ValueError");
    for (const std::string &word :
         {std::string("attention_backward"), "workspace has " + std::to_string(less), std::to_string(needed)})
      EXPECT_NE(f.toString().find(word), std::string::npos) << word << " is not in: " << f.toString();
  }
}

TEST_F(DoorWorkspace, NoneIsNeeded) {
  ASSERT_NO_FATAL_FAILURE(make("copy"));
  EXPECT_EQ(bytes, 0U);
  EXPECT_EQ(with(0).toString(), "");
}

TEST_F(DoorWorkspace, IsRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(make("attention_backward"));
  const auto size = static_cast<std::int64_t>(bytes);
  const FfiTensor right = given;
  const auto expect = [&](const char *what) {
    const std::string text = with(size).toString();
    EXPECT_NE(text.find("'workspace'"), std::string::npos) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text;
    given = right;
  };
  given.device = 3;
  expect("cuda:3");
  given.deviceType = 1;
  expect("host's memory");
  given.code = 99;
  expect("dtype");
  const std::int64_t apart = 2;
  given.strides = &apart;
  expect("not dense");
}

/// Of a call that is refused the question is too.
TEST_F(DoorWorkspace, WrongCallsHaveNone) {
  ASSERT_NO_FATAL_FAILURE(make("attention_backward"));
  tensors[0].bits = 8;
  EXPECT_NE(workspaceOf(*family, values, bytes).kind, "");
}

} // namespace
