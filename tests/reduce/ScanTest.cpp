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

template <typename T> void affine(const std::string &element, unsigned seed, unsigned rounds) {
  std::mt19937_64 random(seed);
  const std::string e = ": " + element + "\n";
  const std::string region = "    ^bb0(%am: " + element + ", %at: " + element + ", %bm: " + element +
                             ", %bt: " + element + "):\n      %cm = arith.muli %am, %bm" + e +
                             "      %ct = arith.muli %bm, %at" + e + "      %cs = arith.addi %ct, %bt" + e +
                             "      tile.yield %cm, %cs : " + element + ", " + element + "\n";
  unsigned across = 0, elsewhere = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const TileCase c = randomCase(random, 11);
    const auto plan =
        layout::planScan(layout::TileLayout::create(c.encoding, c.shape)->core(), c.axis, 32, **findTarget(c.target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    across += plan->has_value() && (*plan)->totals;
    elsewhere += !plan->has_value();
    const bool reverse = random() % 2;
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
    ASSERT_EQ(kernel.run(gpu, c.target, {bm, bt, om, ot}, c.scratchBytes), "") << "round " << round;
    ASSERT_EQ(gpu.download<T>(om), wantM) << "round " << round << (reverse ? ", reverse\n" : "\n") << kernel.text();
    ASSERT_EQ(gpu.download<T>(ot), wantT) << "round " << round << (reverse ? ", reverse\n" : "\n") << kernel.text();
  }
  std::printf("  %u across warps, %u in another layout\n", across, elsewhere);
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
    kernel.body(scanOp("%r", "%x", c, {"f32"}, false,
                       "    ^bb0(%a: f32, %b: f32):\n      %c = arith.addf %a, %b : f32\n      tile.yield %c : f32\n"));
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

} // namespace
} // namespace kiln::test
