// Operations that stand in no list: what they state of themselves is enough for barriers, their proof, the places of
// buffers, the report and the check of the target.
#include "tests/barriers/BarrierHarness.h"
#include "tests/barriers/ForeignDialect.h"

#include "compiler/passes/shared/SharedBuffers.h"
#include "compiler/passes/TargetRules.h"
#include "compiler/pipeline/KernelReport.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace mlir;

std::string kernel(const std::string &body, unsigned warps = 4) {
  return R"(
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=4>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @k(%p: !tile.ptr<f32>, %v: !tile.view<64x32xf32>, %i: i32, %n: i32, %x: tensor<64x32xf32, #row>)
      attributes {tile.num_warps = )" +
         std::to_string(warps) + " : i32} {\n    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n" +
         body + "    return\n  }\n}\n";
}

const std::string buffer = "!tile_gpu.buffer<64x32xf32, #sh>", tile = "tensor<64x32xf32, #row>";

std::string alloc(const std::string &name) {
  return "    " + name + " = tile_gpu.local_alloc : " + buffer + "\n";
}
std::string put(const std::string &to) {
  return "    \"foreign.put\"(%x, " + to + ") : (" + tile + ", " + buffer + ") -> ()\n";
}
std::string sum(const std::string &from) {
  return "    %s_" + from.substr(1) + " = \"foreign.sum\"(" + from + ") : (" + buffer + ") -> f32\n";
}
std::string bulkFill(const std::string &to) {
  return "    \"foreign.bulk_fill\"(%p, " + to + ") : (!tile.ptr<f32>, " + buffer + ") -> ()\n";
}
const std::string bulkCommit = "    %bulk = \"foreign.bulk_commit\"() : () -> !tile_gpu.token\n",
                  bulkWait = "    \"foreign.bulk_wait\"(%bulk) : (!tile_gpu.token) -> ()\n",
                  bulkWaitAll = "    \"foreign.bulk_wait\"() : () -> ()\n",
                  asyncCommit = "    %async = tile_gpu.async_commit\n";
std::string asyncCopy(const std::string &to) {
  return "    tile_gpu.async_copy_view %v[%i, %i], " + to + " by #row : !tile.view<64x32xf32>, i32, " + buffer + "\n";
}

class ForeignOperations : public testing::Test {
protected:
  ForeignOperations() { harness.mlirContext().getOrLoadDialect<foreign::ForeignDialect>(); }

  OwningOpRef<ModuleOp> prepared(const std::string &text) {
    auto module = harness.parse(text);
    EXPECT_TRUE(module && harness.prepare(*module)) << harness.errors;
    return module;
  }
  static std::vector<std::string> names(ModuleOp module) {
    std::vector<std::string> out;
    module.walk([&](Operation *op) {
      if (isa<tile_gpu::BarrierOp, tile_gpu::WarpBarrierOp>(op) || op->getName().getDialectNamespace() == "foreign")
        out.push_back(op->getName().getStringRef().str());
    });
    return out;
  }
  static func::FuncOp function(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

  BarrierHarness harness;
};

TEST_F(ForeignOperations, GetTheirBarriersWhichAreProved) {
  auto module = prepared(kernel(alloc("%b") + put("%b") + sum("%b") + put("%b")));
  ASSERT_TRUE(module);
  EXPECT_EQ(names(*module), (std::vector<std::string>{"foreign.put", "tile_gpu.barrier", "foreign.sum",
                                                      "tile_gpu.barrier", "foreign.put"}));
  EXPECT_TRUE(harness.verifies(*module)) << harness.errors;
  for (Operation *barrier : BarrierHarness::barriers(*module)) {
    Operation *next = barrier->getNextNode();
    barrier->remove();
    EXPECT_FALSE(harness.verifies(*module)) << "a barrier is gone, and the proof says nothing";
    EXPECT_NE(harness.errors.find("shared memory races with"), std::string::npos) << harness.errors;
    next->getBlock()->getOperations().insert(next->getIterator(), barrier);
  }
}

/// A tile's threads are those of its layout: each reads what it wrote itself, and nothing is needed between.
TEST_F(ForeignOperations, AreAnalysedByTheirTiles) {
  auto module =
      prepared(kernel(alloc("%b") + put("%b") + "    %y = tile_gpu.local_load %b : " + buffer + " to " + tile + "\n"));
  ASSERT_TRUE(module);
  EXPECT_TRUE(BarrierHarness::barriers(*module).empty()) << BarrierHarness::text(*module);
  EXPECT_TRUE(harness.verifies(*module)) << harness.errors;
}

/// The slot of a loop that is carried: the proof takes the number of each access, not of known operations alone.
TEST_F(ForeignOperations, TakeOneOfSeveralBuffers) {
  const std::string two = "!tile_gpu.buffer<[2] x 64x32xf32, #sh>";
  const std::string text =
      kernel("    %b = tile_gpu.local_alloc : " + two + "\n    %first = tile_gpu.local_subview %b[%c0] : " + two +
             "\n    %second = tile_gpu.local_subview %b[%c1] : " + two + "\n" + put("%first") + sum("%second"));
  auto module = prepared(text);
  ASSERT_TRUE(module);
  EXPECT_TRUE(BarrierHarness::barriers(*module).empty()) << BarrierHarness::text(*module);
  EXPECT_TRUE(harness.verifies(*module)) << harness.errors;
}

TEST_F(ForeignOperations, WaitForTheirOwnSeriesOfGroups) {
  // Both kinds of copies are in flight; only the bulk copy is waited for.
  const std::string copies = alloc("%a") + alloc("%b") + asyncCopy("%a") + bulkFill("%b") + bulkCommit + asyncCommit;
  auto good = prepared(kernel(copies + bulkWait + sum("%b") + "    tile_gpu.async_wait all\n" + sum("%a")));
  ASSERT_TRUE(good);
  EXPECT_TRUE(harness.verifies(*good)) << harness.errors;
  // The commit of the other series does not count.
  good->walk([](foreign::BulkWaitOp wait) { EXPECT_EQ(wait.ordering().inFlight, 0u); });
  EXPECT_EQ(BarrierHarness::barriers(*good).size(), 2u) << BarrierHarness::text(*good);

  auto bad = harness.parse(kernel(copies + bulkWaitAll + "    tile_gpu.barrier\n" + sum("%a")));
  ASSERT_TRUE(bad && harness.prepare(*bad)) << harness.errors;
  EXPECT_FALSE(harness.verifies(*bad)) << "a wait for bulk copies ended a cp.async";
  EXPECT_NE(harness.errors.find("bytes that a copy in flight may still write"), std::string::npos) << harness.errors;
}

/// A copy that reads a buffer has read it at the wait: who writes it then waits for the threads that waited.
TEST_F(ForeignOperations, ReadABufferUntilTheWait) {
  const std::string drain =
      "    \"foreign.bulk_drain\"(%b, %p) : (" + buffer + ", !tile.ptr<f32>) -> ()\n" + bulkCommit;
  auto good = prepared(kernel(alloc("%b") + put("%b") + drain + "    tile_gpu.barrier\n" + bulkWait + put("%b")));
  ASSERT_TRUE(good);
  EXPECT_EQ(names(*good),
            (std::vector<std::string>{"foreign.put", "tile_gpu.barrier", "foreign.bulk_drain", "foreign.bulk_commit",
                                      "tile_gpu.barrier", "foreign.bulk_wait", "tile_gpu.barrier", "foreign.put"}));
  EXPECT_TRUE(harness.verifies(*good)) << harness.errors;
  auto bad = harness.parse(kernel(alloc("%b") + put("%b") + drain + "    tile_gpu.barrier\n" + put("%b") + bulkWait));
  ASSERT_TRUE(bad && harness.prepare(*bad)) << harness.errors;
  EXPECT_FALSE(harness.verifies(*bad));
  EXPECT_NE(harness.errors.find("writes bytes that a copy in flight may still read: wait for its group first"),
            std::string::npos)
      << harness.errors;
}

/// A copy in flight reads what nobody may write.
TEST_F(ForeignOperations, ReadGlobalMemoryUntilTheWait) {
  const std::string copy = alloc("%b") + bulkFill("%b") + bulkCommit,
                    store = "    %z = arith.constant 0.0 : f32\n    tile.store %p, %z : !tile.ptr<f32>\n";
  auto good = prepared(kernel(copy + bulkWait + store));
  ASSERT_TRUE(good);
  EXPECT_EQ(BarrierHarness::barriers(*good).size(), 1u) << BarrierHarness::text(*good);
  EXPECT_TRUE(harness.verifies(*good)) << harness.errors;
  auto bad = harness.parse(kernel(copy + store + bulkWait));
  ASSERT_TRUE(bad && harness.prepare(*bad)) << harness.errors;
  EXPECT_FALSE(harness.verifies(*bad));
  EXPECT_NE(harness.errors.find("this writes memory that a copy in flight may still read"), std::string::npos)
      << harness.errors;
}

TEST_F(ForeignOperations, HaveTheirBuffersPlaced) {
  const auto offsets = [&](const std::string &body) {
    std::vector<std::uint32_t> out;
    auto module = prepared(kernel(body));
    if (module)
      module->walk([&](tile_gpu::LocalAllocOp op) { out.push_back(op.getOffset().value_or(~0u)); });
    return out;
  };
  // One after the other: the same bytes.  One while the other is read later: bytes of its own.
  EXPECT_EQ(offsets(alloc("%a") + put("%a") + sum("%a") + alloc("%b") + put("%b") + sum("%b")),
            (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(offsets(alloc("%a") + put("%a") + alloc("%b") + put("%b") + sum("%b") + sum("%a")),
            (std::vector<std::uint32_t>{0, 8192}));
  // A buffer that is filled in flight is alive until the wait.
  EXPECT_EQ(offsets(alloc("%a") + bulkFill("%a") + bulkCommit + alloc("%b") + put("%b") + bulkWaitAll + sum("%b")),
            (std::vector<std::uint32_t>{0, 8192}));
  EXPECT_EQ(offsets(alloc("%a") + bulkFill("%a") + bulkCommit + bulkWaitAll + alloc("%b") + put("%b") + sum("%b")),
            (std::vector<std::uint32_t>{0, 0}));
}

TEST_F(ForeignOperations, AreReported) {
  auto module = prepared(kernel(alloc("%b") + put("%b") + sum("%b") + bulkFill("%b") + bulkCommit + bulkWait));
  ASSERT_TRUE(module);
  const std::string report = reportKernel(function(*module), **findTarget("sm_90a"));
  const auto has = [&](const std::string &text) { EXPECT_NE(report.find(text), std::string::npos) << text << report; };
  has(R"("op":"foreign.put","form":)");
  has(R"("op":"foreign.sum","note":"any thread, any byte)");
  has(R"json("work":["bulk copies (TMA)"])json");
  has(R"("op":"tile_gpu.barrier","after":{"file":"-","line":10,"op":"foreign.put"},"before":{"file":"-","line":11,)"
      R"("op":"foreign.sum"}})");
  has(R"("op":"foreign.bulk_fill","type":"scalar")");
}

TEST_F(ForeignOperations, NeedTheirCapabilityOfTheTarget) {
  auto module = harness.parse(kernel(alloc("%b") + bulkFill("%b")));
  ASSERT_TRUE(module) << harness.errors;
  module->walk([](foreign::BulkFillOp op) {
    EXPECT_TRUE(checkTarget(op, **findTarget("sm_90a")).ok());
    const Status status = checkTarget(op, **findTarget("sm_80"));
    EXPECT_NE(status.toString().find("foreign.bulk_fill needs the capability 'tma', which sm_80 lacks"),
              std::string::npos)
        << status.toString();
  });
  module->walk([](tile_gpu::LocalAllocOp op) { EXPECT_TRUE(checkTarget(op, **findTarget("sm_75")).ok()); });
}

TEST_F(ForeignOperations, StateWhatTheirEffectsSay) {
  const std::string two = alloc("%a") + alloc("%b");
  EXPECT_FALSE(harness.parse(kernel(two + "    \"foreign.half\"(%a, %b) : (" + buffer + ", " + buffer + ") -> ()\n")));
  EXPECT_NE(harness.errors.find("has a memory effect on an operand in shared memory and states no access of it"),
            std::string::npos)
      << harness.errors;
  EXPECT_FALSE(harness.parse(kernel(two + "    \"foreign.hidden\"(%a) : (" + buffer + ") -> ()\n")));
  EXPECT_NE(harness.errors.find("accesses shared memory that its memory effects do not name"), std::string::npos)
      << harness.errors;
}

/// Three warpgroups, none of which has a tile: a barrier of 384 threads is one of the block, one of 256 is not.
TEST_F(ForeignOperations, OfTwelveWarpsMeetAtABarrierOfAllOfThem) {
  const auto kernelWith = [](const std::string &barrier) {
    return kernel(alloc("%b") + bulkFill("%b") + bulkCommit + bulkWait + barrier + sum("%b"), 12);
  };
  for (const unsigned threads : {384u, 256u}) {
    auto module = prepared(kernelWith("    tile_gpu.named_barrier 1, threads " + std::to_string(threads) + "\n"));
    ASSERT_TRUE(module);
    EXPECT_EQ(BarrierHarness::barriers(*module).size(), threads == 384 ? 0u : 1u) << BarrierHarness::text(*module);
    EXPECT_TRUE(harness.verifies(*module)) << harness.errors;
  }
  auto bad = harness.parse(kernelWith(""));
  ASSERT_TRUE(bad) << harness.errors;
  bad->walk([](tile_gpu::LocalAllocOp op) { op.setOffset(0); });
  EXPECT_FALSE(harness.verifies(*bad));
}

} // namespace
} // namespace kiln::test
