// Products of whole warpgroups (wgmma) against float64: every type, operands that lie either way, several warpgroups,
// one tile in two products; on the emulator, which reports bytes that are read without a fence or a barrier.
//
// Bounds as in DotTest.cpp: (K + 1) 2^-22 of the sum of the products' sizes; tf32 operands 2^-11 each.
#include "tests/lowering/Matrices.h"

#include "tests/support/TestTier.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

struct Case {
  std::int64_t M, N, K;
  std::string type; ///< f32: tf32
  unsigned warps;
  bool turnedA = false, turnedB = false; ///< a is stored [K, M], b [N, K]
  bool squared = false;                  ///< and then the product of what a is with itself: a^T a
  bool uses = true;                      ///< wgmma
};

void check(std::mt19937_64 &random, const Case &c) {
  const std::string precision = c.type == "f32" ? " precision tf32" : "";
  SCOPED_TRACE(std::to_string(c.M) + "x" + std::to_string(c.N) + "x" + std::to_string(c.K) + " " + c.type + ", " +
               std::to_string(c.warps) + " warps" + (c.turnedA ? ", a turned" : "") + (c.turnedB ? ", b turned" : "") +
               (c.squared ? ", and a with itself" : ""));
  const Matrix a = randomMatrix(random, static_cast<std::size_t>(c.M * c.K), c.type),
               b = randomMatrix(random, static_cast<std::size_t>(c.N * c.K), c.type),
               more = randomMatrix(random, static_cast<std::size_t>(c.M * c.N), "f32");
  const auto operand = [&](const char *name, const char *pointer, std::int64_t rows, std::int64_t columns,
                           bool turned) {
    const std::string type = plainType({rows, columns}, c.type), stored = plainType({columns, rows}, c.type);
    if (!turned)
      return loadView(name, pointer, {rows, columns}, c.type, type);
    return loadView(std::string(name) + "t", pointer, {columns, rows}, c.type, stored) + "    %" + name +
           " = tile.transpose %" + name + "t [1, 0] : " + stored + " to " + type + "\n";
  };
  const std::string sum = plainType({c.M, c.N}, "f32"), square = plainType({c.K, c.K}, "f32");
  std::string body = zeroConstant + operand("a", "x", c.M, c.K, c.turnedA) + operand("b", "y", c.K, c.N, c.turnedB) +
                     loadView("c", "z", {c.M, c.N}, "f32", sum) + "    %d = tile.dot %a, %b, %c" + precision + " : " +
                     plainType({c.M, c.K}, c.type) + ", " + plainType({c.K, c.N}, c.type) + " to " + sum + "\n" +
                     storeView("d", "o", {c.M, c.N}, "f32", sum);
  if (c.squared)
    body += "    %e0 = arith.constant dense<0.0> : " + square +
            "\n    %at = tile.transpose %a [1, 0] : " + plainType({c.M, c.K}, c.type) + " to " +
            plainType({c.K, c.M}, c.type) + "\n    %e = tile.dot %at, %a, %e0 : " + plainType({c.K, c.M}, c.type) +
            ", " + plainType({c.M, c.K}, c.type) + " to " + square + "\n" +
            storeView("e", "p", {c.K, c.K}, "f32", square);
  const auto pointer = [](const char *name, const std::string &element) {
    return std::string("%") + name + ": !tile.ptr<" + element + "> {tile.divisibility = 16 : i32}";
  };
  const std::string text =
      kernelModule(pointer("x", c.type) + ", " + pointer("y", c.type) + ", " + pointer("z", "f32") + ", " +
                       pointer("o", "f32") + ", " + pointer("p", "f32"),
                   body, c.warps);
  Emulator gpu("sm_90a");
  Buffer &x = gpu.upload(a.bytes), &y = gpu.upload(b.bytes), &z = gpu.upload(more.bytes),
         &o = gpu.allocate(more.bytes.size()), &p = gpu.allocate(static_cast<std::size_t>(4 * c.K * c.K));
  (void)o.poison(std::byte(0xCD));
  (void)p.poison(std::byte(0xCD));
  const KernelRun run = runKernel(gpu, "sm_90a", text, c.warps, {x, y, z, o, p}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.ptx.find("wgmma.mma_async") != std::string::npos, c.uses);
  EXPECT_EQ(run.ptx.find("mma.sync.aligned.m16") != std::string::npos, !c.uses);
  const auto at = [&](const Matrix &n, bool turned, std::int64_t row, std::int64_t column, std::int64_t rows,
                      std::int64_t columns) {
    return n.values[static_cast<std::size_t>(turned ? column * rows + row : row * columns + column)];
  };
  const double operandError = c.type == "f32" ? 1.01 / 1024 : 0;
  const auto compare = [&](Buffer &result, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                           const auto &left, const auto &right, const auto &start) {
    const std::vector<float> got = gpu.download<float>(result);
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t n = 0; n < columns; ++n) {
        double want = start(m, n), size = std::abs(want);
        for (std::int64_t k = 0; k < depth; ++k) {
          want += left(m, k) * right(k, n);
          size += std::abs(left(m, k) * right(k, n));
        }
        ASSERT_NEAR(got[static_cast<std::size_t>(m * columns + n)], want,
                    (static_cast<double>(depth + 1) * std::ldexp(1, -22) + 2 * operandError) * size)
            << m << ", " << n;
      }
  };
  const auto ofA = [&](std::int64_t m, std::int64_t k) { return at(a, c.turnedA, m, k, c.M, c.K); };
  compare(
      o, c.M, c.N, c.K, ofA, [&](std::int64_t k, std::int64_t n) { return at(b, c.turnedB, k, n, c.K, c.N); },
      [&](std::int64_t m, std::int64_t n) { return more.values[static_cast<std::size_t>(m * c.N + n)]; });
  if (c.squared && !testing::Test::HasFatalFailure())
    compare(
        p, c.K, c.K, c.M, [&](std::int64_t i, std::int64_t k) { return ofA(k, i); }, ofA,
        [](std::int64_t, std::int64_t) { return 0.0; });
}

