//===- AttentionSchedulesTest.cpp - Attention under every schedule, both directions ---===//
//
// The bits of the usual order under seeds of every schedule, and with every warp late somewhere; no findings.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/kernels/Repeat.h"

namespace kiln::test {
namespace {

using namespace kernels;

class AttentionSchedules : public AttentionBackward {
protected:
  struct Outcome {
    std::vector<Results> forward;
    Gradients gradients;
  };
  /// Forward by tiles of calls with few heads, some and many, of which the default tier takes one; with a block mask by
  /// its own; and the gradients.
  Outcome runOn(Opened &device, const Problem &p, const Data &d, const LossGradients &g) {
    Opened *const before = std::exchange(on, &device);
    Outcome out;
    for (std::size_t i = 0; i < std::size(everyHeads); ++i) {
      PreparedCall call = prepare(*on->device, p, d);
      if (call.arguments.blockMask ? i > 0 : !isFullTier() && i != GetParam() % std::size(everyHeads))
        continue;
      if (!call.arguments.blockMask)
        call.arguments.tiling = tilingOf(*on->device, call.arguments, everyHeads[i]);
      out.forward.push_back(run(call));
    }
    out.gradients = runGradients(prepared(p, d, g));
    on = before;
    return out;
  }
};

/// A window and groups of heads, in one pass where there is one and in two; biases of three shapes with dropout; a
/// score function with a mask; lists of blocks, packed.
std::vector<Problem> problems(std::mt19937_64 &random) {
  std::vector<Problem> out;
  const auto with = [&](std::int64_t queries, std::int64_t keys) -> Problem & {
    Problem p;
    p.queries = queries, p.keys = keys, p.heads = 2, p.keyHeads = 1;
    return out.emplace_back(p);
  };
  for (const bool deterministic : {false, true}) {
    Problem &p = with(100, 150);
    p.batch = 2, p.causal = true, p.left = 60, p.sink = true, p.deterministic = deterministic;
  }
  for (const unsigned of : {12u, 8u, 0u}) {
    Problem &p = with(100, 90);
    p.batch = of == 12 ? 2 : 1, p.causal = true, p.biasOf = of, p.dropoutP = 0.17f;
  }
  {
    Problem &p = with(100, 100);
    p.hooks = std::make_shared<const Hooks>(relativeBias(p, random));
  }
  Problem &p = with(150, 170);
  p.lengthsQ = {33, 0, 150}, p.lengthsK = {40, 20, 140}, p.deterministic = false;
  Hooks hooks = documents(p, random);
  hooks.blocks = BlockSize{64, 128};
  p.hooks = std::make_shared<const Hooks>(hooks);
  return out;
}

TEST_P(AttentionSchedules, GiveTheUsualBits) {
  const TemporaryDirectory folder;
  unsigned number = 0;
  for (const Problem &p : problems(random)) {
    const Data d = randomData(p, random);
    const LossGradients g = randomGradients(p, true, random);
    std::optional<Outcome> usual;
    for (const Opening &how : openingsOfSchedules(*on, GetParam(), folder.path() + "/kernels")) {
      if (!chosen(number++, 11))
        continue;
      SCOPED_TRACE(deviceName() + ", " + textOf(how) + ", " + p.text());
      if (!usual)
        usual = runOn(*on, p, d, g);
      const std::unique_ptr<Opened> other = openWith(deviceName(), how);
      ASSERT_TRUE(other);
      const Outcome got = runOn(*other, p, d, g);
      ASSERT_EQ(got.forward.size(), usual->forward.size());
      for (std::size_t i = 0; i < got.forward.size(); ++i) {
        ASSERT_EQ(got.forward[i].o, usual->forward[i].o) << i;
        ASSERT_EQ(got.forward[i].lse, usual->forward[i].lse) << i;
      }
      expectSame(got.gradients, usual->gradients, p.deterministic || p.dropoutP > 0);
      if (HasFailure())
        return;
    }
  }
}

/// Two warpgroups take turns though a mask function asks some of the blocks that lists name.  Checked code has no
/// turns.
TEST_P(AttentionSchedules, TurnsOverListedBlocks) {
  if (!on->device->info().target->has(Capability::Wgmma))
    GTEST_SKIP() << "only warpgroups take turns";
  Problem p;
  p.queries = 250, p.keys = 390, p.heads = 2, p.keyHeads = 1, p.dim = p.dimV = 128;
  Hooks hooks = documents(p, random);
  hooks.blocks = {128, 128};
  p.hooks = std::make_shared<const Hooks>(std::move(hooks));
  const Data d = randomData(p, random);
  const auto runUnchecked = [&](Opened &device) {
    Opened *const before = std::exchange(on, &device);
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.checked = false;
    call.arguments.tiling = {.blockM = 128, .blockN = 128, .warps = 8};
    const Results got = run(call);
    on = before;
    return got;
  };
  std::vector<std::string> texts;
  const std::unique_ptr<Opened> told = openWith(deviceName(), {.texts = &texts});
  ASSERT_TRUE(told);
  const Results usual = runUnchecked(*told);
  compare(p, d, usual);
  // A warpgroup arrives at the barrier where the next one waits; nothing else of a forward kernel arrives at one.
  const bool hasTurns = std::any_of(
      texts.begin(), texts.end(), [](const std::string &text) { return text.find("bar.arrive") != std::string::npos; });
  EXPECT_TRUE(hasTurns);
  const TemporaryDirectory folder;
  for (const Opening &how : openingsOfSchedules(*on, GetParam(), folder.path() + "/kernels")) {
    SCOPED_TRACE(deviceName() + ", " + textOf(how) + ", " + p.text());
    const std::unique_ptr<Opened> other = openWith(deviceName(), how);
    ASSERT_TRUE(other);
    ASSERT_EQ(runUnchecked(*other).o, usual.o);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionSchedules, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
