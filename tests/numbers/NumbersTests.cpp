// Every case of NumbersCases.h through kiln-lower-numbers and the back end, on the emulator.
#include "tests/numbers/NumbersCompile.h"
#include "tests/numbers/NumbersSweep.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Group {
  const char *group, *target;
  unsigned thin; ///< in the small tier: a share of the operands
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
  const unsigned thin = pick(GetParam().thin, 1u);
  for (const NumbersCase *c : cases) {
    // 2^24 points for fp32 functions of one operand, in the small tier 2^16.
    const bool large = c->group == "f32" && c->inputs.size() == 1;
    const std::size_t count = pick<std::size_t>(large ? 1 << 16 : 1 << 13, large ? 1 << 24 : 1 << 17) / thin;
    const Result<SweepResult> result = sweep(**device, **module, *c, count, thin);
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
    testing::Values(Group{"f32", "sm_80", 1}, Group{"f64", "sm_80", 1}, Group{"f16", "sm_75", 1},
                    Group{"f16", "sm_80", 16}, Group{"f16", "sm_90a", 16}, Group{"f16", "sm_120a", 16},
                    Group{"bf16", "sm_75", 16}, Group{"bf16", "sm_80", 1}, Group{"bf16", "sm_90a", 16},
                    Group{"bf16", "sm_120a", 16}, Group{"conversions", "sm_75", 1}, Group{"conversions", "sm_80", 4},
                    Group{"conversions", "sm_89", 4}, Group{"conversions", "sm_90a", 4},
                    Group{"conversions", "sm_120a", 4}, Group{"integers", "sm_75", 4}, Group{"integers", "sm_80", 1},
                    Group{"integers", "sm_90a", 4}, Group{"integers", "sm_120a", 4}, Group{"literals", "sm_80", 32}),
    groupName);

} // namespace
