// Every diagnostic code of this library is raised by its bad input, with the value, the limit and a remedy; and no
// input, however mad, does anything but return.
#include "compiler/layout/Checks.h"
#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/TileLayout.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <limits>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

void expectDiagnostic(const Status &status, const std::string &code, const std::vector<std::string> &mentions = {}) {
  EXPECT_FALSE(status.ok()) << "expected " << code;
  EXPECT_EQ(status.message().substr(0, code.size() + 2), code + ": ") << status.toString();
  EXPECT_FALSE(status.remedy().empty()) << status.message();
  for (const std::string &m : mentions)
    EXPECT_NE(status.toString().find(m), std::string::npos) << "'" << m << "' is missing in: " << status.toString();
}

template <typename T>
void expectDiagnostic(const Result<T> &result, const std::string &code, const std::vector<std::string> &mentions = {}) {
  expectDiagnostic(result.ok() ? Status() : result.status(), code, mentions);
}

const Blocked good{{1, 1}, {4, 8}, {2, 2}, {1, 0}};
const Mma mma{2, {2, 2}};

Encoding dot(int op, std::int64_t kWidth, const Encoding &parent) {
  return DotOperand{op, kWidth, parent};
}

} // namespace

TEST(Diagnostics, Extents) {
  expectDiagnostic(lower(good, {48, 64}), "L01", {"48", "dimension 0", "64"});
  expectDiagnostic(lower(good, {64, 0}), "L01", {"0", "dimension 1"});
  expectDiagnostic(lower(good, {-4, 64}), "L01", {"-4"});
  expectDiagnostic(lower(good, {std::numeric_limits<std::int64_t>::max(), 2}), "L01", {"9223372036854775807"});
  expectDiagnostic(lower(good, {std::numeric_limits<std::int64_t>::min(), 2}), "L01");
  expectDiagnostic(lower(good, {std::int64_t(1) << 62, 1}), "L18", {"2^20"});
  expectDiagnostic(lower(good, {2048, 1024}), "L18", {"2048x1024", "2^20"});
  expectDiagnostic(lower(good, {2, 2, 2, 2, 2, 2, 2, 2, 2}), "L18", {"9", "8"});
  expectDiagnostic(LinearLayout::create({6}, {}), "L01", {"6", "8"});
}

TEST(Diagnostics, Parameters) {
  expectDiagnostic(lower(good, {64}), "L02", {"sizePerThread", "2 entries", "rank 1"});
  expectDiagnostic(lower(mma, {64}), "L02", {"rank 1"});
  expectDiagnostic(lower(dot(0, 1, good), {64}), "L02");
  expectDiagnostic(lower(Blocked{{3, 1}, {4, 8}, {2, 2}, {1, 0}}, {64, 64}), "L03", {"sizePerThread = 3", "2 or 4"});
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 8}, {-2, 2}, {1, 0}}, {64, 64}), "L03", {"warpsPerCTA = -2"});
  expectDiagnostic(lower(Mma{2, {1, 1}, 24}, {64, 64}), "L03", {"instrN = 24", "16 or 32"});
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 4}, {2, 2}, {1, 0}}, {64, 64}), "L04", {"[4, 4]", "32", "[4, 8]"});
  expectDiagnostic(lower(Blocked{{1, 1}, {64, 8}, {2, 2}, {1, 0}}, {64, 64}), "L04", {"[64, 8]", "[32, 1]"});
  expectDiagnostic(lower(Blocked{}, {}), "L04");
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 8}, {2, 2}, {1, 1}}, {64, 64}), "L06", {"order = [1, 1]", "0 .. 1"});
  expectDiagnostic(lower(Mma{2, {1, 1}, 8, {0, 2}}, {64, 64}), "L06", {"warpOrder"});
  expectDiagnostic(lower(Transposed{{0, 0}, Encoding(good)}, {64, 64}), "L06", {"perm = [0, 0]"});
  expectDiagnostic(unwrap(lower(good, {64, 64})).transpose({0, 7}), "L06", {"[0, 7]"});
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 8}, {2, 2}, {1, 0}, CtaSplit{{1, 1}, {2, 1}, {}}}, {64, 64}), "L07",
                   {"cta.split = 2", "cta.ctas = 1"});
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 8}, {2, 2}, {1, 0}, CtaSplit{{1}, {1, 1}, {}}}, {64, 64}), "L02",
                   {"cta.ctas"});
  expectDiagnostic(lower(Slice{3, Encoding(good)}, {64}), "L10", {"3", "0 .. 1"});
  expectDiagnostic(lower(Slice{-1, Encoding(good)}, {64}), "L10", {"-1"});
  expectDiagnostic(unwrap(lower(good, {64, 64})).slice(2), "L10", {"2"});
}

