//===- MatrixCountersTest.cpp - Counters of matmul and attention in closed form ------===//
//
// At the default configurations, where tiles divide the tensors and tensors are dense: what programs must load, store
// and multiply, in full sectors, and no bank conflict in any conversion or load of operands.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/kernels/MatmulHarness.h"

#include "tests/support/TestTier.h"

#include <set>

namespace kiln::test {
namespace {

using namespace kernels;

/// What one launch must count.
struct Wanted {
  std::optional<std::uint64_t> loadBytes;
  std::uint64_t storeBytes, flops;
  /// Bytes that may go between memory and fragments without shared memory, 16 of a sector at a time.
  std::uint64_t halfLoaded = 0, halfStored = 0;
  bool bytewise = false; ///< 8-bit operands that lie across: lanes pick bytes, two in a bank
};

class MatrixCounters : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
    if (!on->emulated())
      GTEST_SKIP() << "a GPU counts nothing";
  }

  template <typename Call> void check(const std::string &what, const Wanted &wanted, Call call) {
    SCOPED_TRACE(on->device->info().name + ": " + what);
    on->device->takeCounters();
    ASSERT_TRUE(on->device->record({.counters = true}).ok());
    call();
    EXPECT_TRUE(on->device->record({}).ok());
    const std::vector<LaunchCounters> got = on->device->takeCounters();
    ASSERT_EQ(got.size(), 1u);
    const Counts &c = got[0].total;
    if (wanted.bytewise)
      EXPECT_LE(2 * c.sharedTotal().conflicts, c.sharedTotal().wavefronts);
    for (const LineCounts &line : got[0].lines)
      if (!wanted.bytewise)
        EXPECT_EQ(line.counts.sharedTotal().conflicts, 0u)
            << line.file << ":" << line.line << ", of " << line.counts.sharedTotal().wavefronts << " wavefronts";
    EXPECT_EQ(c.localRequests, 0u) << "registers are spilled";
    EXPECT_EQ(c.matrixFlops, wanted.flops);
    const auto total = [&](std::initializer_list<AccessKind> kinds) {
      GlobalCounts out;
      for (const AccessKind kind : kinds) {
        const GlobalCounts &g = c.global[static_cast<unsigned>(kind)];
        out.bytes += g.bytes, out.sectors += g.sectors;
      }
      return out;
    };
    const GlobalCounts loads = total({AccessKind::Load, AccessKind::Copy, AccessKind::BulkLoad}),
                       stores = total({AccessKind::Store, AccessKind::BulkStore});
    if (wanted.loadBytes) {
      EXPECT_EQ(loads.bytes, *wanted.loadBytes);
    }
    EXPECT_GE(loads.sectors, loads.bytes / 32);
    EXPECT_LE(loads.sectors, (loads.bytes + wanted.halfLoaded) / 32);
    EXPECT_EQ(stores.bytes, wanted.storeBytes);
    EXPECT_GE(stores.sectors, stores.bytes / 32);
    EXPECT_LE(stores.sectors, (stores.bytes + wanted.halfStored) / 32);
    EXPECT_EQ(c.global[static_cast<unsigned>(AccessKind::Atomic)].requests, 0u);
  }

  Operand ones(DType type, std::int64_t rows, std::int64_t columns, bool byColumns) {
    return upload(*on->device, type, {rows, columns},
                  std::vector<double>(static_cast<std::size_t>(rows * columns), 1.0),
                  {byColumns ? std::vector<unsigned>{1, 0} : std::vector<unsigned>{0, 1}});
  }

  /// In the default tier each target takes another quarter.
  bool chosen(unsigned number) const { return isFullTier() || number % 4 == GetParam(); }

  Opened *on = nullptr;
};

