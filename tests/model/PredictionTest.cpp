// The performance model against closed forms worked out by hand.  Whether it meets a GPU: docs/performance-model.md.
#include "runtime/model/Prediction.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace kiln;
using namespace kiln::model;

namespace {

const Target &target() {
  return **findTarget("sm_90a");
}
Hardware h200() {
  return *hardwareOf(target());
}

struct Work {
  std::string opcode;
  InstructionClass kind;
  std::uint64_t instructions = 0, flops = 0;
};

/// A launch of `blocks` blocks of 4 warps that do `work`, all of them together.
LaunchCounters launchOf(std::uint32_t blocks, const std::vector<Work> &work, std::uint32_t sharedBytes = 0) {
  LaunchCounters c;
  c.grid[0] = blocks;
  c.block[0] = 128;
  c.sharedBytes = sharedBytes;
  for (const Work &w : work) {
    OpcodeCounts o{w.opcode, w.kind, {}};
    o.counts.instructions = w.instructions;
    o.counts.matrixFlops = w.flops;
    c.total += o.counts;
    c.opcodes.push_back(o);
  }
  return c;
}

double alone(const Prediction &p, Limiter l) {
  return p.alone[static_cast<unsigned>(l)];
}

const std::string wgmma = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16";
constexpr std::uint64_t plenty = 1ull << 40; // bytes
constexpr unsigned multiprocessors = 132;

} // namespace

// A 64 x 128 x 16 product takes half its columns in cycles, 64, and reads 16 x 128 x 2 bytes of its second factor.
TEST(Prediction, AProductTakesHalfItsColumns) {
  const std::uint64_t products = 132 * 1000;
  const Prediction p =
      predict(launchOf(132, {{wgmma, InstructionClass::Matrix, 4 * products, products * 2 * 64 * 128 * 16}}, 200 << 10),
              target(), h200(), multiprocessors, plenty);
  const double cycle = 1e-6 / h200().productClock;
  EXPECT_NEAR(alone(p, Limiter::Matrix), 1000 * 64 * cycle, 1e-9);
  EXPECT_NEAR(alone(p, Limiter::Shared), 1000 * 32 * cycle, 1e-9);
  EXPECT_EQ(p.resident, 1u);
  EXPECT_DOUBLE_EQ(p.waves, 1);
  // Reads of shared memory go on under the product; issue does not overlap whole.
  const double issue = 1000 * 4 / 4.0, exponent = overlapOfWarpgroups;
  const double block = std::pow(std::pow(64000, exponent) + std::pow(issue, exponent), 1 / exponent);
  EXPECT_NEAR(alone(p, Limiter::Tail), handOver * cycle, 1e-9);
  // Such products are at the power limit, at which the launch takes longer than its cycles.
  EXPECT_NEAR(p.milliseconds, products * 2.0 * 64 * 128 * 16 / h200().sustained * 1e-9 + overhead, 1e-9);
  EXPECT_EQ(p.limiter, Limiter::Power);
  Hardware cold = h200();
  cold.sustained = 1e9;
  const LaunchCounters launch =
      launchOf(132, {{wgmma, InstructionClass::Matrix, 4 * products, products * 2 * 64 * 128 * 16}}, 200 << 10);
  EXPECT_NEAR(predict(launch, target(), cold, multiprocessors, plenty).milliseconds,
              (block + handOver) * cycle + overhead, 1e-9);
}

