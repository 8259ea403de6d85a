// A call of the library's, by its family's name, compiled in the background for a GPU that is elsewhere.
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::kernels;

namespace {

TEST(PrepareAsync, ByTheNameOfAnOperation) {
  auto device = openDevice("offline:sm_90a");
  ASSERT_TRUE(device.ok()) << device.status().toString();
  JitOptions options;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.diskCache = false;
  auto jit = Jit::create(**device, options);
  ASSERT_TRUE(jit.ok()) << jit.status().toString();
  const Result<const Family *> family = findFamily("softmax");
  ASSERT_TRUE(family.ok());
  const Callable &softmax = *(*family)->callable;
  const Arrays inputs = {{"x", Array{DType::F32, {4, 100}, std::vector<std::byte>(1600)}}};
  CompileFuture code;
  {
    auto placed = PlacedCall::createForPlans(**device, softmax, inputs, {});
    ASSERT_TRUE(placed.ok()) << placed.status().toString();
    code = softmax.prepareAsync(**jit, placed->call());
  } // the call may go
  EXPECT_TRUE(code.wait().ok()) << code.wait().toString();
  EXPECT_EQ((*jit)->counters().compiles, 1u);
  auto again = PlacedCall::createForPlans(**device, softmax, inputs, {});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(softmax.prepareAsync(**jit, again->call()).isReady());
}

} // namespace