TEST_P(MatrixCounters, OfMatmul) {
  unsigned number = 0;
  for (const auto &[type, out] : {std::pair(DType::F16, DType::F16),
                                  {DType::BF16, DType::F32},
                                  {DType::I8, DType::I32},
                                  {DType::F8E4M3, DType::BF16},
                                  {DType::F32, DType::F32}})
    for (unsigned columns = 0; columns < 4; ++columns) {
      if (!chosen(number++))
        continue;
      const std::int64_t M = 256, N = 128, K = 128, inBytes = dtypeBytes(type);
      // Warpgroups take 8-bit floats with K contiguous in both.
      const bool mayBeWarpgroups = inBytes == 2 || (type == DType::F8E4M3 && columns == 2);
      const std::int64_t tile = mayBeWarpgroups && multipliesByWarpgroups(*on) ? 64 : 128;
      // Each tile of out loads its rows of a and its columns of b.
      const std::int64_t tiles = M / tile * (N / tile), loaded = tiles * 2 * tile * K * inBytes;
      Wanted wanted{static_cast<std::uint64_t>(loaded), static_cast<std::uint64_t>(M * N * dtypeBytes(out)),
                    static_cast<std::uint64_t>(2 * M * N * K)};
      if (type == DType::F32 && columns & 1) // a may go straight to its fragments, two warps each
        wanted.loadBytes = {};
      wanted.bytewise = inBytes == 1 && columns != 2;
      const Operand a = ones(type, M, K, columns & 1), b = ones(type, K, N, columns & 2),
                    c = allocateOutput(*on->device, out, {M, N});
      MatmulArguments arguments{a.tensor, b.tensor, c.tensor};
      if (type == DType::F32)
        arguments.precision = language::Precision::Tf32;
      check(std::string(dtypeName(type)) + (columns & 1 ? ", a by columns" : "") +
                (columns & 2 ? ", b by columns" : ""),
            wanted, [&] {
              MatmulOperation operation(*on->jit);
              const Status s = operation.run(arguments);
              EXPECT_TRUE(s.ok()) << s.toString();
            });
    }
}

/// The tiles of large products by warpgroups, four steps deep and two tiles across.
TEST_P(MatrixCounters, OfMatmulByWarpgroups) {
  if (!multipliesByWarpgroups(*on))
    GTEST_SKIP() << "this target has no wgmma";
  const std::int64_t M = 128, N = 512, K = 256;
  for (unsigned columns = 0; columns < 4; ++columns) {
    if (!isFullTier() && columns % 3)
      continue;
    const Operand a = ones(DType::BF16, M, K, columns & 1), b = ones(DType::BF16, K, N, columns & 2),
                  c = allocateOutput(*on->device, DType::BF16, {M, N});
    MatmulArguments arguments{a.tensor, b.tensor, c.tensor};
    arguments.tiling.blockM = 128, arguments.tiling.blockN = 256;
    const Wanted wanted{static_cast<std::uint64_t>(2 * (M * K * 2 + N * K)), static_cast<std::uint64_t>(M * N * 2),
                        static_cast<std::uint64_t>(2 * M * N * K)};
    check(columns & 1 ? "a by columns, b by columns" : "both by rows", wanted, [&] {
      MatmulOperation operation(*on->jit);
      const Status s = operation.run(arguments);
      EXPECT_TRUE(s.ok()) << s.toString();
    });
  }
}

TEST_P(MatrixCounters, OfAttention) {
  unsigned number = 0;
  for (const auto &[dim, dimV] :
       {std::pair<std::int64_t, std::int64_t>{64, 64}, {128, 128}, {96, 96}, {192, 128}, {256, 256}})
    for (const bool causal : {false, true}) {
      if (!chosen(number++) || (!isFullTier() && dim > 128))
        continue;
      const std::int64_t S = 256, H = 1;
      const auto tensor = [&](std::int64_t columns) {
        return upload(*on->device, DType::F16, {1, S, H, columns},
                      std::vector<double>(static_cast<std::size_t>(S * H * columns), 0.5));
      };
      const Operand q = tensor(dim), k = tensor(dim), v = tensor(dimV),
                    o = allocateOutput(*on->device, DType::F16, {1, S, H, dimV}),
                    lse = allocateOutput(*on->device, DType::F32, {1, H, S});
      AttentionArguments a;
      a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.o = o.tensor, a.lse = lse.tensor;
      a.causal = causal;
      for (const Heads heads : everyHeads) {
        a.tiling = tilingOf(*on->device, a, heads);
        const std::int64_t blockM = a.tiling.blockM, blockN = a.tiling.blockN;
        std::uint64_t keys = 0; // that programs of one head meet, with multiplicity
        for (std::int64_t row = 0; row < S; row += blockM)
          keys += static_cast<std::uint64_t>(causal ? (row + blockM + blockN - 1) / blockN * blockN : S);
        const auto h = static_cast<std::uint64_t>(H), s = static_cast<std::uint64_t>(S),
                   d = static_cast<std::uint64_t>(dim), dv = static_cast<std::uint64_t>(dimV);
        const Wanted wanted{h * 2 * (s * d + keys * (d + dv)), h * s * (2 * dv + 4),
                            2 * h * static_cast<std::uint64_t>(blockM) * keys * (d + dv), h * 2 * s * d,
                            h * 2 * s * dv};
        check("D " + std::to_string(dim) + "/" + std::to_string(dimV) + (causal ? " causal" : "") + " " +
                  std::to_string(a.tiling.blockM) + " rows, " + std::to_string(a.tiling.warps) + " warps",
              wanted, [&] {
                AttentionOperation operation(*on->jit);
                const Status status = operation.run(a);
                EXPECT_TRUE(status.ok()) << status.toString();
              });
      }
    }
}

