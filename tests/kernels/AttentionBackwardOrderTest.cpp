//===- AttentionBackwardOrderTest.cpp - dq's sums in one pass, in one order ------------===//
//
// Where programs of keys add to dq one after the other: the bits are the same under every schedule of blocks and warps,
// and right.  Calls whose blocks of keys meet in no known range take two passes.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/kernels/Repeat.h"

#include <algorithm>

namespace kiln::test {
namespace {

using namespace kernels;

class AttentionBackwardOrder : public AttentionBackward {
protected:
  /// Of the workspace, in bytes.
  std::size_t sizeOf(std::string_view part, const PreparedGradients &call) {
    PlanListing plan;
    const Status s = AttentionBackwardOperation(*on->jit).describe(call.arguments, plan);
    EXPECT_TRUE(s.ok()) << s.toString();
    const auto found = std::ranges::find(plan.parts, part, &PlanListing::Part::name);
    return found == plan.parts.end() ? 0 : found->bytes;
  }
};

Problem ordered(std::int64_t queries, std::int64_t keys) {
  Problem p = with(queries, keys);
  p.heads = 2, p.keyHeads = 1, p.deterministic = true;
  return p;
}

/// At least three blocks of 128 keys: full, causal with fewer and with more rows than keys, windows to both sides,
/// packed sequences of which some are empty, rows and keys of which some do not count; more heads than start in turn.
std::vector<Problem> problems() {
  std::vector<Problem> out = {ordered(100, 300), ordered(150, 390), ordered(330, 260), ordered(400, 400),
                              ordered(260, 260), ordered(150, 300), ordered(200, 300), ordered(20, 140)};
  out[0].dim = out[0].dimV = 80;
  out[1].causal = true, out[1].batch = 2;
  out[2].causal = true, out[2].keyHeads = 2;
  out[3].left = 150, out[3].right = 20, out[3].sink = true, out[3].dim = out[3].dimV = 128;
  out[4].left = 10, out[4].right = 140, out[4].alignment = Alignment::TopLeft;
  out[5].causal = true, out[5].lengthsQ = {70, 0, 150, 20}, out[5].lengthsK = {300, 140, 0, 290};
  out[6].batch = 2, out[6].usedQ = {200, 90}, out[6].usedK = {130, 300}, out[6].causal = true;
  out[7].batch = 17, out[7].keyHeads = 2;
  return out;
}

TEST_P(AttentionBackwardOrder, GivesTheSameBits) {
  if (!on->device->info().target->has(Capability::Wgmma))
    return;
  const TemporaryDirectory folder;
  unsigned number = 0;
  for (const Problem &p : problems()) {
    SCOPED_TRACE(p.text());
    Data d = randomData(p, random);
    LossGradients g = randomGradients(p, true, random);
    poisonUnused(p, d);
    poisonUnused(p, g);
    const PreparedGradients call = prepared(p, d, g);
    EXPECT_GT(sizeOf("dq_sums", call), 0u);
    EXPECT_GT(sizeOf("dq_counts", call), 0u);
    const Gradients usual = runGradients(call);
    compareGradients(p, d, g, call, usual);
    for (const Opening &how : openingsOfSchedules(*on, 10 * number++, folder.path() + "/kernels")) {
      if (!isFullTier() && !how.stress.empty())
        continue;
      SCOPED_TRACE(textOf(how));
      const std::unique_ptr<Opened> other = openWith(deviceName(), how);
      ASSERT_TRUE(other);
      Opened *const before = std::exchange(on, other.get());
      const Gradients got = runGradients(prepared(p, d, g));
      on = before;
      expectSame(got, usual, /*deterministic=*/true);
      if (HasFailure())
        return;
    }
  }
}

/// Lists may name any blocks: who comes before whom is not known.
TEST_P(AttentionBackwardOrder, OfListsIsTwoPasses) {
  if (!on->device->info().target->has(Capability::Wgmma))
    return;
  Problem p = ordered(100, 150);
  Hooks hooks = documents(p, random);
  hooks.blocks = BlockSize{64, 128};
  p.hooks = std::make_shared<const Hooks>(hooks);
  for (const bool deterministic : {false, true}) {
    p.deterministic = deterministic;
    const PreparedGradients call = prepared(p, randomData(p, random), randomGradients(p, false, random));
    EXPECT_EQ(sizeOf("dq_sums", call) == 0, deterministic);
    EXPECT_EQ(sizeOf("dq_counts", call), 0u);
  }
}

/// Rows that the call does not know of have no counters: nobody waits for them.
TEST_P(AttentionBackwardOrder, ASequenceThatIsTooLongEnds) {
  if (!on->emulated() || !on->device->info().target->has(Capability::Wgmma))
    return;
  Problem p = ordered(300, 300);
  p.lengthsQ = {300}, p.lengthsK = {300};
  PreparedGradients call = prepared(p, randomData(p, random), randomGradients(p, false, random));
  call.arguments.of.maxQueries = 100;
  (void)runGradients(call); // without findings; what it gives is no gradient
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBackwardOrder, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