TEST(Diagnostics, LinearBases) {
  Linear missing{{{0, 1}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {0, 0}}, {}, {}};
  expectDiagnostic(lower(missing, {8, 8}), "L07", {"2^5", "2^6", "i4"});
  Linear outside{{{0, 8}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {}, {}};
  expectDiagnostic(lower(outside, {8, 8}), "L08", {"register[0]", "[0, 8]", "extent 8"});
  expectDiagnostic(lower(Linear{{{0, -1}}, outside.lanes, {}, {}}, {8, 8}), "L08", {"-1"});
  expectDiagnostic(lower(Linear{{{0}}, outside.lanes, {}, {}}, {8, 8}), "L02", {"register[0]"});
  expectDiagnostic(lower(Linear{{}, {{0, 1}}, {}, {}}, {1, 2}), "L04", {"1 lane bases", "32"});
  expectDiagnostic(lower(Linear{{}, outside.lanes, {}, {}, {4, 4}}, {8, 8}), "L12", {"4x4", "8x8"});
  expectDiagnostic(lower(Linear{std::vector<Sizes>(60, {0, 0}), outside.lanes, {}, {}}, {8, 8}), "L18", {"60", "24"});
  BitVector basis = 64;
  expectDiagnostic(LinearLayout::create({8, 8}, {{&basis, 1}}), "L08", {"register[0]", "64", "8x8"});
}

TEST(Diagnostics, DotsAndInstructions) {
  expectDiagnostic(lower(dot(0, 3, mma), {64, 64}), "L09", {"kWidth = 3", "2 or 4"});
  expectDiagnostic(lower(dot(0, 0, mma), {64, 64}), "L09", {"kWidth = 0"});
  expectDiagnostic(lower(dot(2, 2, mma), {64, 64}), "L09", {"op = 2"});
  expectDiagnostic(lower(dot(1, 2, Mma{3, {4, 1}, 64}), {64, 64}), "L09", {"shared"});
  expectDiagnostic(lower(Mma{3, {2, 2}, 64}, {64, 64}), "L15", {"[2, 2]", "4"});
  expectDiagnostic(lower(Mma{3, {4, 1}, 512}, {64, 64}), "L15", {"512", "8 .. 256"});
  expectDiagnostic(lower(Mma{2, {4, 1}, 0}, {64, 64}), "L15", {"0"});
  expectDiagnostic(lower(Mma{1, {4, 1}}, {64, 64}), "L00", {"version 1", "2"});
  expectDiagnostic(lower(dot(0, 2, Slice{0, Encoding(good)}), {64, 64}), "L00", {"slice", "mma"});
  expectDiagnostic(lower(DotOperand{0, 2, {}}, {64, 64}), "L00", {"parent"});
  expectDiagnostic(lower(Slice{0, {}}, {64}), "L00", {"parent"});
  auto operand = [](int op, std::int64_t kWidth, const Encoding &parent) { return DotOperand{op, kWidth, parent}; };
  auto check = [&](std::int64_t kA, std::int64_t kB, std::int64_t m, std::int64_t k, std::int64_t n, unsigned bits) {
    return checkDot(operand(0, kA, mma), Sizes{m, k}, operand(1, kB, mma), Sizes{k, n}, bits);
  };
  EXPECT_TRUE(check(2, 2, 16, 8, 8, 16).ok());
  EXPECT_TRUE(check(4, 4, 16, 16, 8, 8).ok());
  EXPECT_TRUE(check(1, 1, 16, 4, 8, 32).ok());
  expectDiagnostic(check(2, 4, 64, 64, 64, 16), "L09", {"2", "4"});
  expectDiagnostic(check(2, 2, 64, 4, 64, 16), "L09", {"K = 4", "8"});
  expectDiagnostic(check(16, 16, 64, 32, 64, 16), "L09", {"K = 32", "64"});
  expectDiagnostic(check(std::int64_t(1) << 62, std::int64_t(1) << 62, 64, 32, 64, 16), "L09");
  expectDiagnostic(check(2, 2, 8, 16, 64, 16), "L09", {"M = 8", "16"});
  expectDiagnostic(checkDot(operand(1, 2, mma), Sizes{64, 64}, operand(0, 2, mma), Sizes{64, 64}, 16), "L09");
  expectDiagnostic(checkDot(operand(0, 2, mma), Sizes{64, 32}, operand(1, 2, mma), Sizes{64, 64}, 16), "L12",
                   {"32", "64"});
}

TEST(Diagnostics, Shared) {
  expectDiagnostic(lowerShared(Swizzled{8, 1, 8}, {64, 32}, 16), "L14", {"2^6", "32", "maxPhase <= 4"});
  expectDiagnostic(lowerShared(Swizzled{3, 1, 8}, {64, 32}, 16), "L14", {"vec = 3"});
  expectDiagnostic(lowerShared(Swizzled{1, 0, 8}, {64, 32}, 16), "L14", {"perPhase = 0"});
  expectDiagnostic(lowerShared(Tma{128}, {64, 32}, 16), "L14", {"128", "64", "largest legal swizzle is 64"});
  // Repetitions of a core in the hardware's order: whole columns of S bytes, and 8 rows after which the swizzle
  // repeats.
  expectDiagnostic(SharedTile::create(Tma{128}, {64, 96}, 16), "L14", {"128", "64", "largest legal swizzle is 64"});
  expectDiagnostic(SharedTile::create(Tma{128}, {12, 64}, 16), "L14", {"12x64", "4x64", "512", "1024", "at least 8"});
  expectDiagnostic(SharedTile::create(Tma{64}, {2, 12, 64}, 16), "L14", {"2x12x64", "768", "512"});
  expectDiagnostic(SharedTile::create(Tma{64}, {4, 96}, 16), "L14", {"4x96", "256", "512"});
  expectDiagnostic(SharedTile::create(Tma{0}, {64, 96}, 16), "L14", {"swizzle = 0", "96", "use swizzle = 64"});
  expectDiagnostic(SharedTile::create(Tma{0}, {64, 24}, 8), "L14", {"swizzle = 0", "24", "pad the row"});
  expectDiagnostic(lowerShared(Tma{48}, {64, 32}, 16), "L14", {"48", "0, 32, 64 or 128"});
  expectDiagnostic(lowerShared(Tma{-128}, {64, 32}, 16), "L14");
  expectDiagnostic(lowerShared(Tma{0, {0, 0}}, {64, 32}, 16), "L06", {"order"});
  expectDiagnostic(lowerShared(Tma{0}, {}, 16), "L02");
  expectDiagnostic(lowerShared(Tma{0}, {64, 32}, 24), "L12", {"24", "16"});
  expectDiagnostic(lowerShared(Padded{24, 4}, {64, 32}, 16), "L03", {"interval = 24", "16 or 32"});
  expectDiagnostic(lowerShared(Padded{std::int64_t(1) << 62, 4}, {64, 32}, 16), "L18");
  expectDiagnostic(lowerShared(SharedLinear{{{0, 1}, {1, 0}, {1, 1}}}, {2, 4}, 16), "L17", {"rank 2", "3"});
  expectDiagnostic(lowerShared(SharedLinear{{{0, 1}, {1, 0}}}, {2, 4}, 16), "L17", {"2 offset bits", "3"});
  expectDiagnostic(lowerShared(SharedLinear{{{0, 4}}}, {2, 4}, 16), "L08", {"offset[0]"});
  expectDiagnostic(inverseRows(Columns{1, 3, 2}, 3), "L17", {"rank 2", "3"});
}

TEST(Diagnostics, ShapesAndLimits) {
  LinearLayout a = unwrap(lower(good, {64, 64}));
  expectDiagnostic(a.reshape({64, 32}), "L11", {"64x64", "64x32", "4096", "2048"});
  expectDiagnostic(a.reshape({64, 48}), "L01");
  expectDiagnostic(a.split(), "L11", {"64x64"});
  expectDiagnostic(unwrap(lower(good, {64, 32})).composeInverse(a), "L12", {"64x64", "64x32"});
  LinearLayout half = unwrap(LinearLayout::create({2}, {}));
  expectDiagnostic(unwrap(LinearLayout::create({2}, {Columns{1}})).composeInverse(half), "L07", {"register[0]"});
  expectDiagnostic(a.product(half), "L12", {"2", "1"});
  expectDiagnostic(a.product(a), "L18", {"2^20"});
  expectDiagnostic(a.expand(5), "L10", {"5"});
  expectDiagnostic(lower(Blocked{{1, 1}, {4, 8}, {std::int64_t(1) << 40, 2}, {1, 0}}, {64, 64}), "L18",
                   {"2^41", "2^24"});
  Columns many(40, 0);
  expectDiagnostic(LinearLayout::create({2}, {many}), "L18", {"40", "24"});
  Columns some(20, 0);
  expectDiagnostic(LinearLayout::create({2}, {some, some}), "L18", {"40", "32"});
  expectDiagnostic(LinearLayout::create({2}, {.registers = Columns{1}, .offsets = Columns{1}}), "L17", {"offset"});
  expectDiagnostic(checkElementBits(24), "L12", {"24", "64"});
}

TEST(Diagnostics, Module) {
  LinearLayout layout = unwrap(lower(good, {64, 64}));
  EXPECT_TRUE(checkWarps(layout, 4).ok());
  expectDiagnostic(checkWarps(layout, 8), "L05", {"4 warps", "8", "warpsPerCTA"});
  EXPECT_TRUE(checkThreadWords(layout, 64).ok());
  LinearLayout large = unwrap(lower(good, {1024, 64}));
  EXPECT_TRUE(checkThreadWords(large, 32).ok());
  expectDiagnostic(checkThreadWords(large, 64), "L18", {"1024", "512"});
  expectDiagnostic(checkThreadWords(large, 32, 3), "L18", {"1536"});
  Blocked two = good;
  two.cta = CtaSplit{{2, 1}, {2, 1}, {1, 0}};
  LinearLayout cluster = unwrap(lower(two, {64, 64}));
  const Target &old = **findTarget("sm_80"), &fresh = **findTarget("sm_90a");
  expectDiagnostic(checkTarget(cluster, old), "L16", {"2 blocks", "sm_80", "clusters"});
  EXPECT_TRUE(checkTarget(cluster, fresh).ok());
  EXPECT_TRUE(checkTarget(layout, old).ok());
}

TEST(Diagnostics, Tiles) {
  expectDiagnostic(TileLayout::create(good, {17, 64}), "L01", {"17x64", "15", "18x64"});
  expectDiagnostic(TileLayout::create(good, {48, 112}), "L01", {"48x112", "48x128"}); // 3 * 7 repetitions
  expectDiagnostic(TileLayout::create(good, {0, 64}), "L01", {"0"});
  expectDiagnostic(TileLayout::create(good, {-3, 64}), "L01");
  expectDiagnostic(TileLayout::create(good, {std::numeric_limits<std::int64_t>::max(), 64}), "L18");
  expectDiagnostic(TileLayout::create(good, {std::int64_t(3) << 30, 64}), "L18");
  TileLayout tile = *TileLayout::create(good, {96, 64});
  expectDiagnostic(tile.reshape(Sizes{48, 128}), "L11", {"96x64", "48x128"});
  expectDiagnostic(tile.reshape(Sizes{64, 96}), "L11");
  expectDiagnostic(tile.reshape(Sizes{96, 32}), "L11", {"6144", "3072"});
  expectDiagnostic(TileLayout::create(tile.core(), Coords{2, 1}), "L01", {"[2, 1]"});
  expectDiagnostic(TileLayout::create(tile.core(), Coords{3}), "L02", {"[3]"});
  expectDiagnostic(coalesce(Sizes{64, 64}, Sizes{1, 64}, 16, 16, 3), "L03", {"warps = 3"});
  expectDiagnostic(coalesce(Sizes{64, 64}, Sizes{64}, 16, 16, 4), "L02", {"contiguity"});
  expectDiagnostic(coalesce(Sizes{}, Sizes{}, 16, 16, 4), "L02");
}

// Encodings that nest without end are refused, and destroyed without recursion.
TEST(Diagnostics, DeepNesting) {
  Encoding e = good;
  for (int i = 0; i < 100000; ++i)
    e = Slice{0, e};
  Sizes shape(2, 4);
  expectDiagnostic(lower(e, shape), "L00", {"16"});
  Encoding t = good;
  for (unsigned i = 1; i < maxEncodingDepth; ++i)
    t = Transposed{{1, 0}, t};
  EXPECT_TRUE(lower(t, {64, 64}).ok()) << lower(t, {64, 64}).status().toString();
  expectDiagnostic(lower(Transposed{{1, 0}, t}, {64, 64}), "L00", {"17", "16"});
}

// Any numbers anywhere: a layout that covers its tensor, or a diagnostic.
TEST(Diagnostics, RandomNonsense) {
  Random random(21);
  auto number = [&]() -> std::int64_t {
    switch (random.in(0, 15)) {
    case 0:
      return random.in(-3, 9);
    case 1:
      return static_cast<std::int64_t>(random.word());
    case 2:
      return std::int64_t(1) << random.in(0, 62);
    default:
      return std::int64_t(1) << random.in(0, 4);
    }
  };
  auto list = [&](int rank) {
    Sizes out;
    for (int n = random.chance(0.9) ? rank : random.in(0, 12); n > 0; --n)
      out.push_back(number());
    return out;
  };
  auto order = [&](int rank) { return random.chance(0.3) ? list(rank) : random.permutation(rank); };
  std::function<Encoding(int, int)> make = [&](int rank, int depth) -> Encoding {
    std::optional<CtaSplit> cta;
    if (random.chance(0.2))
      cta = CtaSplit{list(rank), list(rank), order(rank)};
    switch (random.in(0, depth > 0 ? 6 : 2)) {
    case 0:
      return Blocked{list(rank), random.chance(0.7) && rank ? random.split(5, rank) : list(rank), list(rank),
                     order(rank), cta};
    case 1:
      return Mma{random.in(1, 4), list(rank), number(), order(rank), cta};
    case 2: {
      auto bases = [&](int n) {
        std::vector<Sizes> out;
        for (int i = random.in(0, n); i > 0; --i)
          out.push_back(list(rank));
        return out;
      };
      return Linear{bases(9), bases(6), bases(3), bases(2), random.chance(0.3) ? list(rank) : Sizes()};
    }
    case 3:
      return Slice{random.chance(0.8) ? random.in(0, rank) : number(), make(rank + 1, depth - 1)};
    case 4:
      return Transposed{order(rank), make(rank, depth - 1)};
    default:
      return DotOperand{random.in(-1, 3), number(), make(rank, depth - 1), cta};
    }
  };
  int good = 0, bad = 0;
  for (int round = 0; round < kiln::test::pick(30000, 100000); ++round) {
    int rank = random.in(0, 5);
    Encoding e = make(rank, 4);
    Sizes shape = list(rank);
    auto layout = lower(e, shape);
    if (layout.ok()) {
      ++good;
      EXPECT_TRUE(layout->checkDistributed().ok());
    } else {
      ++bad;
      EXPECT_EQ(layout.status().message()[0], 'L');
      EXPECT_FALSE(layout.status().remedy().empty()) << layout.status().message();
      EXPECT_LT(layout.status().message().size(), 1000u);
    }
    auto tile = TileLayout::create(e, shape);
    if (layout.ok())
      EXPECT_TRUE(tile.ok());
    SharedEncoding shared = random.chance(0.5)   ? SharedEncoding(Swizzled{number(), number(), number(), order(rank)})
                            : random.chance(0.5) ? SharedEncoding(Tma{random.in(0, 4) * 32, order(rank)})
                                                 : SharedEncoding(Padded{number(), number(), order(rank)});
    if (auto buffer = SharedTile::create(shared, shape, 1u << random.in(0, 6)); buffer.ok())
      EXPECT_GE(buffer->bytes(), 1u);
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
}
