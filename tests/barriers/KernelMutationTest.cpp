// Each barrier of matmul, of attention and of a chunk kernel (a loop that stores) is changed, as it stands in the
// kernel that runs.  The emulator, which shares nothing with the proof, must report every mutant that verify-barriers
// rejects (loops run so many rounds that every counter-example is executed) and none that it accepts; insert-barriers
// must mend every rejected one.
#include "tests/barriers/BarrierMutants.h"

#include "tests/barriers/KernelSubjects.h"
#include "tests/lowering/LoweringHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace mlir;
constexpr auto &targets = subjectTargets;

struct Run {
  std::string finding;
  std::vector<std::uint32_t> bits;
};

/// Lowers and runs what stands in `module`.
Run run(const Subject &s, const char *target, ModuleOp module, const Arguments &arguments) {
  Run out;
  const LoweredKernel lower = lowered(BarrierHarness::text(module), target);
  if (!lower.ok) {
    ADD_FAILURE() << "does not lower: " << lower.errors;
    return out;
  }
  Emulator gpu(target);
  Buffer &output = gpu.allocate(4 * s.output);
  const Launched launched = s.run(gpu, lower.ptx, lower.sharedBytes, output, arguments);
  if (!launched.clean())
    out.finding = launched.text();
  out.bits = gpu.download<std::uint32_t>(output);
  return out;
}

struct Tally {
  unsigned mutants = 0, harmful = 0, unseen = 0;
};

/// Of the mutants every `stride`-th in the default tier, more of those of few barriers; in full all of them, every
/// sixth of what takes long.
void check(BarrierHarness &harness, const Subject &s, const char *target, bool aligned, unsigned &turn, Tally &tally,
           unsigned stride = 9) {
  SCOPED_TRACE(s.name + " on " + target + (aligned ? "" : ", not aligned"));
  ASSERT_TRUE(s.kernel.ok()) << s.kernel.status().toString();
  auto module = harness.parse(s.kernel.text());
  ASSERT_TRUE(module && harness.stage(*module, s.facts)) << harness.errors;
  const bool copies = BarrierHarness::text(*module).find("async_copy") != std::string::npos;
  EXPECT_EQ(copies, s.pipelined && (aligned || s.copiesNumbers) && (*findTarget(target))->has(Capability::CpAsync))
      << "loops are pipelined where copies can be";
  const Run right = run(s, target, *module, s.arguments);
  ASSERT_EQ(right.finding, "");
  const std::size_t barriers = BarrierHarness::barriers(*module).size();
  if (copies) // else operands may go straight to their fragments
    EXPECT_GT(barriers, 0u);
  // Programs have numbers from 0 on: the arm is not taken.
  const Condition never = [](OpBuilder &b, func::FuncOp f) -> Value {
    Value number = tile::ProgramIdOp::create(b, f.getLoc(), tile::Axis::X);
    Value zero = arith::ConstantOp::create(b, f.getLoc(), b.getI32IntegerAttr(0));
    return arith::CmpIOp::create(b, f.getLoc(), arith::CmpIPredicate::slt, number, zero);
  };
  forEachBarrierMutant(*module, never, [&](BarrierMutant &mutant) {
    if (turn++ % pick(barriers < 3 ? 3u : stride, stride > 18 ? 6u : 1u) || testing::Test::HasFatalFailure())
      return;
    ++tally.mutants;
    const bool accepted = harness.verifies(*mutant.module);
    const bool missing = harness.insertAdds(*mutant.module);
    tally.harmful += !accepted;
    const std::string where =
        "barrier " + std::to_string(mutant.barrier) + " of " + std::to_string(barriers) + " " + mutant.what;
    if (!accepted)
      EXPECT_TRUE(missing) << "insert-barriers would leave it so: " << where;
    if (mutant.mustHarm)
      EXPECT_FALSE(accepted) << "a barrier without a use: " << where;
    Run ran = run(s, target, *mutant.module, s.arguments);
    // What is proved harmful may take another number of rounds to show.
    for (const Arguments &more : s.moreArguments)
      if (!accepted && ran.finding.empty())
        ran.finding = run(s, target, *mutant.module, more).finding;
    // The proof does not know that the condition of a round's copies and the end of the loop are one: it sees copies in
    // flight after the last round, where no run has any.
    // Nor that the lanes of a warp meet where they read a matrix (ldmatrix), as they do in every run.
    const bool ofLanes = isa<tile_gpu::WarpBarrierOp>(BarrierHarness::barriers(*module)[mutant.barrier]);
    if (!accepted && ran.finding.empty() && (s.coarse || ofLanes || mutant.what == "moved before the last wait")) {
      ++tally.unseen;
      return;
    }
    EXPECT_EQ(ran.finding.empty(), accepted) << where << "\n" << ran.finding;
    if (accepted)
      EXPECT_EQ(ran.bits, right.bits) << where;
  });
}

