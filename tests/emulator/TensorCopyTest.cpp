// Tensor loads, stores and reductions against the definition, element by element.
#include "tests/emulator/PtxHarness.h"
#include "tests/emulator/TensorCases.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

void runCases(TensorCase::Kind kind, unsigned cases, std::uint64_t seed, EmulatorOptions options = {}) {
  Emulator gpu("sm_100a", options);
  TensorRunner runner(gpu.device());
  std::mt19937_64 random(seed);
  for (unsigned n = 0; n < cases; ++n) {
    const TensorRunner::Outcome outcome = runner.run(randomTensorCase(random, kind));
    ASSERT_FALSE(outcome.refused) << outcome.why;
    ASSERT_EQ(outcome.why, "") << "case " << n;
  }
}

TEST(TensorCopy, LoadsPutEveryElementWhereTheDefinitionSays) {
  runCases(TensorCase::Kind::Load, pick(400u, 4000u), 1);
}

TEST(TensorCopy, StoresWriteTheElementsInsideAndNothingElse) {
  runCases(TensorCase::Kind::Store, pick(400u, 4000u), 2);
}

TEST(TensorCopy, ReductionsCombineEveryElement) {
  runCases(TensorCase::Kind::Reduce, pick(600u, 6000u), 3);
}

TEST(TensorCopy, SchedulesMakeNoDifference) {
  for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      for (const auto kind : {TensorCase::Kind::Load, TensorCase::Kind::Store, TensorCase::Kind::Reduce}) {
        EmulatorOptions options;
        options.schedule = schedule;
        options.seed = seed;
        runCases(kind, 20, seed, options);
      }
}

/// Every swizzle with every inner box that it allows.
TEST(TensorCopy, EverySwizzleWithEveryInnerBox) {
  Emulator gpu("sm_100a");
  TensorRunner runner(gpu.device());
  std::mt19937_64 random(4);
  for (unsigned s = 0; s < tensorMapSwizzles; ++s)
    for (const TensorMapType type : {TensorMapType::U8, TensorMapType::Bf16, TensorMapType::F32, TensorMapType::F64}) {
      const auto swizzle = static_cast<TensorMapSwizzle>(s);
      const unsigned size = tensorMapTypeBytes(type), span = tensorMapSwizzleBytes(swizzle);
      for (unsigned inner = 16; inner <= (span ? span : 256); inner += 16)
        for (const auto kind : {TensorCase::Kind::Load, TensorCase::Kind::Store}) {
          if (inner / size > 256)
            continue;
          TensorCase c;
          c.kind = kind;
          c.seed = random();
          c.offset = 128 * (inner / 16 % 8);
          c.map.type = type;
          c.map.swizzle = swizzle;
          c.map.rank = 2;
          c.map.dims = {inner / size + 3, 21};
          c.map.strides = {(inner + 3 * size + 15) / 16 * 16};
          c.map.box = {inner / size, 19};
          c.at[0] = (kind == TensorCase::Kind::Load ? -16 : 16) / static_cast<int>(size);
          c.at[1] = 1;
          ASSERT_EQ(runner.run(c).why, "");
        }
    }
}

} // namespace
} // namespace kiln::test