TEST(WarpgroupDot, EveryTypeAndWayToLie) {
  std::mt19937_64 random(21);
  unsigned turn = 0;
  for (const char *type : {"f16", "bf16", "f32"})
    for (const auto &[warps, M, N] : {std::tuple(4u, 64, 64),
                                      {4u, 64, 16},
                                      {8u, 64, 64},
                                      {8u, 128, 32},
                                      {8u, 64, 128},
                                      {16u, 64, 64},
                                      {16u, 128, 32}})
      for (const int K : {16, 32, 64, 128})
        for (const bool turnedA : {false, true})
          for (const bool turnedB : {false, true}) {
            const bool isTf32 = std::string(type) == "f32";
            if (turn++ % pick(5u, 1u))
              continue;
            Case c{M, N, K, type, warps, turnedA, turnedB};
            // tf32 with K apart is mma.sync's; so is everything where a thread would hold more than an eighth of its
            // registers of a tile.
            const std::int64_t most = std::min<std::int64_t>(256, 65536 / (32 * warps)) / 8 * 32 * warps;
            c.uses = (!isTf32 || (!turnedA && turnedB)) && std::max({M * N, M * K, K * N}) <= most;
            ASSERT_NO_FATAL_FAILURE(check(random, c));
          }
}

/// One tile in two products, as it lies and turned: one buffer serves both.
TEST(WarpgroupDot, OneBufferForAllUses) {
  std::mt19937_64 random(22);
  for (const char *type : {"f16", "bf16"})
    for (const unsigned warps : {4u, 8u}) {
      Case c{64, 64, 64, type, warps};
      c.squared = true;
      ASSERT_NO_FATAL_FAILURE(check(random, c));
    }
}

/// Few rows are mma.sync's.
TEST(WarpgroupDot, FewRowsAreOfWarps) {
  std::mt19937_64 random(23);
  for (const std::int64_t M : {16, 32}) {
    Case c{M, 64, 64, "f16", 4};
    c.uses = false;
    ASSERT_NO_FATAL_FAILURE(check(random, c));
  }
}

} // namespace
} // namespace kiln::test