TEST(Prediction, FactorsOfEightBitsTakeHalfTheTime) {
  const auto matrix = [](const std::string &opcode) {
    return alone(predict(launchOf(132, {{opcode, InstructionClass::Matrix, 4000, 1 << 30}}), target(), h200(),
                         multiprocessors, plenty),
                 Limiter::Matrix);
  };
  const double wide = matrix(wgmma);
  EXPECT_DOUBLE_EQ(matrix("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"), wide / 2);
  EXPECT_DOUBLE_EQ(matrix("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32"), wide * 2);
  // mma.sync reaches a part of the rate, at the clock of other kernels.
  EXPECT_NEAR(matrix("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
              wide / h200().syncShare * h200().productClock / h200().clock, 1e-12);
}

TEST(Prediction, UnitsByOpcode) {
  const auto of = [](const std::string &opcode, InstructionClass kind, Limiter l) {
    return alone(predict(launchOf(132, {{opcode, kind, 132 * 1000}}), target(), h200(), multiprocessors, plenty), l) *
           h200().clock * 1e6;
  };
  EXPECT_NEAR(of("ex2.approx.ftz.f32", InstructionClass::Special, Limiter::Special), 2000, 1e-6);
  EXPECT_NEAR(of("fma.rn.f32", InstructionClass::Float, Limiter::Issue), 250, 1e-6);
  EXPECT_NEAR(of("max.f32", InstructionClass::Float, Limiter::Issue), 500, 1e-6);
  EXPECT_NEAR(of("cvt.rn.bf16x2.f32", InstructionClass::Convert, Limiter::Issue), 500, 1e-6);
  EXPECT_NEAR(of("mad.lo.s32", InstructionClass::Integer, Limiter::Issue), 500, 1e-6);
  EXPECT_NEAR(of("mov.b32", InstructionClass::Move, Limiter::Issue), 0, 1e-6);
}

// Warps that load by themselves wait for their bytes; asynchronous copies go on under the work.
TEST(Prediction, AsynchronousCopiesOverlap) {
  LaunchCounters c = launchOf(132, {{"fma.rn.f32", InstructionClass::Float, 132 * 400000}});
  const double work = 100000 / h200().clock * 1e-6, bytes = work * h200().dram * 1e6;
  GlobalCounts &loads = c.total.global[static_cast<unsigned>(AccessKind::Load)];
  loads.sectors = static_cast<std::uint64_t>(bytes / 32);
  loads.bytes = loads.sectors * 32;
  EXPECT_NEAR(predict(c, target(), h200(), multiprocessors, plenty).milliseconds,
              work * std::pow(2, 1 / overlapOfWarps) + overhead, 1e-6);
  c.total.asyncBytes = loads.bytes;
  EXPECT_NEAR(predict(c, target(), h200(), multiprocessors, plenty).milliseconds, work + overhead, 1e-6);
}

TEST(Prediction, BytesLimit) {
  LaunchCounters c = launchOf(100000, {});
  c.total.global[0].sectors = 1ull << 27; // 4 GiB
  const double bytes = 4.0 * (1ull << 30);
  const Prediction streamed = predict(c, target(), h200(), multiprocessors, plenty),
                   reused = predict(c, target(), h200(), multiprocessors, bytes / 16);
  EXPECT_EQ(streamed.limiter, Limiter::Dram);
  EXPECT_NEAR(streamed.milliseconds, bytes / h200().dram * 1e-6 + overhead, 1e-9);
  EXPECT_EQ(reused.limiter, Limiter::L2);
  EXPECT_NEAR(reused.milliseconds, bytes / h200().l2 * 1e-6 + overhead, 1e-9);
}

// 133 equal blocks take two rows of multiprocessors, and uneven ones half of the longest after the mean.
TEST(Prediction, TheTailCounts) {
  const auto fma = [](std::uint64_t n) { return std::vector<Work>{{"fma.rn.f32", InstructionClass::Float, n}}; };
  const auto cyclesOf = [](const LaunchCounters &c) {
    return (predict(c, target(), h200(), multiprocessors, plenty).milliseconds - overhead) * h200().clock * 1e6;
  };
  EXPECT_NEAR(cyclesOf(launchOf(132, fma(132 * 40000))), 10000, 1e-3);
  EXPECT_NEAR(cyclesOf(launchOf(133, fma(133 * 40000))), 20000, 1e-3);
  LaunchCounters uneven = launchOf(1320, fma(2 * 40000)); // of the two blocks that ran
  uneven.blocks = {20000, 60000};
  EXPECT_NEAR(cyclesOf(uneven), 10 * 10000 + 15000 / 2.0, 1e-3);
  EXPECT_NEAR(alone(predict(uneven, target(), h200(), multiprocessors, plenty), Limiter::Tail) * h200().clock * 1e6,
              7500, 1e-3);
}

// A launch is no shorter than its longest block.
TEST(Prediction, TheLongestBlockCounts) {
  LaunchCounters c = launchOf(2, {{"fma.rn.f32", InstructionClass::Float, 2 * 40000}});
  c.blocks = {10000, 70000};
  EXPECT_NEAR((predict(c, target(), h200(), multiprocessors, plenty).milliseconds - overhead) * h200().clock * 1e6,
              17500, 1e-3);
}

TEST(Prediction, AnEmptyLaunchTakesALaunch) {
  const Prediction p = predict(launchOf(1, {}), target(), h200(), multiprocessors, 0);
  EXPECT_DOUBLE_EQ(p.milliseconds, overhead);
  EXPECT_EQ(p.limiter, Limiter::Launch);
}

TEST(Hardware, OtherTargetsAreRefusedByName) {
  const auto h = hardwareOf(**findTarget("sm_75"));
  ASSERT_FALSE(h.ok());
  EXPECT_NE(h.status().toString().find("sm_75"), std::string::npos) << h.status().toString();
  EXPECT_NE(h.status().toString().find("sm_90a"), std::string::npos) << h.status().toString();
}
