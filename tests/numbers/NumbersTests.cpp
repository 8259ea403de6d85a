// Every case of NumbersCases.h through kiln-lower-numbers and the back end, on the emulator.
#include "tests/numbers/NumbersCompile.h"
#include "tests/numbers/NumbersSweep.h"
#include "tests/support/TestTier.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Group {
  const char *group, *target;
};

class Numbers : public testing::TestWithParam<Group> {};

TEST_P(Numbers, AllOperands) {
  const std::vector<NumbersCase> all = allNumbersCases();
  std::vector<const NumbersCase *> cases;
  for (const NumbersCase &c : all)
    if (c.group == GetParam().group)
      cases.push_back(&c);
  ASSERT_FALSE(cases.empty());
  const CompiledNumbers compiled = compileNumbers(moduleText(cases, GetParam().target));
  ASSERT_TRUE(compiled.ok) << compiled.errors;
  const auto device = openDevice(std::string("emulator:") + GetParam().target);
  ASSERT_TRUE(device.ok()) << device.status().toString();
  auto module = (*device)->loadPtx(compiled.ptx, "numbers.ptx");
  ASSERT_TRUE(module.ok()) << module.status().toString();
  const bool integers = cases[0]->group == "integers";
  const std::size_t count = integers ? pick<std::size_t>(2000, 200000) : pick<std::size_t>(20000, 1000000);
  for (const NumbersCase *c : cases) {
    const Result<SweepResult> result = sweep(**device, **module, *c, count);
    if (!result.ok()) {
      ADD_FAILURE() << c->name << ": " << result.status().toString();
      continue;
    }
    EXPECT_EQ(result->wrong, 0u) << "of " << result->checked << ": " << result->first;
  }
}

std::string groupName(const testing::TestParamInfo<Group> &info) {
  return std::string(info.param.group) + "_" + info.param.target;
}

// fp32 and fp64 code is the same for all targets; 16-bit, fp8 and integer code is not.
INSTANTIATE_TEST_SUITE_P(
    Tables, Numbers,
    testing::Values(Group{"f32", "sm_80"}, Group{"f64", "sm_80"}, Group{"f32", "sm_75"}, Group{"f16", "sm_75"},
                    Group{"f16", "sm_80"}, Group{"f16", "sm_90a"}, Group{"f16", "sm_120a"}, Group{"bf16", "sm_75"},
                    Group{"bf16", "sm_80"}, Group{"bf16", "sm_90a"}, Group{"bf16", "sm_120a"},
                    Group{"conversions", "sm_75"}, Group{"conversions", "sm_80"}, Group{"conversions", "sm_89"},
                    Group{"conversions", "sm_90a"}, Group{"conversions", "sm_120a"}, Group{"integers", "sm_75"},
                    Group{"integers", "sm_80"}, Group{"integers", "sm_90a"}, Group{"integers", "sm_120a"}),
    groupName);

} // namespace
