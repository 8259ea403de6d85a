//===- MatmulTest.cpp - Matrix products of any size, stride and type ------------===//
#include "tests/kernels/MatmulHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

TEST_P(Matmul, AnySize) {
  for (const auto &[m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {1, 64, 31},
                                {65, 33, 7},
                                {128, 128, 128},
                                {129, 130, 65},
                                {17, 257, 40},
                                {5, 3, 0}})
    check({DType::BF16, DType::BF16, 0, m, n, k});
}

/// Rows of 16-bit elements that start at odd elements, so that no load may take two at once, and that end inside a
/// vector; everything around them is NaN in a and b, and poison in out.
TEST_P(Matmul, OddKMasked16BitLoads) {
  unsigned number = 0;
  for (const DType type : {DType::F16, DType::BF16})
    for (const std::int64_t k : {1, 3, 7, 15, 31, 33, 65, 127})
      for (unsigned columns = 0; columns < 4; ++columns) {
        if (!chosen(number++, 8))
          continue;
        Problem p{type, type, k % 4 == 3 ? 2 : 0, 37, 41, k};
        p.aColumns = columns & 1, p.bColumns = columns & 2;
        p.pad = columns == 3 ? 0 : 2 * (k % 3); // the extents are odd, so strides stay odd
        p.around = 5;                           // and the first element is no multiple of 4 bytes
        check(p);
      }
}

TEST_P(Matmul, EveryType) {
  using language::Precision;
  struct Types {
    DType type, out;
    std::int64_t k;
    Precision precision = Precision::Ieee;
  };
  unsigned number = 0;
  for (const Types &t : {Types{DType::F16, DType::F16, 50},
                         {DType::F16, DType::F32, 50},
                         {DType::BF16, DType::F32, 50},
                         {DType::F8E4M3, DType::BF16, 90},
                         {DType::F8E5M2, DType::F32, 90},
                         {DType::I8, DType::I32, 90},
                         {DType::F32, DType::F32, 50},
                         {DType::F32, DType::F32, 50, Precision::Tf32},
                         {DType::F32, DType::F32, 50, Precision::Tf32x3}}) {
    if (!chosen(number++, 4))
      continue;
    Problem p{t.type, t.out, 0, 70, 100, t.k};
    p.precision = t.precision;
    check(p);
  }
}

/// Both with K contiguous: warpgroups read them where they were copied, of either type.
TEST_P(Matmul, EighthsWithKContiguous) {
  unsigned number = 0;
  for (const DType type : {DType::F8E4M3, DType::F8E5M2})
    for (const auto &[m, n, k] : {std::array<std::int64_t, 3>{150, 260, 272}, {70, 100, 96}, {300, 520, 1040}}) {
      if (on->emulated() ? m > 150 || !chosen(number++, 2) : false)
        continue;
      Problem p{type, type == DType::F8E4M3 ? DType::BF16 : DType::F32, 0, m, n, k};
      p.bColumns = true;
      check(p);
    }
}

TEST_P(Matmul, AnyStrides) {
  for (unsigned mask = 0; mask < 8; ++mask) {
    if (!chosen(mask, 4))
      continue;
    Problem p{DType::F16, DType::F16, 2, 40, 72, 24};
    p.aColumns = mask & 1, p.bColumns = mask & 2, p.outColumns = mask & 4;
    p.pad = mask % 3 * 4;
    check(p);
  }
}

/// The tiles that products by warpgroups choose, cut at every edge; steps from none to more than there are slots, each
/// operand either way around.
TEST_P(Matmul, EveryTileOfWarpgroups) {
  if (!multipliesByWarpgroups(*on))
    GTEST_SKIP() << "this target has no wgmma";
  unsigned number = 0;
  for (const auto &[blockM, blockN] : {std::pair{128, 256}, {128, 128}, {64, 128}, {64, 64}})
    for (const std::int64_t k : {0, 8, 64, 136, 200, 264, 584})
      for (unsigned columns = 0; columns < 4; ++columns) {
        if (!chosen(number++, 5))
          continue;
        Problem p{number % 2 ? DType::BF16 : DType::F16, DType::F32, 0, blockM + 8, blockN + 16, k};
        p.aColumns = columns & 1, p.bColumns = columns & 2;
        p.tiling.blockM = blockM, p.tiling.blockN = blockN;
        check(p);
      }
}

/// Programs that take tile after tile, more of them than there are slots, fewer, none; steps from none to more than
/// there are slots; by every unit and way to copy.
TEST_P(Matmul, ProgramsThatTakeSeveralTiles) {
  unsigned number = 0;
  for (const DType type : {DType::BF16, DType::F32, DType::I8})
    for (const std::int64_t k : {0, 8, 64, 136, 584})
      for (const std::int64_t programs : {1, 2, 5, 100}) {
        if (!chosen(number++, 9))
          continue;
        Problem p{type, type == DType::I8 ? DType::I32 : DType::F32, number % 2 ? 0 : 2, 264, 272, k};
        p.programs = programs;
        if (type == DType::BF16 && multipliesByWarpgroups(*on))
          p.tiling.blockM = 128, p.tiling.blockN = number % 4 < 2 ? 256 : 128;
        check(p);
      }
}

