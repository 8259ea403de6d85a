// Scans with operators that do not commute, forward and reverse, against host loops.
#include "compiler/layout/Reduction.h"
#include "tests/reduce/SharedKernel.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::test {
namespace {

using layout::Sizes;

std::string scanOp(const std::string &result, const std::string &sources, const TileCase &c,
                   const std::vector<std::string> &elements, bool reverse, const std::string &region) {
  std::string types;
  for (const std::string &e : elements)
    types += (types.empty() ? "" : ", ") + tensorType(c.shape, e, c.encoding);
  return "    " + result + " = tile.scan(" + sources + ") {axis = " + std::to_string(c.axis) + " : i32" +
         (reverse ? ", reverse" : "") + "} : " + types + " {\n" + region + "    }\n";
}

/// x -> m x + t modulo 2^w: first a, then b.
template <typename T> struct Affine {
  T m, t;
  Affine then(const Affine &b) const { return {static_cast<T>(m * b.m), static_cast<T>(b.m * t + b.t)}; }
};

/// Of affine maps, on the emulator, against a loop: no findings, and equal bits.
template <typename T>
void affineCase(std::mt19937_64 &random, const std::string &element, const TileCase &c, bool reverse) {
  const std::string e = ": " + element + "\n";
  const std::string region = "    ^bb0(%am: " + element + ", %at: " + element + ", %bm: " + element +
                             ", %bt: " + element + "):\n      %cm = arith.muli %am, %bm" + e +
                             "      %ct = arith.muli %bm, %at" + e + "      %cs = arith.addi %ct, %bt" + e +
                             "      tile.yield %cm, %cs : " + element + ", " + element + "\n";
  std::vector<T> m(volume(c.shape)), t(m.size()), wantM(m.size()), wantT(m.size());
  for (std::size_t i = 0; i < m.size(); ++i) {
    m[i] = static_cast<T>(random() | 1);
    t[i] = static_cast<T>(random());
  }
  eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
    Affine<T> all{1, 0};
    for (std::size_t k = 0; k < line.size(); ++k) {
      const std::size_t i = line[reverse ? line.size() - 1 - k : k];
      const Affine<T> own{m[i], t[i]};
      all = k == 0 ? own : reverse ? own.then(all) : all.then(own);
      wantM[i] = all.m;
      wantT[i] = all.t;
    }
  });
  TileKernel kernel(c.logWarps);
  kernel.input("m", c.shape, element, c.encoding);
  kernel.input("t", c.shape, element, c.encoding);
  kernel.body(scanOp("%r:2", "%m, %t", c, {element, element}, reverse, region));
  kernel.output("r#0", c.shape, element, &c.encoding);
  kernel.output("r#1", c.shape, element, &c.encoding);
  Emulator gpu(c.target);
  Buffer &bm = gpu.upload(m), &bt = gpu.upload(t), &om = gpu.allocate(m.size() * sizeof(T)),
         &ot = gpu.allocate(m.size() * sizeof(T));
  (void)om.poison(std::byte(0xCD));
  (void)ot.poison(std::byte(0xCD));
  ASSERT_EQ(kernel.run(gpu, c.target, {bm, bt, om, ot}, c.scratchBytes), "");
  ASSERT_EQ(gpu.download<T>(om), wantM) << (reverse ? "reverse\n" : "\n") << kernel.text();
  ASSERT_EQ(gpu.download<T>(ot), wantT) << (reverse ? "reverse\n" : "\n") << kernel.text();
}

Result<std::optional<layout::ScanPlan>> planOf(const TileCase &c) {
  return layout::planScan(layout::TileLayout::create(c.encoding, c.shape)->core(), c.axis, 32, **findTarget(c.target));
}

template <typename T> void affine(const std::string &element, unsigned seed, unsigned rounds) {
  std::mt19937_64 random(seed);
  unsigned across = 0, trips = 0, elsewhere = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const TileCase c = randomCase(random, 11);
    const auto plan = planOf(c);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    across += plan->has_value() && (*plan)->totals;
    trips += plan->has_value() && (*plan)->trip;
    elsewhere += !plan->has_value();
    const bool reverse = random() % 2;
    affineCase<T>(random, element, c, reverse);
    if (testing::Test::HasFatalFailure())
      return;
  }
  std::printf("  %u across warps, of them %u by a trip of the totals, %u in another layout\n", across, trips,
              elsewhere);
  EXPECT_GT(across, 0u);
  EXPECT_GT(elsewhere, 0u);
}

TEST(Scan, AffineMaps32) {
  affine<std::uint32_t>("i32", 11, pick(24u, 150u));
}
TEST(Scan, AffineMaps64) {
  affine<std::uint64_t>("i64", 12, pick(8u, 40u));
}
TEST(Scan, AffineMaps16) {
  affine<std::uint16_t>("i16", 13, pick(8u, 100u));
}

const char *const addition =
    "    ^bb0(%a: f32, %b: f32):\n      %c = arith.addf %a, %b : f32\n      tile.yield %c : f32\n";

TEST(Scan, RunningSumsTwice) {
  std::mt19937_64 random(14);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (unsigned round = 0; round < pick(8u, 80u); ++round) {
    const TileCase c = randomCase(random, 11);
    std::vector<float> x(volume(c.shape)), first;
    for (float &v : x)
      v = static_cast<float>(uniform(random));
    TileKernel kernel(c.logWarps);
    kernel.input("x", c.shape, "f32", c.encoding);
    kernel.body(scanOp("%r", "%x", c, {"f32"}, false, addition));
    kernel.output("r", c.shape, "f32", &c.encoding);
    for (unsigned run = 0; run < 2; ++run) {
      Emulator gpu(c.target);
      Buffer &bx = gpu.upload(x), &br = gpu.allocate(x.size() * 4);
      (void)br.poison(std::byte(0xCD));
      ASSERT_EQ(kernel.run(gpu, c.target, {bx, br}, c.scratchBytes), "") << "round " << round;
      const auto out = gpu.download<float>(br);
      if (run == 0)
        first = out;
      ASSERT_EQ(std::memcmp(first.data(), out.data(), out.size() * 4), 0) << "round " << round;
      eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < line.size(); ++k) {
          sum += x[line[k]];
          magnitude += std::abs(x[line[k]]);
          ASSERT_LE(std::abs(out[line[k]] - sum), static_cast<double>(k) * 0x1p-24 * magnitude)
              << "round " << round << ", place " << k;
        }
      });
    }
  }
}

