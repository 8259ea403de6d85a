//===- DplrRepeatTest.cpp - The same bits from every run of DPLR --------------------===//
//
// Under seeds of every schedule of the emulator (two a target in the default tier, 20 of each in full), from run to
// run, and one compile for every number of tokens and every packing.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class DplrRepeat : public Dplr {
protected:
  /// As Dplr::run, on another device.
  Arrays runOn(Opened &device, std::string_view family, const Arrays &inputs, const DplrProblem &p) {
    Opened *const usual = std::exchange(on, &device);
    Arrays out = run(family, inputs, p);
    on = usual;
    return out;
  }
  static void expectSame(const Arrays &got, const Arrays &wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto &[name, array] : wanted)
      EXPECT_EQ(got.at(name).data, array.data) << name;
  }
};

/// Chunks of several sequences, one of them empty, one that ends inside a chunk.
DplrProblem packedCall() {
  DplrProblem p{1, 150, 2, 32, 32, {1, .2}, {}, DType::BF16};
  p.offsets = {0, 70, 70, 150};
  return p;
}

TEST_P(DplrRepeat, SeedsKeepTheBits) {
  const std::string device = deviceNames()[GetParam()];
  if (!on->emulated())
    GTEST_SKIP() << device << " is no emulator: nobody can choose its schedule";
  if (!chosen(0, 2)) // runs are repeated on the other targets
    return;
  const TemporaryDirectory cache;
  const auto open = [&](const EmulatorOptions &options) {
    return openWith(device, {options, cache.path() + "/kernels", ""});
  };
  const DplrProblem p = packedCall();
  const Arrays inputs = inputsOf(p);
  const auto usual = open({});
  ASSERT_TRUE(usual);
  for (const char *family : {"dplr", "dplr_backward"}) {
    const Arrays wanted = runOn(*usual, family, inputs, p);
    ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, wanted));
    const std::uint64_t seeds = pick(1u, 20u), first = isFullTier() ? 0 : GetParam() * seeds;
    for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
      for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        SCOPED_TRACE(std::string(family) + " " + std::string(scheduleName(schedule)) + " " + std::to_string(seed));
        EmulatorOptions options;
        options.schedule = schedule, options.seed = seed;
        const auto seeded = open(options);
        ASSERT_TRUE(seeded);
        ASSERT_NO_FATAL_FAILURE(expectSame(runOn(*seeded, family, inputs, p), wanted));
        EXPECT_EQ(seeded->jit->counters().compiles, 0u) << "the cache should have every kernel";
      }
  }
}

TEST_P(DplrRepeat, RunsKeepTheBits) {
  if (!chosen(1, 2)) // seeds are tried on the other targets
    return;
  const DplrProblem p = packedCall();
  const Arrays inputs = inputsOf(p);
  for (const char *family : {"dplr", "dplr_backward"}) {
    const Arrays wanted = run(family, inputs, p);
    for (unsigned i = 0; i < (on->emulated() ? 2u : 1000u); ++i)
      ASSERT_NO_FATAL_FAILURE(expectSame(run(family, inputs, p), wanted)) << family << ", run " << i;
  }
}

/// Dense or packed is a variant, and so is the width of what a program of the walk has: few sequences take narrow ones.
TEST_P(DplrRepeat, TokensAndPackingsCompileNothing) {
  if (!isFullTier() && GetParam() % 2) // what is compiled depends on no target
    return;
  const auto fresh = freshDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(fresh);
  const auto compiles = [&] { return fresh->jit->counters().compiles; };
  const auto call = [&](const char *family, std::uint64_t batch, std::uint64_t tokens,
                        std::vector<std::uint64_t> offsets, std::uint64_t dimV = 16) {
    DplrProblem p{batch, tokens, 1, 16, dimV, {}, {}, DType::F16};
    p.offsets = std::move(offsets);
    ASSERT_FALSE(runOn(*fresh, family, inputsOf(p), p).empty());
  };
  std::uint64_t expected = 0;
  for (const auto &[family, launches] : {std::pair("dplr", 2u), {"dplr_backward", 4u}}) {
    call(family, 1, 70, {});
    EXPECT_EQ(compiles(), expected += launches) << family;
    call(family, 2, 33, {});
    call(family, 1, 1, {});
    call(family, 3, 129, {});
    EXPECT_EQ(compiles(), expected) << family;
    call(family, 1, 70, {0, 20, 70});
    EXPECT_EQ(compiles(), expected += launches) << family << " packed";
    call(family, 1, 71, {0, 0, 3, 64, 71});
    EXPECT_EQ(compiles(), expected) << family;
  }
  call("dplr", 1, 20, {}, 64);
  EXPECT_EQ(compiles(), expected += 2) << "another V";
  call("dplr", 200, 5, {}, 64);
  EXPECT_EQ(compiles(), expected += 1) << "more sequences than multiprocessors: a wide walk";
  call("dplr", 250, 3, {}, 64);
  EXPECT_EQ(compiles(), expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrRepeat, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