TEST_P(Matmul, BatchesAndABatchForAll) {
  check({DType::BF16, DType::F32, 3, 33, 65, 40});
  // One b for every batch, through a stride of 0 and without the dimension.
  const Operand a = operand(DType::F16, {3, 16, 32}), b = operand(DType::F16, {32, 8}),
                one = output(DType::F32, {3, 16, 8}), two = output(DType::F32, {3, 16, 8});
  Tensor spread = b.tensor;
  spread.rank = 3;
  spread.shape = {3, 32, 8};
  spread.strides = {0, 8, 1};
  MatmulOperation operation(*on->jit);
  Status s = operation.run({a.tensor, b.tensor, one.tensor});
  ASSERT_TRUE(s.ok()) << s.toString();
  s = operation.run({a.tensor, spread, two.tensor});
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(download(one), download(two));
}

TEST_P(Matmul, Epilogue) {
  for (const Activation activation : {Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu}) {
    if (!chosen(static_cast<unsigned>(activation), 4))
      continue;
    Problem p{DType::F16, DType::F16, 0, 33, 70, 40};
    p.bias = true;
    p.scale = 0.25f;
    p.activation = activation;
    check(p);
  }
}

/// Wrong arguments: named, with a remedy, and nothing is compiled.
TEST_P(Matmul, WrongArgumentsAreRefused) {
  const Operand a = operand(DType::F16, {16, 32}), b = operand(DType::F16, {32, 8}), out = output(DType::F16, {16, 8}),
                single = operand(DType::F32, {32, 8});
  const auto before = on->jit->counters().compiles;
  const auto refused = [&](const MatmulArguments &arguments, std::initializer_list<std::string> parts) {
    MatmulOperation operation(*on->jit);
    expectRefused(operation.run(arguments), parts, "matmul");
  };
  const Tensor x = a.tensor, y = b.tensor, z = out.tensor;
  refused({x, single.tensor, z}, {"'b'", "f32", "f16"});
  refused({x, x, z}, {"'b'", "16", "32"});
  refused({x, y, x}, {"'out'"});
  refused({x, y, single.tensor}, {"'out'"});
  Tensor three = z;
  three.rank = 3;
  refused({x, y, three}, {"'out'", "rank"});
  MatmulArguments scaled{x, y, z};
  scaled.scale = INFINITY;
  refused(scaled, {"scale", "inf"});
  MatmulArguments precise{x, y, z};
  precise.precision = language::Precision::Tf32;
  refused(precise, {"precision", "f16"});
  MatmulArguments biased{x, y, z};
  biased.bias = z;
  refused(biased, {"'bias'"});
  const auto tiled = [&](const Tiling &tiling, std::initializer_list<std::string> parts) {
    MatmulArguments arguments{x, y, z};
    arguments.tiling = tiling;
    refused(arguments, parts);
  };
  tiled({.blockM = 48}, {"block_m = 48", "power of two"});
  tiled({.blockK = 8}, {"block_k = 8", "16"});
  tiled({.warps = 3}, {"warps = 3", "power of two"});
  tiled({.stages = 9}, {"stages = 9", "8"});
  const auto available = sharedBytesOf(*on->jit); // 4 x 256 x 256 elements of both operands take 1 MiB
  ASSERT_TRUE(available.ok()) << available.status().toString();
  const std::string bytes = std::to_string(*available);
  tiled({.blockM = 256, .blockN = 256, .blockK = 256, .stages = 4},
        {"stages = 4", "block_m = 256, block_n = 256, block_k = 256", "1048576 bytes", bytes.c_str()});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// Sizes and strides of one class share the code.
TEST_P(Matmul, OneCompileForManySizes) {
  std::unique_ptr<Opened> fresh = freshDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(fresh);
  on = fresh.get();
  MatmulOperation operation(*on->jit);
  for (std::int64_t size : {80, 96, 144, 160}) {
    const Operand a = operand(DType::F16, {size, 64}), b = operand(DType::F16, {64, size}),
                  out = output(DType::F16, {size, size});
    ASSERT_TRUE(operation.run({a.tensor, b.tensor, out.tensor}).ok());
  }
  EXPECT_EQ(on->jit->counters().compiles, 1u);
}

/// The bits of the usual order under seeds of every schedule, and with every warp late somewhere; no findings.
TEST_P(Matmul, SeedsOfEverySchedule) {
  const std::string name = deviceNames()[GetParam()];
  const TemporaryDirectory folder;
  const auto result = [&](const Opening &how, const std::string &what) {
    SCOPED_TRACE(name + " " + what);
    const std::unique_ptr<Opened> other = openWith(name, how);
    if (!other)
      return std::vector<double>();
    Opened *const before = std::exchange(on, other.get());
    random.seed(5);
    std::vector<double> got;
    {
      const Operand a = operand(DType::BF16, {150, 70}, {{}, 2}), b = operand(DType::BF16, {70, 140}, {{1, 0}}),
                    out = output(DType::F32, {150, 140});
      MatmulOperation operation(*on->jit);
      const Status s = operation.run({a.tensor, b.tensor, out.tensor});
      EXPECT_TRUE(s.ok()) << s.toString();
      for (const Finding &f : on->device->takeFindings())
        ADD_FAILURE() << f.message;
      got = download(out);
    }
    on = before;
    return got;
  };
  Opening usual{{}, folder.path() + "/kernels", ""};
  const std::vector<double> wanted = result(usual, "in order");
  for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 0; on->emulated() && seed < pick(1u, 20u) && !HasFailure(); ++seed) {
      Opening how = usual;
      how.emulator.schedule = schedule;
      how.emulator.seed = GetParam() + seed;
      ASSERT_EQ(result(how, std::string(scheduleName(schedule)) + " " + std::to_string(seed)), wanted);
    }
  for (const char *stress : {"1", "3:2"}) {
    Opening how = usual;
    how.stress = stress;
    ASSERT_EQ(result(how, std::string("KILN_STRESS=") + stress), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Matmul, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