/// Tiles whose columns lie in many pieces: what comes before each piece is computed once.  Numbers of the pieces in
/// registers alone and in lanes too; with repetitions of the axis and of the columns.
TEST(Scan, ManyPiecesOfAColumnTakeOneTrip) {
  std::mt19937_64 random(15);
  unsigned inRegisters = 0, both = 0, repeated = 0;
  const auto blocked = [](Sizes size, Sizes threads, Sizes warps) {
    return layout::Blocked{std::move(size), std::move(threads), std::move(warps), {1, 0}};
  };
  const std::tuple<Sizes, layout::Blocked, unsigned> cases[] = {
      {{64, 64}, blocked({1, 8}, {4, 8}, {4, 1}), 2},   {{96, 64}, blocked({1, 8}, {4, 8}, {4, 1}), 2},
      {{64, 96}, blocked({1, 4}, {4, 8}, {8, 1}), 3},   {{64, 256}, blocked({1, 8}, {1, 32}, {4, 1}), 2},
      {{160, 16}, blocked({1, 8}, {16, 2}, {2, 1}), 1}, {{256, 4}, blocked({1, 4}, {32, 1}, {8, 1}), 3},
      {{128, 2}, blocked({1, 2}, {32, 1}, {4, 1}), 2}};
  unsigned target = 0;
  for (const auto &[shape, encoding, logWarps] : cases)
    for (const bool reverse : {false, true}) {
      static constexpr const char *targets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};
      const TileCase c{logWarps, 0, shape, encoding, targets[target++ % 4], 49152};
      SCOPED_TRACE(c.target + std::string(" ") + std::to_string(shape[0]) + " x " + std::to_string(shape[1]));
      const auto plan = planOf(c);
      ASSERT_TRUE(plan.ok() && plan->has_value());
      std::printf("  %lld x %lld: %s\n", static_cast<long long>(shape[0]), static_cast<long long>(shape[1]),
                  (*plan)->trip ? (*plan)->trip->scanning.text().c_str() : "every thread reads all");
      if (const auto &trip = (*plan)->trip) {
        bool lanes = false, registers = false; // with a number in the last dimension
        for (layout::BitVector column : trip->scanning.columns(layout::InDim::Lane))
          lanes |= column && trip->scanning.coord(column, 1);
        for (layout::BitVector column : trip->scanning.columns(layout::InDim::Register))
          registers |= column && trip->scanning.coord(column, 1);
        inRegisters += registers && !lanes;
        both += lanes && registers;
        repeated += shape[0] % 32 == 0 && (shape[0] & (shape[0] - 1)) != 0;
      }
      affineCase<std::uint32_t>(random, "i32", c, reverse);
      if (HasFatalFailure())
        return;
    }
  EXPECT_GT(inRegisters, 0u);
  EXPECT_GT(both, 0u);
  EXPECT_GT(repeated, 0u);
}

/// Each total is written and read once on its way to where it is scanned, and written once on its way back; there every
/// thread reads those of its own pieces, of which the lanes of a column in one warp hold copies.  In wavefronts of 32
/// words, whatever the number of warps; no conflicts.
TEST(Scan, SharedWavefrontsOfTheTrip) {
  for (const char *target : {"sm_80", "sm_90a"})
    for (unsigned logWarps : {2u, 3u}) {
      SCOPED_TRACE(std::string(target) + ", " + std::to_string(1 << logWarps) + " warps");
      constexpr std::int64_t rows = 64, columns = 64, together = 4; // rows side by side in a warp
      const TileCase c{logWarps,        0,
                       {rows, columns}, layout::Blocked{{1, 8}, {together, 8}, {1 << logWarps, 1}, {1, 0}},
                       target,          49152};
      const auto plan = planOf(c);
      ASSERT_TRUE(plan.ok() && plan->has_value() && (*plan)->trip);
      std::vector<float> x(rows * columns, 1);
      TileKernel kernel(logWarps);
      kernel.input("x", c.shape, "f32", c.encoding);
      kernel.body(scanOp("%r", "%x", c, {"f32"}, false, addition));
      kernel.output("r", c.shape, "f32", &c.encoding);
      Emulator gpu(target);
      Buffer &bx = gpu.upload(x), &br = gpu.allocate(x.size() * 4);
      (void)br.poison(std::byte(0xCD));
      ASSERT_TRUE(gpu.device().record({.counters = true}).ok());
      ASSERT_EQ(kernel.run(gpu, target, {bx, br}, c.scratchBytes), "");
      const std::vector<LaunchCounters> got = gpu.device().takeCounters();
      ASSERT_EQ(got.size(), 1u);
      const SharedCounts shared = got[0].total.sharedTotal();
      EXPECT_EQ(shared.conflicts, 0u);
      EXPECT_EQ(shared.wavefronts, (3 + together) * (rows / together) * columns / 32);
      const auto sums = gpu.download<float>(br);
      for (std::size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(sums[i], static_cast<float>(i / columns + 1)) << i;
    }
}

} // namespace
} // namespace kiln::test
