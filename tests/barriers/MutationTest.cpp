// Each barrier of each kernel is deleted, weakened, moved past an access, moved into one arm of a conditional, moved
// out of its loop.  A deleted barrier must be missed, or it had no use.  For every other mutant the proof and
// insert-barriers, which share nothing, must agree on whether a barrier is missing now.
#include "tests/barriers/BarrierMutants.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace mlir;

constexpr std::string_view layouts = R"(
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#far = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#rot = #tile_gpu.linear<register=[[4],[128]], lane=[[8],[16],[32],[1],[2]], warp=[[64],[256]], shape=[512]>
#one = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[1], order=[0]>
#mix = #tile_gpu.linear<register=[[32],[64],[4],[1]], lane=[[2],[8],[16],[128],[256]], shape=[512]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=8>
#sv = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
)";

/// Bodies of kernels; %x: tensor<64x32xf32, #row>, %v: tensor<512xf32, #vec>, %view, %n: i32, %p: i1, %i0, %i1
/// constants.
struct Kernel {
  const char *name, *body;
  std::int64_t scratch = 49152;
  unsigned warps = 4;
};

constexpr const char *add = "{\n^bb0(%a: f32, %b: f32):\n  %c = arith.addf %a, %b : f32\n  tile.yield %c : f32\n}\n";

