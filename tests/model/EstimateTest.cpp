#include "runtime/model/Estimate.h"

#include "runtime/model/Prediction.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::model {
namespace {

struct Case {
  Target target = **findTarget("sm_90a");
  Hardware hardware = *hardwareOf(target);
  ProgramNeeds n;
  Case() {
    n.warps = 8, n.registers = 128, n.sharedBytes = 150000;
    n.programs = 264, n.flops = 4.096e9, n.overlapped = n.warpgroups = true;
  }
  double ms() const { return estimateMilliseconds(n, target, hardware, 132); }
};

TEST(EstimateTest, ProductsInTwoRounds) {
  const Case c; // a million cycles a program, and it is alone on its multiprocessor
  EXPECT_NEAR(c.ms(), 2 * (1e6 + handOver) / (c.hardware.productClock * 1e6) + overhead, 1e-12);
}

TEST(EstimateTest, OneProgramMoreIsARoundMore) {
  Case c;
  const double two = c.ms();
  c.n.programs = 265;
  EXPECT_NEAR((c.ms() - overhead) / (two - overhead), 1.5, 1e-12);
}

TEST(EstimateTest, CopiesHideBehindProductsInPart) {
  Case c;
  c.n.bytes = 2e7; // half a million cycles of L2
  const double ofL2 = 132 * c.hardware.productClock / c.hardware.l2, ofLatency = 700.0 / 150000; // cycles of a byte
  const double copies = c.n.bytes * (ofL2 + ofLatency), p = overlapOfWarpgroups;
  const double both = std::pow(std::pow(1e6, p) + std::pow(copies, p), 1 / p);
  EXPECT_NEAR(c.ms(), 2 * (both + handOver) / (c.hardware.productClock * 1e6) + overhead, 1e-12);
  const double whole = c.ms();
  c.n.sharedBytes = 1000; // in flight: the latency of 20,000 rounds, though of many programs at a time
  EXPECT_GT(c.ms(), whole);
  c.n.sharedBytes = 150000, c.n.overlapped = false;
  EXPECT_NEAR(c.ms(), 2 * (1e6 + c.n.bytes * ofL2 + handOver) / (c.hardware.productClock * 1e6) + overhead, 1e-12);
}

TEST(EstimateTest, TilesThatLeaveNoRegistersTakeTwice) {
  Case c;
  c.n.registers = 215; // and 40 for the rest
  const double whole = c.ms();
  c.n.registers = 216;
  EXPECT_NEAR((c.ms() - whole) / whole, 1, 0.01);
}

TEST(EstimateTest, ShortStepsWait) {
  Case c;
  const double whole = c.ms();
  c.n.steps = 1000;
  EXPECT_NEAR(c.ms() - whole, 2 * 1000 * 200 / (c.hardware.productClock * 1e6), 1e-12);
}

TEST(EstimateTest, OperandsAndPowersTakeTime) {
  Case c;
  const double perCycle = 2 / (c.hardware.productClock * 1e6), p = overlapOfWarpgroups;
  c.n.operands = 128e6; // a million cycles of shared memory, next to as many of products
  EXPECT_NEAR(c.ms(), (1e6 * std::pow(2, 1 / p) + handOver) * perCycle + overhead, 1e-12);
  const double whole = c.ms();
  c.n.special = 1e6;
  EXPECT_NEAR(c.ms() - whole, 0.8 * 1e6 / c.hardware.special * perCycle, 1e-12);
  c.n.carried = 215 - 128; // no register too many
  EXPECT_NEAR(c.ms() - whole, 0.8 * 1e6 / c.hardware.special * perCycle, 1e-12);
  c.n.carried += 1;
  EXPECT_GT(c.ms(), 1.9 * whole);
}

TEST(EstimateTest, FewWarpsAndOtherInstructionsAreSlower) {
  Case c;
  const double whole = c.ms();
  c.n.warpgroups = false; // mma.sync
  EXPECT_GT(c.ms(), whole);
  const double bySync = c.ms();
  c.n.warps = 2; // half of the schedulers have none
  EXPECT_NEAR((c.ms() - overhead) / (bySync - overhead), 2, 0.02);
}

} // namespace
} // namespace kiln::model
