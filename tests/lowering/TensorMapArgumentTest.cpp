// How a pass asks for a tensor map: an argument after all others, one for each recipe.
#include "tests/lowering/LoweringHarness.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

const std::string rows = "#tile_gpu.tensor_map<element = \"f32\", address = 0, extents = ()[s0, s1] -> (64, s1), "
                         "strides = () -> (256), box = [32, 8], swizzle = \"128B\">",
                  line = "#tile_gpu.tensor_map<element = \"f32\", address = 0, extents = ()[s0, s1] -> (s1), "
                         "strides = () -> (), box = [64]>";

unsigned count(const std::string &text, std::string_view what) {
  unsigned n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(TensorMapArgument, EqualRecipesShareOne) {
  const std::string kernel = kernelModule("%x: !tile.ptr<f32>, %n: i32", "", 4);
  const std::string text = withTensorMaps(kernel, {rows, line, rows, line});
  EXPECT_EQ(count(text, ": !tile_gpu.tensor_map {"), 2u) << text;
  EXPECT_EQ(count(text, "extents = ()[s0, s1] -> (64, s1)"), 1u) << text;
  const LoweredKernel out = lowered(text, "sm_90a");
  ASSERT_TRUE(out.ok) << out.errors;
  EXPECT_EQ(count(out.ptx, ".param .align 64 .b8 k_param_2[128]"), 1u) << out.ptx;
  EXPECT_EQ(count(out.ptx, ".param .align 64 .b8 k_param_3[128]"), 1u) << out.ptx;
  EXPECT_EQ(count(out.ptx, ".param "), 4u) << out.ptx;
  EXPECT_EQ(out.errors, "");
}

} // namespace
} // namespace kiln::test