std::vector<Kernel> kernels() {
  static const std::string reduce =
      std::string("%s = tile.reduce(%v) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 ") + add;
  static const std::string reduceTwice = reduce +
                                         "%t = tile.splat %s : f32 to tensor<512xf32, #vec>\n"
                                         "%d = arith.subf %v, %t : tensor<512xf32, #vec>\n"
                                         "%u = tile.reduce(%d) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 " +
                                         add;
  static const std::string scan = std::string("%s = tile.scan(%v) {axis = 0 : i32} : tensor<512xf32, #vec> ") + add;
  static const std::string reduceInLoop =
      std::string("%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %v) -> tensor<512xf32, #vec> : i32 {\n"
                  "%s = tile.reduce(%w) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 ") +
      add +
      "%t = tile.splat %s : f32 to tensor<512xf32, #vec>\n%d = arith.subf %w, %t : tensor<512xf32, #vec>\n"
      "scf.yield %d : tensor<512xf32, #vec>\n}\n";
  static const std::string gather = "%ri = tile.range 0 to 512 : tensor<512xi32, #vec>\n"
                                    "%g = tile.gather %v[%ri] {axis = 0 : i32} : tensor<512xf32, #vec>, "
                                    "tensor<512xi32, #vec>\n"
                                    "%h = tile.gather %g[%ri] {axis = 0 : i32} : tensor<512xf32, #vec>, "
                                    "tensor<512xi32, #vec>\n";
  return {
      {"reduction across warps", reduce.c_str()},
      {"two reductions", reduceTwice.c_str()},
      {"scan", scan.c_str()},
      {"reduction in a loop", reduceInLoop.c_str()},
      {"gathers", gather.c_str()},
      {"transpose", "%y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"},
      {"transpose in passes", "%y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n",
       2048},
      {"there and back", "%y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
                         "%z = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"},
      {"loop with two exchanges",
       "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%y2 = arith.addf %y, %y : tensor<64x32xf32, #col>\n"
       "%z = tile_gpu.convert_layout %y2 : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "scf.yield %z : tensor<64x32xf32, #row>\n}\n"},
      {"loop with two exchanges in passes",
       "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%z = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "scf.yield %z : tensor<64x32xf32, #row>\n}\n",
       4096},
      {"exchange before, in and after a loop",
       "%y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %y) -> tensor<64x32xf32, #col> : i32 {\n"
       "%a = tile_gpu.convert_layout %w : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "%b = tile_gpu.convert_layout %a : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "scf.yield %b : tensor<64x32xf32, #col>\n}\n"
       "%z = tile_gpu.convert_layout %r : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"},
      {"conditional", "%y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
                      "%r = scf.if %p -> tensor<64x32xf32, #row> {\n"
                      "%a = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
                      "scf.yield %a : tensor<64x32xf32, #row>\n} else {\nscf.yield %x : tensor<64x32xf32, #row>\n}\n"
                      "%z = tile_gpu.convert_layout %r : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"},
      {"conditional in a loop",
       "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
       "%b = scf.if %p -> tensor<64x32xf32, #row> {\n"
       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%a = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "scf.yield %a : tensor<64x32xf32, #row>\n} else {\nscf.yield %w : tensor<64x32xf32, #row>\n}\n"
       "scf.yield %b : tensor<64x32xf32, #row>\n}\n"},
      {"nested loops", "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
                       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
                       "%q = scf.for %j = %i0 to %n step %i1 iter_args(%o = %y) -> tensor<64x32xf32, #col> : i32 {\n"
                       "%b = tile_gpu.convert_layout %o : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
                       "%c = tile_gpu.convert_layout %b : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
                       "scf.yield %c : tensor<64x32xf32, #col>\n}\n"
                       "%z = tile_gpu.convert_layout %q : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
                       "scf.yield %z : tensor<64x32xf32, #row>\n}\n"},
      {"while loop",
       "%r:2 = scf.while (%w = %x, %k = %i0) : (tensor<64x32xf32, #row>, i32) -> (tensor<64x32xf32, #row>, i32) {\n"
       "%t = arith.cmpi slt, %k, %n : i32\n"
       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%z = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "scf.condition(%t) %z, %k : tensor<64x32xf32, #row>, i32\n} do {\n"
       "^bb0(%w: tensor<64x32xf32, #row>, %k: i32):\n"
       "%y = tile_gpu.convert_layout %w : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>\n"
       "%z = tile_gpu.convert_layout %y : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "%k1 = arith.addi %k, %i1 : i32\nscf.yield %z, %k1 : tensor<64x32xf32, #row>, i32\n}\n"},
      {"one warp",
       "%y = tile_gpu.convert_layout %o : tensor<512xf32, #one> to tensor<512xf32, #mix>\n"
       "%z = tile_gpu.convert_layout %y : tensor<512xf32, #mix> to tensor<512xf32, #one>\n"
       "%l = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32, #sv>\n"
       "tile_gpu.local_store %z, %l : tensor<512xf32, #one>, !tile_gpu.buffer<512xf32, #sv>\n"
       "%m = tile_gpu.local_load %l : !tile_gpu.buffer<512xf32, #sv> to tensor<512xf32, #mix>\n"
       "tile_gpu.local_store %m, %l : tensor<512xf32, #mix>, !tile_gpu.buffer<512xf32, #sv>\n"
       "%k = tile_gpu.local_load %l : !tile_gpu.buffer<512xf32, #sv> to tensor<512xf32, #one>\n",
       49152, 1},
      {"lanes, then warps", "%l = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32, #sv>\n"
                            "tile_gpu.local_store %v, %l : tensor<512xf32, #vec>, !tile_gpu.buffer<512xf32, #sv>\n"
                            "%a = tile_gpu.local_load %l : !tile_gpu.buffer<512xf32, #sv> to tensor<512xf32, #vec>\n"
                            "tile_gpu.local_store %a, %l : tensor<512xf32, #vec>, !tile_gpu.buffer<512xf32, #sv>\n"
                            "%b = tile_gpu.local_load %l : !tile_gpu.buffer<512xf32, #sv> to tensor<512xf32, #far>\n"
                            "tile_gpu.local_store %b, %l : tensor<512xf32, #far>, !tile_gpu.buffer<512xf32, #sv>\n"
                            "%c = tile_gpu.local_load %l : !tile_gpu.buffer<512xf32, #sv> to tensor<512xf32, #rot>\n"},
      {"ring of buffers", "%l = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
                          "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
                          "%s = tile_gpu.local_subview %l[%i] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
                          "tile_gpu.local_store %w, %s : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>\n"
                          "%a = tile_gpu.local_load %s : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>\n"
                          "%z = tile_gpu.convert_layout %a : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
                          "scf.yield %z : tensor<64x32xf32, #row>\n}\n"},
      {"two buffers of one allocation",
       "%l = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "%s0 = tile_gpu.local_subview %l[%i0] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "%s1 = tile_gpu.local_subview %l[%i1] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "tile_gpu.local_store %x, %s0 : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>\n"
       "tile_gpu.local_store %x, %s1 : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>\n"
       "%a = tile_gpu.local_load %s0 : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>\n"
       "tile_gpu.local_store %a, %s0 : tensor<64x32xf32, #col>, !tile_gpu.buffer<64x32xf32, #sh>\n"
       "%b = tile_gpu.local_load %s1 : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>\n"},
      {"asynchronous copy, there and back",
       "%l = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>\n"
       "%r = scf.for %i = %i0 to %n step %i1 iter_args(%w = %x) -> tensor<64x32xf32, #row> : i32 {\n"
       "tile_gpu.async_copy_view %view[%i, %i0], %l by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, "
       "#sh>\n"
       "%t = tile_gpu.async_commit\n"
       "tile_gpu.async_wait %t ready %l : !tile_gpu.buffer<64x32xf32, #sh>\n"
       "%a = tile_gpu.local_load %l : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>\n"
       "%z = tile_gpu.convert_layout %a : tensor<64x32xf32, #col> to tensor<64x32xf32, #row>\n"
       "scf.yield %z : tensor<64x32xf32, #row>\n}\n"},
      {"pipelined loop",
       "%i2 = arith.constant 2 : i32\n"
       "%l = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "%s0 = tile_gpu.local_subview %l[%i0] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "tile_gpu.async_copy_view %view[%i0, %i0], %s0 by #row : !tile.view<64x32xf32>, i32, "
       "!tile_gpu.buffer<64x32xf32, "
       "#sh>\n"
       "%t = tile_gpu.async_commit\n"
       "%r:3 = scf.for %i = %i0 to %n step %i1 iter_args(%k = %i0, %m = %i1, %u = %t) -> (i32, i32, !tile_gpu.token) : "
       "i32 {\n"
       "%s = tile_gpu.local_subview %l[%k] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "tile_gpu.async_wait %u ready %s : !tile_gpu.buffer<64x32xf32, #sh>\n"
       "scf.if %p {\n"
       "%d = tile_gpu.local_subview %l[%m] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>\n"
       "tile_gpu.async_copy_view %view[%i, %i0], %d by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, "
       "#sh>\n"
       "}\n"
       "%o = tile_gpu.async_commit\n"
       "%a = tile_gpu.local_load %s : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>\n"
       "%k1 = arith.addi %k, %i1 : i32\n%k2 = arith.cmpi eq, %k1, %i2 : i32\n"
       "%k3 = arith.select %k2, %i0, %k1 : i32\n"
       "%m1 = arith.addi %m, %i1 : i32\n%m2 = arith.cmpi eq, %m1, %i2 : i32\n"
       "%m3 = arith.select %m2, %i0, %m1 : i32\n"
       "scf.yield %k3, %m3, %o : i32, i32, !tile_gpu.token\n}\n"
       "tile_gpu.async_wait all\n"},
  };
}

std::string moduleText(const Kernel &k) {
  const char *vector = k.warps == 1
                           ? "%o: tensor<512xf32, #one>"
                           : "%x: tensor<64x32xf32, #row>, %v: tensor<512xf32, #vec>, %view: !tile.view<64x32xf32>";
  return std::string(layouts) + "module attributes {tile_gpu.target = \"sm_80\"} {\nfunc.func @k(" + vector +
         ", %n: i32, %p: i1) attributes {tile.num_warps = " + std::to_string(k.warps) +
         " : i32} {\n%i0 = arith.constant 0 : i32\n%i1 = arith.constant 1 : i32\n" + k.body + "return\n}\n}\n";
}

struct Tally {
  unsigned barriers = 0, mutants = 0, harmful = 0;
};

/// The proof and insert-barriers must agree on each.
void check(BarrierHarness &harness, const Kernel &kernel, ModuleOp module, Tally &tally) {
  tally.barriers += static_cast<unsigned>(BarrierHarness::barriers(module).size());
  const Condition flag = [](OpBuilder &, func::FuncOp f) { return Value(f.getArguments().back()); };
  forEachBarrierMutant(module, flag, [&](BarrierMutant &mutant) {
    ++tally.mutants;
    const bool accepted = harness.verifies(*mutant.module);
    const std::string said = harness.errors;
    const bool missing = harness.insertAdds(*mutant.module);
    tally.harmful += missing;
    auto where = [&] {
      return std::string(kernel.name) + ": barrier " + std::to_string(mutant.barrier) + " " + mutant.what + "\n" +
             BarrierHarness::text(*mutant.module) + said;
    };
    if (mutant.mustHarm)
      EXPECT_FALSE(accepted) << "a barrier without a use: " << where();
    EXPECT_EQ(accepted, !missing) << (missing ? "not noticed: " : "rejected without need: ") << where();
    if (!accepted)
      EXPECT_TRUE(said.find("races with") != std::string::npos || said.find("cannot be proved") != std::string::npos)
          << where();
  });
}

TEST(BarrierMutations, EveryHarmfulOneIsNoticed) {
  BarrierHarness harness;
  Tally all;
  for (const Kernel &kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    auto module = harness.parse(moduleText(kernel));
    ASSERT_TRUE(module) << harness.errors << moduleText(kernel);
    ASSERT_TRUE(harness.prepare(*module, kernel.scratch)) << harness.errors;
    ASSERT_TRUE(harness.verifies(*module)) << harness.errors << BarrierHarness::text(*module);
    Tally tally;
    check(harness, kernel, *module, tally);
    std::printf("  %-40s%3u barriers, %4u mutants, %4u harmful\n", kernel.name, tally.barriers, tally.mutants,
                tally.harmful);
    EXPECT_GT(tally.barriers, 0u);
    all.mutants += tally.mutants;
    all.harmful += tally.harmful;
  }
  EXPECT_GT(all.harmful, 200u);
  EXPECT_GT(all.mutants, all.harmful + 50);
}

} // namespace
} // namespace kiln::test
