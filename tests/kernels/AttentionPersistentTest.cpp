//===- AttentionPersistentTest.cpp - Programs of attention that take tile after tile ---===//
//
// More tiles than programs that run at the same time, so that each takes several.  On sm_90a queries, keys and values
// of the next tile come into slots that the one before has given back, while that one's results are stored: what
// differs from one tile a program would be read from the wrong slot.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class AttentionPersistent : public AttentionForward {
protected:
  /// The bits of a run with one tile a program; and float64's numbers, if that is `whole`.
  void check(const Problem &p, bool whole) {
    SCOPED_TRACE(deviceName() + ": " + p.text());
    const Data d = randomData(p, random);
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.tiling = {};
    if (on->device->info().target->has(Capability::Wgmma))
      call.arguments.tiling.blockM = 128, call.arguments.tiling.blockN = p.dim > 128 ? 64 : 128,
      call.arguments.tiling.warps = 8;
    const Results one = run(call);
    call.arguments.persistent = true;
    const Results several = run(call);
    EXPECT_EQ(one.o, several.o);
    EXPECT_EQ(one.lse, several.lse);
    if (whole)
      compare(p, d, several);
  }
};

TEST_P(AttentionPersistent, GiveTheBitsOfOneTileAProgram) {
  if (!isOneOf({0, 2})) // with and without tensor maps
    return;
  for (const std::int64_t dim : {128, 64, 256})
    for (const bool causal : {false, true})
      for (const DType type : {DType::BF16, DType::F16}) {
        if (!isFullTier() && (dim != 128 || !causal || type != DType::BF16))
          continue;
        Problem p = with(130, 150, type);
        p.batch = 3, p.heads = 48, p.keyHeads = 8, p.dim = p.dimV = dim;
        p.causal = causal;
        check(p, isFullTier());
      }
}

/// Windows of which some tile's rows see no key: a program goes on with its slots as they were.
TEST_P(AttentionPersistent, TilesWithoutKeys) {
  if (!isOneOf({2, 3}))
    return;
  Problem p = with(300, 40);
  p.batch = 2, p.heads = 48, p.keyHeads = 8, p.dim = p.dimV = 128;
  p.alignment = Alignment::TopLeft, p.left = 10, p.right = 3; // rows from 51 on see none
  check(p, true);
}

/// Lists of blocks, which are empty for some tiles; a mask function is asked in some of their blocks.
TEST_P(AttentionPersistent, OverListsOfBlocks) {
  if (!isOneOf({0, 2}))
    return;
  Problem p = with(300, 160);
  p.batch = 2, p.heads = 48, p.keyHeads = 8, p.dim = p.dimV = 128;
  Hooks hooks = windowWithSinks(60, 0); // rows from 220 on see none
  hooks.blocks = BlockSize{128, 128};
  p.hooks = std::make_shared<const Hooks>(std::move(hooks));
  check(p, true);
}

TEST_P(AttentionPersistent, AreRefusedWithTables) {
  Problem p = with(0, 0);
  p.lengthsQ = {33, 20}, p.lengthsK = {33, 20};
  PreparedCall call = prepare(*on->device, p, randomData(p, random));
  call.arguments.persistent = true;
  const Status s = AttentionOperation(*on->jit).run(call.arguments);
  EXPECT_NE(s.toString().find("persistent"), std::string::npos) << s.toString();
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionPersistent, testing::Range<std::size_t>(0, deviceNames().size()));

} // namespace
} // namespace kiln::test