/// Every head dim takes copies of 16 bytes of k and v, and one compile for all that share a tile: rows of 56 and of 64
/// elements are whole 16 bytes alike.  (Where products of warpgroups are delayed, the first k and the last v are
/// loads.)
TEST(AttentionCopies, AreOf16BytesForEveryHeadDim) {
  std::unique_ptr<Opened> on = freshDevice("emulator:sm_90");
  ASSERT_TRUE(on);
  std::set<std::int64_t> tiles;
  for (std::int64_t dim = 8; dim <= 256; dim += 8) {
    const bool sampled = dim == 8 || dim == 40 || dim == 56 || dim == 64 || dim == 120;
    if (!isFullTier() && !sampled)
      continue;
    SCOPED_TRACE("D " + std::to_string(dim));
    const std::int64_t S = 128, H = 3, wide = (dim + 15) / 16 * 16;
    const auto tensor = [&] {
      return upload(*on->device, DType::BF16, {1, S, H, dim},
                    std::vector<double>(static_cast<std::size_t>(S * H * dim), 0.5));
    };
    const Operand q = tensor(), k = tensor(), v = tensor(),
                  o = allocateOutput(*on->device, DType::BF16, {1, S, H, dim});
    AttentionArguments a;
    a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.o = o.tensor;
    a.tiling = tilingOf(*on->device, a, Heads::Few);
    on->device->takeCounters();
    ASSERT_TRUE(on->device->record({.counters = true}).ok());
    AttentionOperation operation(*on->jit);
    const Status status = operation.run(a);
    ASSERT_TRUE(status.ok()) << status.toString();
    const std::vector<LaunchCounters> got = on->device->takeCounters();
    ASSERT_EQ(got.size(), 1u);
    tiles.insert(wide);
    EXPECT_EQ(on->jit->counters().compiles, tiles.size());
    const auto number = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    const Counts &c = got[0].total;
    const SharedCounts &written = c.shared[static_cast<unsigned>(AccessKind::Copy)];
    const GlobalCounts &copied = c.global[static_cast<unsigned>(AccessKind::Copy)],
                       &loaded = c.global[static_cast<unsigned>(AccessKind::Load)];
    const std::int64_t programs = (S + a.tiling.blockM - 1) / a.tiling.blockM * H;
    EXPECT_EQ(written.bytes, number(programs * S * 2 * 2 * wide));
    // A tile of 144 columns is nine of 16: with fewer pieces of 16 bytes in each than threads, some threads copy none.
    const std::int64_t pieces = a.tiling.blockN * (wide & -wide) / 8, threads = 32 * a.tiling.warps;
    EXPECT_EQ(written.bytes * number(std::max<std::int64_t>(1, threads / pieces)), 32 * 16 * written.requests);
    EXPECT_EQ(copied.bytes, number(programs * S * 2 * 2 * dim));
    EXPECT_EQ(loaded.bytes, number(S * H * 2 * dim)); // queries; nothing else goes through registers
    EXPECT_EQ(c.localRequests, 0u) << "registers are spilled";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MatrixCounters, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