/// With copies, where there are any; and without.
void checkBoth(BarrierHarness &harness, MakeSubject make, const char *target, unsigned &turn, unsigned stride = 9) {
  Tally tally;
  for (const bool aligned : {true, false})
    if (aligned || isFullTier() || std::string_view(target) == targets[0])
      check(harness, make(target, aligned), target, aligned, turn, tally, stride);
  const Subject subject = make(target, true);
  std::printf("  %s, %u warps: %u mutants, %u harmful, %u of them in no run\n", subject.name.c_str(),
              static_cast<unsigned>(subject.kernel.warps()), tally.mutants, tally.harmful, tally.unseen);
  EXPECT_GT(tally.mutants, tally.unseen);
}

class KernelBarrierMutations : public testing::TestWithParam<std::size_t> {};

TEST_P(KernelBarrierMutations, TheProofAndTheEmulatorAgree) {
  BarrierHarness harness;
  unsigned turn = static_cast<unsigned>(GetParam()) * 5; // the sample of each target is another one
  for (const auto make : {matmulOf, attentionOf16Rows, attentionOf32Rows, chunksOf, warpgroupsOf})
    checkBoth(harness, make, targets[GetParam()], turn);
}

/// What attention's gradients and its call over a cache have barriers for: tiles that warps exchange, sums over them.
TEST_P(KernelBarrierMutations, TheyAgreeOnGradientsAndCaches) {
  BarrierHarness harness;
  const MakeSubject makes[] = {gradientsOfKeys, gradientsInOnePass, gradientsOfQueries, decodeOf};
  unsigned turn = static_cast<unsigned>(GetParam()) * 5;
  for (std::size_t i = 0; i < std::size(makes); ++i)
    if (isFullTier() || i % 2 == GetParam() % 2)
      checkBoth(harness, makes[i], targets[GetParam()], turn, 18);
}

/// Where a chunk's products are of warps, and where they are of warpgroups.
TEST_P(KernelBarrierMutations, TheyAgreeOnChunksOfDplr) {
  const char *target = targets[GetParam()];
  if (std::string_view(target) != "sm_80" && std::string_view(target) != "sm_90a")
    GTEST_SKIP() << "sm_80 and sm_90a stand for all";
  BarrierHarness harness;
  for (const auto make : {mapsOfDplr, gradientsOfDplr}) {
    unsigned turn = static_cast<unsigned>(GetParam());
    Tally tally;
    const Subject subject = make(target, true);
    check(harness, subject, target, true, turn, tally, 24);
    std::printf("  %s, %u warps: %u mutants, %u harmful, %u of them in no run\n", subject.name.c_str(),
                static_cast<unsigned>(subject.kernel.warps()), tally.mutants, tally.harmful, tally.unseen);
    // Before products of a block's only warpgroup, and of gathers, the proof is coarser: 9 of 34 of all mutants of maps
    // on sm_90a (3 of 8 of the sample).
    const unsigned least = std::string_view(target) == "sm_90a" ? 2 : 4;
    EXPECT_GE(tally.harmful, least * tally.unseen) << "the proof is coarser than this test knows";
    EXPECT_GT(tally.harmful, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelBarrierMutations, testing::Range<std::size_t>(0, std::size(targets)),
                         [](const auto &info) { return std::string(targets[info.param]); });

} // namespace
} // namespace kiln::test
