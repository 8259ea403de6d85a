// Sums by the copy engine: every element is added once a round, by whichever lane its run begins at, masked runs not.
#include "tests/lowering/Text.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Linear;
using layout::Sizes;

struct Case {
  const char *name;
  Sizes shape;
  Linear layout;
  unsigned warps;
  std::size_t requests; ///< in the code
};

/// The layout of a tile that has extent 1 along `dim`.
Linear narrow(const Linear &layout, std::size_t dim) {
  Linear out = layout;
  for (auto *bases : {&out.registers, &out.lanes, &out.warps})
    for (Sizes &basis : *bases)
      basis[dim] = 0;
  std::erase(out.registers, Sizes(layout.shape.size(), 0));
  out.shape[dim] = 1;
  return out;
}

/// A round stores x and adds it to y, in rows below `rows`; the next one has to wait.
std::string program(const Case &c, bool masked) {
  const Encoding encoding = c.layout;
  const std::string f32 = tensorType(c.shape, "f32", encoding), i32 = tensorType(c.shape, "i32", encoding),
                    i64 = tensorType(c.shape, "i64", encoding), i1 = tensorType(c.shape, "i1", encoding),
                    ptr = tensorType(c.shape, "!tile.ptr<f32>", encoding);
  /// The coordinate along `dim` of every element.
  const auto coordinate = [&](const std::string &name, std::size_t dim) {
    const std::size_t other = 1 - dim;
    const Encoding narrowed = narrow(c.layout, other);
    Sizes line = c.shape;
    line[other] = 1;
    const std::string extent = std::to_string(c.shape[dim]), wide = tensorType(line, "i32", narrowed),
                      type =
                          tensorType({c.shape[dim]}, "i32", layout::Slice{static_cast<std::int64_t>(other), narrowed});
    return "    %" + name + "0 = tile.range 0 to " + extent + " : " + type + "\n    %" + name +
           "1 = tile.expand_dims %" + name + "0 {axis = " + std::to_string(other) + " : i32} : " + type + " to " +
           wide + "\n    %" + name + " = tile.broadcast %" + name + "1 : " + wide + " to " + i32 + "\n";
  };
  const std::string buffer = "!tile_gpu.buffer<" + extents(c.shape) + "xf32, #tile_gpu.tma<swizzle=0, order=[1,0]>>";
  std::string body = zeroConstant + loadView("x", "a", c.shape, "f32", f32) + coordinate("i", 0) + coordinate("j", 1) +
                     "    %width = arith.constant dense<" + std::to_string(c.shape[1]) + "> : " + i64 +
                     "\n    %iw = arith.extsi %i : " + i32 + " to " + i64 + "\n    %jw = arith.extsi %j : " + i32 +
                     " to " + i64 + "\n    %r = arith.muli %iw, %width : " + i64 +
                     "\n    %o = arith.addi %r, %jw : " + i64 + "\n    %s = tile.splat %y : !tile.ptr<f32> to " + ptr +
                     "\n    %p = tile.addptr %s, %o : " + ptr + ", " + i64 + "\n    %rows = tile.splat %n : i32 to " +
                     i32 + "\n    %m = arith.cmpi slt, %i, %rows : " + i32 +
                     "\n    %two = arith.constant dense<2.0> : " + f32 +
                     "\n    %one = arith.constant 1 : i32\n    %three = arith.constant 3 : i32\n" +
                     "    %b = tile_gpu.local_alloc : " + buffer + "\n" +
                     "    %end = scf.for %k = %zero to %three step %one iter_args(%z = %x) -> (" + f32 + ") : i32 {\n" +
                     "      tile_gpu.bulk_wait read\n      tile_gpu.local_store %z, %b : " + f32 + ", " + buffer +
                     "\n      tile_gpu.bulk_add %b, %p" + (masked ? " mask %m" : "") + " : " + buffer + ", " + ptr +
                     "\n      %d = arith.mulf %z, %two : " + f32 + "\n      scf.yield %d : " + f32 +
                     "\n    }\n    tile_gpu.bulk_wait\n";
  return kernelModule("%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : "
                      "i32}, %n: i32",
                      body, c.warps);
}

// Registers of four, then lanes; lanes of two rows; copies in warps that act once; runs shorter than what is
// contiguous.
const Case cases[] = {
    {"OneRunOfAWarp",
     {4, 512},
     {{{0, 1}, {0, 2}, {0, 128}, {0, 256}},
      {{0, 4}, {0, 8}, {0, 16}, {0, 32}, {0, 64}},
      {{1, 0}, {2, 0}},
      {},
      {4, 512}},
     4,
     1},
    {"LanesOfSeveralRows",
     {8, 64},
     {{{0, 1}, {0, 2}, {2, 0}}, {{0, 4}, {0, 8}, {0, 16}, {0, 32}, {1, 0}}, {{4, 0}}, {}, {8, 64}},
     2,
     2},
    {"CopiesOfWarps",
     {4, 128},
     {{{0, 1}, {0, 2}, {2, 0}}, {{0, 4}, {0, 8}, {0, 16}, {0, 32}, {0, 64}}, {{1, 0}, {0, 0}}, {}, {4, 128}},
     4,
     2},
    {"WarpsSideBySide",
     {4, 256},
     {{{0, 2}, {0, 1}, {1, 0}}, {{0, 64}, {0, 8}, {0, 16}, {0, 32}, {0, 4}}, {{2, 0}, {0, 128}}, {}, {4, 256}},
     4,
     2},
};

class BulkAdd : public testing::TestWithParam<Case> {};

TEST_P(BulkAdd, AddsEachElementOnce) {
  const Case &c = GetParam();
  std::mt19937_64 random(7);
  std::vector<float> x(elementsOf(c.shape)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) { // sums of whole numbers are exact
    x[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
    y[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
  }
  for (const char *target : {"sm_90a", "sm_120a"})
    for (const bool masked : {false, true}) {
      Emulator gpu(target);
      Buffer &a = gpu.upload(x), &out = gpu.upload(y);
      const std::int32_t rows = 3;
      const KernelRun run = runKernel(gpu, target, program(c, masked), c.warps, {a, out, rows}, {}, From::Expansion);
      ASSERT_EQ(run.error, "") << target << run.ptx;
      std::size_t requests = 0;
      for (std::size_t at = 0; (at = run.ptx.find("cp.reduce.async.bulk", at)) != std::string::npos; ++at)
        ++requests;
      // The loop may be unrolled, by three at most.
      EXPECT_EQ(requests % c.requests, 0u) << run.ptx;
      EXPECT_GE(requests, c.requests) << run.ptx;
      EXPECT_LE(requests, 3 * c.requests) << run.ptx;
      const std::vector<float> got = gpu.download<float>(out);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool added = !masked || static_cast<std::int64_t>(i) / c.shape[1] < rows;
        ASSERT_EQ(got[i], y[i] + (added ? 7 * x[i] : 0)) << c.name << " " << target << " element " << i << run.ptx;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, BulkAdd, testing::ValuesIn(cases), [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln::test
