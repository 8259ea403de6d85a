//===- SeedsTest.cpp - Every kernel under seeds of every schedule ---------------===//
//
// Full tier: every kernel and target under 20 seeds of each schedule, every type.  Default tier: two seeds of each, the
// others' on other targets.  The bits are those of the usual order, which are compared with float64 first.
// A GPU has no schedule to choose: there, and on the emulator, KILN_STRESS makes warps late.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class KernelSeeds : public testing::TestWithParam<FamilyOnDevice> {
protected:
  // Each seed is a device of its own; the compiled kernels come from one cache.
  static void SetUpTestSuite() { cache = std::make_unique<TemporaryDirectory>(); }
  static void TearDownTestSuite() { cache.reset(); }

  std::unique_ptr<Opened> open(const std::string &name, const EmulatorOptions &emulator, std::string stress = "") {
    return openWith(name, {emulator, cache->path() + "/kernels", std::move(stress)});
  }

  static std::unique_ptr<TemporaryDirectory> cache;
};

std::unique_ptr<TemporaryDirectory> KernelSeeds::cache;

std::vector<TensorType> inputsOf(std::string_view family) {
  // Several blocks of several warps; rows that one block reads in several steps; ends that fill no warp.
  std::vector<TensorType> out;
  for (const Shape &shape : family == "reduce_sum" ? std::vector<Shape>{{70001}}
                            : family == "cumsum"   ? std::vector<Shape>{{3, 5000}}
                            : family == "copy" || family == "add" || family == "transpose"
                                ? std::vector<Shape>{{70, 129}}
                                : std::vector<Shape>{{5, 1000}, {2, 16387}}) // in registers, and in several passes
    for (DType dtype : {DType::F32, DType::F16, DType::BF16})
      if (isFullTier() || dtype != DType::F16)
        out.push_back({dtype, shape});
  return out;
}

struct Expected {
  Arrays inputs, outputs;
};

/// Results on `device` as they should be: compared with float64.
void expectedOf(Jit &jit, const Family &family, const std::vector<TensorType> &inputs, std::vector<Expected> &out) {
  for (const TensorType &type : inputs) {
    TensorTypes types = {{"x", type}};
    if (family.name() == "add")
      types["y"] = type;
    if (family.name() == "layer_norm")
      types["weight"] = types["bias"] = {type.dtype, {type.shape.back()}};
    Expected e{randomInputs(family, types, 7), {}};
    auto ran = runCall(jit, *family.callable, e.inputs, {});
    ASSERT_TRUE(ran.ok()) << ran.status().toString();
    for (const Finding &f : ran->findings)
      ADD_FAILURE() << f.toString();
    auto comparison = compareWithReference(family, e.inputs, {}, ran->outputs);
    ASSERT_TRUE(comparison.ok() && comparison->good());
    e.outputs = std::move(ran->outputs);
    out.push_back(std::move(e));
  }
}

/// The same bits as expected, and no findings; a status other than success if a launch fails.
Status sameBits(Jit &jit, const Family &family, const Expected &e) {
  KILN_ASSIGN(auto ran, runCall(jit, *family.callable, e.inputs, {}));
  for (const Finding &f : ran.findings)
    ADD_FAILURE() << f.toString();
  for (const auto &[output, array] : e.outputs)
    EXPECT_EQ(ran.outputs.at(output).data, array.data) << output;
  return {};
}

TEST_P(KernelSeeds, SameBitsAndNoFindings) {
  const auto &[name, index] = GetParam();
  const std::string deviceName = deviceNames()[index];
  if (!deviceName.starts_with("emulator"))
    GTEST_SKIP() << deviceName << " is no emulator: nobody can choose its schedule";
  const Family &family = familyOf(name);
  const std::unique_ptr<Opened> usual = open(deviceName, {});
  ASSERT_TRUE(usual);
  std::vector<Expected> expected;
  ASSERT_NO_FATAL_FAILURE(expectedOf(*usual->jit, family, inputsOf(name), expected));
  const std::uint64_t seeds = pick(2u, 20u), first = isFullTier() ? 0 : index * seeds;
  for (Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
      EmulatorOptions options;
      options.schedule = schedule;
      options.seed = seed;
      const std::unique_ptr<Opened> on = open(deviceName, options);
      ASSERT_TRUE(on);
      for (const Expected &e : expected) {
        SCOPED_TRACE(deviceName + " " + std::string(scheduleName(schedule)) + " seed " + std::to_string(seed) + ": " +
                     name + " " + shapeText(e.inputs.at("x").shape));
        const Status ran = sameBits(*on->jit, family, e);
        ASSERT_TRUE(ran.ok() && !HasFailure()) << ran.toString();
      }
      EXPECT_EQ(on->jit->counters().compiles, 0u) << "the cache should have every kernel";
    }
}

// Seeds, then every warp late at every hand-off.
TEST_P(KernelSeeds, LateWarpsKeepTheBits) {
  const auto &[name, index] = GetParam();
  const std::string deviceName = deviceNames()[index];
  const Family &family = familyOf(name);
  const std::unique_ptr<Opened> usual = open(deviceName, {});
  ASSERT_TRUE(usual);
  std::vector<TensorType> inputs = inputsOf(name);
  if (!isFullTier())
    inputs.resize(1);
  std::vector<Expected> expected;
  ASSERT_NO_FATAL_FAILURE(expectedOf(*usual->jit, family, inputs, expected));
  for (unsigned seed = 0; seed < pick(1u, 4u); ++seed) {
    SCOPED_TRACE("KILN_STRESS=" + std::to_string(seed));
    const std::unique_ptr<Opened> on = open(deviceName, {}, std::to_string(seed));
    ASSERT_TRUE(on);
    for (const Expected &e : expected) {
      const Status ran = sameBits(*on->jit, family, e);
      ASSERT_TRUE(ran.ok() && !HasFailure()) << ran.toString();
    }
    EXPECT_GT(on->jit->counters().compiles, 0u) << "the setting must be in the key";
  }
  // The emulator's schedules starve each warp already.
  const bool isEmulator = deviceName.starts_with("emulator");
  for (unsigned warp = 0; warp < (isEmulator ? 1u : 8u); ++warp)
    for (unsigned handOff = 0; handOff < (isEmulator ? 1u : 8u); ++handOff) {
      const std::string stress = std::to_string(warp) + ":" + std::to_string(handOff);
      SCOPED_TRACE("KILN_STRESS=" + stress);
      const std::unique_ptr<Opened> on = open(deviceName, {}, stress);
      ASSERT_TRUE(on);
      const Status ran = sameBits(*on->jit, family, expected[0]);
      ASSERT_TRUE(ran.ok() && !HasFailure()) << ran.toString();
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelSeeds, testing::ValuesIn(familiesOnDevices()), familyAndDevice);

} // namespace
} // namespace kiln::test
