//===- AttentionTest.cpp - Attention forward: masks, head dims, options, limits ===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

TEST_P(AttentionForward, LengthsAndMasks) {
  unsigned number = 0;
  for (const auto &[Q, K] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 128}, {3, 97}, {113, 203}, {128, 128}, {200, 70}})
    for (unsigned mask = 0; mask < 5; ++mask) {
      if (!chosen(number++, 12))
        continue;
      Problem p = with(Q, K, mask % 2 ? DType::F16 : DType::BF16);
      p.causal = mask == 1 || mask == 2;
      p.alignment = mask == 2 || mask == 4 ? Alignment::TopLeft : Alignment::BottomRight;
      if (mask >= 3)
        p.left = 17, p.right = mask == 3 ? 0 : 5;
      both(p);
    }
}

/// Rows of a chunk of a prompt: keys before it, its own, and keys that come after it in the cache.
TEST_P(AttentionForward, PositionOffsets) {
  unsigned number = 0;
  for (const std::int64_t offset : {0, 45, 64, 130, 400}) // the last: every row stands after all keys
    for (unsigned mask = 0; mask < 3; ++mask) {
      if (!chosen(number++, 5))
        continue;
      Problem p = with(70, 150, mask % 2 ? DType::F16 : DType::BF16);
      p.offset = offset, p.batch = 2, p.causal = mask != 1;
      if (mask == 1)
        p.left = 30, p.right = 4;
      p.alibi = mask == 2;
      both(p);
    }
  Problem packed = with(0, 0);
  packed.lengthsQ = {33, 0, 70}, packed.lengthsK = {90, 20, 64}, packed.usedK = {80, 20, 64};
  packed.causal = true, packed.offset = 40;
  both(packed);
}

/// The offset that the other alignment gives by itself.
TEST_P(AttentionForward, OffsetsThatAnAlignmentHasGiveItsBits) {
  Problem p = with(60, 145);
  p.causal = true, p.left = 90;
  const Data d = randomData(p, random);
  for (const Alignment alignment : {Alignment::BottomRight, Alignment::TopLeft}) {
    p.alignment = alignment, p.offset.reset();
    const Results aligned = run(p, d);
    p.offset = alignment == Alignment::BottomRight ? p.keys - p.queries : 0;
    p.alignment = Alignment::BottomRight; // does not count
    const Results offset = run(p, d);
    EXPECT_EQ(aligned.o, offset.o);
    EXPECT_EQ(aligned.lse, offset.lse);
  }
}

TEST_P(AttentionForward, HeadDims) {
  unsigned number = 0;
  for (const auto &[dim, dimV] : headDimsToTry) {
    if (!chosen(number++, 8))
      continue;
    Problem p = with(70, 90);
    p.dim = dim, p.dimV = dimV, p.causal = true;
    both(p);
  }
}

TEST_P(AttentionForward, SoftcapSinkAlibiScale) {
  for (unsigned options = 1; options < 16; ++options) {
    if (!chosen(options, 8))
      continue;
    const Problem p = withOptions(options);
    compare(p, randomData(p, random));
  }
}

/// Wrong arguments: named, with a remedy, before anything is compiled.
TEST_P(AttentionForward, WrongArgumentsAreRefused) {
  const auto tensor = [&](DType type, const std::vector<std::int64_t> &shape) {
    return allocateOutput(*on->device, type, shape);
  };
  const Operand q = tensor(DType::F16, {2, 16, 4, 64}), k = tensor(DType::F16, {2, 16, 2, 64}),
                v = tensor(DType::F16, {2, 16, 2, 64}), o = tensor(DType::F16, {2, 16, 4, 64}),
                other = tensor(DType::BF16, {2, 16, 2, 64}), odd = tensor(DType::F16, {2, 16, 3, 64}),
                thin = tensor(DType::F16, {2, 16, 4, 20}), offsets = tensor(DType::I32, {3});
  const auto before = on->jit->counters().compiles;
  AttentionArguments good;
  good.q = q.tensor, good.k = k.tensor, good.v = v.tensor, good.o = o.tensor;
  const auto refused = [&](auto change, std::initializer_list<std::string> parts) {
    AttentionArguments a = good;
    change(a);
    AttentionOperation operation(*on->jit);
    expectRefused(operation.run(a), parts, *parts.begin());
  };
  using A = AttentionArguments;
  refused([&](A &a) { a.k = other.tensor; }, {"'k'", "bf16", "f16"});
  refused([&](A &a) { a.k = odd.tensor; }, {"4 heads", "3"});
  refused([&](A &a) { a.q = thin.tensor; }, {"'q'", "20"});
  refused([&](A &a) { a.o = k.tensor; }, {"'o'"});
  // The same window: other programs still read it.
  refused([&](A &a) { a.q = v.tensor, a.o = k.tensor; }, {"'o'", "overlaps 'k'"});
  refused([&](A &a) { a.q.strides[3] = 2; }, {"'q'", "stride"});
  refused([&](A &a) { a.windowLeft = -2; }, {"window_left", "-2"});
  refused([&](A &a) { a.positionOffset = -1; }, {"position_offset", "-1", "2^28"});
  refused([&](A &a) { a.positionOffset = (1 << 28) + 1; }, {"position_offset", "268435457"});
  refused([&](A &a) { a.scale = 0.0f; }, {"scale"});
  refused([&](A &a) { a.scale = -1.0f; }, {"scale"});
  refused([&](A &a) { a.softcap = -1; }, {"softcap"});
  refused([&](A &a) { a.k.rank = 3; }, {"cu_seqlens_k", "'k'"});
  refused([&](A &a) { a.cuQ = offsets.tensor; }, {"16 groups of heads", "2"}); // packed q of rank 4: heads are split
  refused([&](A &a) { a.cuQ = a.cuK = offsets.tensor; }, {"rank 4", "3"});
  refused([&](A &a) { a.sink = offsets.tensor; }, {"'sink'"});
  refused([&](A &a) { a.usedK = offsets.tensor; }, {"'seqused_k'", "3", "2"});
  refused([&](A &a) { a.q.address += 1; }, {"'q'"});
  refused([&](A &a) { a.tiling.blockM = 48; }, {"block_m = 48", "power of two"});
  refused([&](A &a) { a.tiling.blockN = 512; }, {"block_n = 512", "256"});
  refused([&](A &a) { a.tiling.warps = 3; }, {"warps = 3", "power of two"});
  refused([&](A &a) { a.tiling.stages = 9; }, {"stages = 9", "8"});
  const auto available = sharedBytesOf(*on->jit); // 8 x 256 rows of k and v take 512 KiB
  ASSERT_TRUE(available.ok()) << available.status().toString();
  const std::string bytes = std::to_string(*available);
  refused([&](A &a) { a.tiling.blockN = 256, a.tiling.stages = 8; },
          {"stages = 8", "block_n = 256", "524288 bytes", bytes.c_str()});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// 2^29 keys, all in one place, and the widest right window: sums of rows, shifts and windows stay in 32 bits.  The
/// query sees the last four keys.
TEST_P(AttentionForward, ExtentsAndWindowsAtTheirLimits) {
  constexpr std::int64_t most = std::int64_t(1) << 29, D = 64;
  std::vector<double> rows[3];
  for (std::vector<double> &row : rows)
    for (std::int64_t c = 0; c < D; ++c)
      row.push_back(static_cast<double>(static_cast<int>(random() % 17) - 8) / 8);
  const std::vector<std::int64_t> shape = {1, 1, 1, D};
  const Operand q = upload(*on->device, DType::BF16, shape, rows[0]),
                k = upload(*on->device, DType::BF16, shape, rows[1]),
                v = upload(*on->device, DType::BF16, shape, rows[2]),
                o = allocateOutput(*on->device, DType::BF16, shape),
                lse = allocateOutput(*on->device, DType::F32, {1, 1, 1});
  AttentionArguments a;
  a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.o = o.tensor, a.lse = lse.tensor;
  a.k.shape[1] = a.v.shape[1] = most;
  a.k.strides[1] = a.v.strides[1] = 0;
  a.windowLeft = 3, a.windowRight = 1 << 30;
  AttentionOperation operation(*on->jit);
  const Status s = operation.run(a);
  ASSERT_TRUE(s.ok()) << s.toString();
  double score = 0;
  for (std::size_t c = 0; c < std::size_t(D); ++c)
    score += rows[0][c] * rows[1][c] / std::sqrt(static_cast<double>(D));
  EXPECT_NEAR(download(lse)[0], score + std::log(4.0), 1e-4);
  const std::vector<double> got = download(o);
  for (std::size_t c = 0; c < std::size_t(D); ++c)
    EXPECT_NEAR(got[c], rows[2][c], 0x1p-7) << c;
  // The farthest position: 2^28, after which the window sees on to 2^28 + 3.
  a.positionOffset = 1 << 28, a.windowRight = 3;
  ASSERT_TRUE(operation.run(a).ok());
  EXPECT_NEAR(download(lse)[0], score + std::log(7.0), 1e-4);
  a.k.shape[1] = a.v.shape[1] = most + 1;
  EXPECT_NE(operation.run(a).message().find("the limit is 2^29"), std::string::npos);
}

/// One call compiles one kernel; other lengths compile none.
TEST_P(AttentionForward, OneCompileForManyLengths) {
  std::unique_ptr<Opened> fresh = freshDevice(deviceName());
  ASSERT_TRUE(fresh);
  on = fresh.get();
  for (const std::int64_t n : {80, 96, 208, 144}) {
    Problem p = with(n, n);
    p.causal = true;
    run(p, randomData(p, random));
    EXPECT_EQ(on->jit->counters().compiles, 1u) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionForward, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
