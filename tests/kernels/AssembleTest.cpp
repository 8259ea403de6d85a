//===- AssembleTest.cpp - Options of attention x targets: compiled, run, assembled ---===//
//
// Full tier, of options (mask, alignment, softcap, ALiBi, sink, lse, packed or dense, used lengths), types, head dims
// and every target of the table: every combination of the options but the last, at D = 64, targets and types in turn;
// and every two levels of two of all.  Default tier: four of these.  KILN_TEST_PRODUCT=1: every combination of all of
// them at one small pair of head dims, 13,312, which takes an hour of one core.
//
// Each is compiled by the operation, run on the emulator of its target, compared with float64, and assembled where an
// assembler is found.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/kernels/MatmulHarness.h"
#include "tests/kernels/Pairwise.h"
#include "tests/kernels/SassInFlight.h"

#include "compiler/codegen/Assembler.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <cstdio>
#include <cstdlib>

namespace kiln::test {
namespace {

using namespace kernels;

/// What a row of levels stands for.
enum Factor : std::uint8_t { OfTarget, OfType, OfDims, OfMask, OfAlign, OfSoftcap, OfAlibi, OfSink, OfLse, OfBatch };
const std::vector<std::pair<std::int64_t, std::int64_t>> headDims = {{64, 64},   {128, 128}, {96, 96}, {192, 128},
                                                                     {256, 256}, {40, 40},   {8, 24}};
const std::vector<unsigned> levels = {
    static_cast<unsigned>(allTargets().size()), 2, static_cast<unsigned>(headDims.size()), 4, 2, 2, 2, 2, 2, 4};

Problem problemOf(const std::vector<unsigned> &row) {
  Problem p = with(21, 45, row[OfType] ? DType::F16 : DType::BF16);
  std::tie(p.dim, p.dimV) = headDims[row[OfDims]];
  p.causal = row[OfMask] == 1;
  p.left = row[OfMask] >= 2 ? 9 : -1;
  p.right = row[OfMask] == 3 ? 4 : -1;
  p.alignment = row[OfAlign] ? Alignment::TopLeft : Alignment::BottomRight;
  p.softcap = row[OfSoftcap] ? 15 : 0;
  p.scale = row[OfSoftcap] ? 0.125f : 0;
  p.alibi = row[OfAlibi];
  p.sink = row[OfSink];
  p.lse = row[OfLse];
  if (row[OfBatch] & 1)
    p.lengthsQ = {9, 0, 21}, p.lengthsK = {20, 4, 45};
  else
    p.batch = 3;
  if (row[OfBatch] & 2)
    p.usedQ = {9, 0, 17}, p.usedK = {20, 4, 33};
  return p;
}

/// The assembler, or null with the reason printed.
std::shared_ptr<const Assembler> assembler() {
  auto found = findAssembler();
  if (!found.ok()) {
    std::printf("not assembled: %s\n", found.status().toString().c_str());
    return nullptr;
  }
  return std::move(*found);
}

class AttentionOptions : public AttentionForward {
protected:
  void SetUp() override {} // each row has a device of its own
  /// Runs the row; assembles what it compiled.
  void check(const std::vector<unsigned> &row, const std::shared_ptr<const Assembler> &assembler) {
    const std::string target(allTargets()[row[OfTarget]].name);
    texts.clear();
    const std::unique_ptr<Opened> opened = openWith("emulator:" + target, {{}, {}, {}, &texts});
    ASSERT_TRUE(opened);
    on = opened.get();
    const Problem p = problemOf(row);
    SCOPED_TRACE(target + ": " + p.text());
    compare(p, randomData(p, random));
    EXPECT_EQ(texts.size(), 1u);
    for (const std::string &text : texts) {
      ++compiled;
      if (!assembler)
        continue;
      const Result<AssembledModule> made = assembler->assemble(text, target);
      ASSERT_TRUE(made.ok()) << made.status().toString();
      EXPECT_TRUE(made->warnings.empty()) << join(made->warnings, "; ");
      ++assembled;
    }
  }

  std::vector<std::string> texts;
  unsigned compiled = 0, assembled = 0;
};

bool wholeProduct() {
  const char *asked = std::getenv("KILN_TEST_PRODUCT");
  return asked && *asked == '1';
}

/// All rows, in the order of the file's head.
std::vector<std::vector<unsigned>> allRows() {
  std::vector<std::vector<unsigned>> rows;
  if (wholeProduct()) {
    const auto smallest = static_cast<unsigned>(headDims.size() - 1);
    std::vector<unsigned> row(levels.size(), 0);
    row[OfDims] = smallest;
    for (bool more = true; more;) {
      rows.push_back(row);
      more = false;
      for (std::size_t f = 0; f < row.size() && !more; ++f) {
        if (f == OfDims)
          continue;
        more = ++row[f] < levels[f];
        if (!more)
          row[f] = 0;
      }
    }
    return rows;
  }
  for (unsigned i = 0; i < 4 * 64; ++i) // mask, then one bit each
    rows.push_back({i % levels[OfTarget], i / 13 % 2, 0, i / 64, i & 1, i >> 1 & 1, i >> 2 & 1, i >> 3 & 1, i >> 4 & 1,
                    (i >> 5 & 1) | (i / 5 % 2 * 2)});
  for (const auto &row : pairwise(levels))
    rows.push_back(row);
  // Without matrix instructions for bf16 there are thousands of multiply-adds, which assemblers take long for: one, at
  // D = 64.
  bool some = false;
  for (auto &row : rows)
    if (!allTargets()[row[OfTarget]].has(Capability::Bf16Mma) && row[OfType] == 0 && std::exchange(some, true))
      row[OfType] = 1;
  return rows;
}

TEST_P(AttentionOptions, CompileRunAndAssemble) {
  if (!openedDevice(deviceNames()[0])->emulated())
    GTEST_SKIP() << "every target's code runs on the emulator of that target";
  const auto rows = allRows();
  const auto with = assembler();
  const auto number = static_cast<std::size_t>(GetParam());
  const bool every = isFullTier() || wholeProduct();
  if (!every)
    check(rows[86 * number + 1], with);
  for (std::size_t i = number; every && i < rows.size() && !HasFatalFailure(); i += 4)
    check(rows[i], with);
  std::printf("%zu combinations in all; %u compiled, %u assembled\n", rows.size(), compiled, assembled);
  EXPECT_GT(compiled, 0u);
}

INSTANTIATE_TEST_SUITE_P(Quarters, AttentionOptions, testing::Range<std::size_t>(0, 4));

//===----------------------------------------------------------------------===//
// Registers and spills
//===----------------------------------------------------------------------===//

/// What `call` compiles for `target`, assembled for it: registers and spilled bytes of each kernel, printed.  The
/// assembler has nothing to say of it, such as products of warpgroups that it does one after the other (C75xx).
class DefaultConfigurations : public testing::TestWithParam<const char *> {
protected:
  /// `spilled`: bytes that are no loss, in all.
  template <typename Call> void report(const std::string &what, Call call, unsigned spilled = 0) {
    std::vector<std::string> texts;
    const std::unique_ptr<Opened> on = openWith(std::string("emulator:") + GetParam(), {{}, {}, {}, &texts});
    ASSERT_TRUE(on);
    call(*on);
    ASSERT_EQ(texts.size(), 1u) << what;
    const auto with = assembler();
    if (!with)
      GTEST_SKIP() << "no assembler";
    const Result<AssembledModule> made = with->assemble(texts[0], GetParam());
    ASSERT_TRUE(made.ok()) << made.status().toString();
    // Besides the kernel there are subroutines of the assembler's own, such as division.
    const KernelResources *k = made->resources.find(what.substr(0, what.find(' ')));
    ASSERT_TRUE(k && k->spillStoreBytes && k->spillLoadBytes) << "the report says nothing of spills";
    std::printf("  %-8s%-40s%4u registers, %5u bytes spilled\n", GetParam(), what.c_str(), k->registers,
                *k->spillStoreBytes);
    EXPECT_LE(*k->spillStoreBytes + *k->spillLoadBytes, spilled) << what;
    EXPECT_TRUE(made->warnings.empty()) << what << ": " << made->warnings.front();
    cubin = made->cubin;
    ptx = texts[0];
  }
  std::vector<std::byte> cubin; ///< the last one
  std::string ptx;

  /// The copy engine copies, and the threads copy nothing.
  void expectBulkCopies(const std::string &what) const {
    EXPECT_NE(ptx.find("cp.async.bulk.tensor"), std::string::npos) << what;
    EXPECT_EQ(ptx.find("cp.async.wait_group"), std::string::npos) << what;
  }

  /// No instruction touches what a product in flight reads from registers or adds to; and one made to do so is seen.
  void expectNoTouchInFlight(const std::string &what) const {
    const auto text = sassOf(cubin, what.substr(0, what.find(' ')));
    const InFlightReport report = touchedInFlight(text);
    EXPECT_GT(report.products, 0u) << what;
    EXPECT_GT(report.meanwhile, 0u) << what;
    // Slopes with a cap and a mask at 256 columns: two words in a round of 900 instructions.
    EXPECT_LE(report.spills, 4u) << what << ": words are spilled while products are in flight";
    for (const TouchedInFlight &t : report.touched)
      ADD_FAILURE() << what << ": " << t.text(text);
    const auto spoiltSum = withTouchInFlight(text, true);
    EXPECT_FALSE(touchedInFlight(spoiltSum).touched.empty()) << what;
    if (report.fromRegisters)
      EXPECT_FALSE(touchedInFlight(withTouchInFlight(text, false)).touched.empty()) << what;
    std::printf(
        "    %u products, %u of them from registers, %u instructions while one is in flight, %u of local memory\n",
        report.products, report.fromRegisters, report.meanwhile, report.spills);
  }

  void reportMatmul(DType type, DType out, std::int64_t M, std::int64_t N) {
    constexpr std::int64_t K = 64;
    report("matmul " + std::string(dtypeName(type)) + " to " + std::string(dtypeName(out)) + " " + std::to_string(M) +
               " x " + std::to_string(N),
           [&](Opened &on) {
             const auto ones = [&](std::int64_t rows, std::int64_t columns) {
               return upload(*on.device, type, {rows, columns},
                             std::vector<double>(static_cast<std::size_t>(rows * columns), 1.0));
             };
             const Operand a = ones(M, K), b = ones(K, N), c = allocateOutput(*on.device, out, {M, N});
             MatmulArguments arguments{a.tensor, b.tensor, c.tensor};
             if (type == DType::F32)
               arguments.precision = language::Precision::Tf32;
             MatmulOperation operation(*on.jit);
             const Status s = operation.run(arguments);
             EXPECT_TRUE(s.ok()) << s.toString();
           });
  }
};

TEST_P(DefaultConfigurations, OfMatmulSpillNothing) {
  for (const auto &[type, out] : {std::pair(DType::F16, DType::F16),
                                  {DType::BF16, DType::BF16},
                                  {DType::BF16, DType::F32},
                                  {DType::F8E4M3, DType::BF16},
                                  {DType::I8, DType::I32},
                                  {DType::F32, DType::F32}})
    for (const auto &[M, N] : {std::pair<std::int64_t, std::int64_t>{64, 64}, {128, 128}, {3072, 1536}}) { // the tiles
      if (!isFullTier() && (M == 64 || out == DType::F32))
        continue;
      reportMatmul(type, out, M, N);
    }
}

/// Attention on tensors of ones, with the tiles of so many programs.
struct AttentionOptionsOf {
  std::int64_t dim, dimV;
  bool causal = false, lse = false, slopes = false, softcap = false, window = false;
  Heads heads = Heads::Few;
  DType type = DType::BF16;

  std::string text() const {
    return "attention " + std::string(dtypeName(type)) + " D" + std::to_string(dim) + "/" + std::to_string(dimV) +
           (causal ? " causal" : "") + (lse ? " lse" : "") + (slopes ? " alibi" : "") + (softcap ? " softcap" : "") +
           (window ? " window" : "") +
           (heads == Heads::Few    ? ", few"
            : heads == Heads::Some ? ", some"
                                   : ", many") +
           " programs";
  }
  /// Gives the tiles.
  Tiling run(Opened &on) const {
    const auto tensor = [&](std::int64_t columns) {
      return upload(*on.device, type, {1, 128, 1, columns},
                    std::vector<double>(static_cast<std::size_t>(128 * columns), 1.0));
    };
    const Operand q = tensor(dim), k = tensor(dim), v = tensor(dimV),
                  o = allocateOutput(*on.device, DType::BF16, {1, 128, 1, dimV}),
                  sums = allocateOutput(*on.device, DType::F32, {1, 1, 128}),
                  slope = upload(*on.device, DType::F32, {1}, {0.5});
    AttentionArguments a;
    a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.o = o.tensor;
    if (lse)
      a.lse = sums.tensor;
    if (slopes)
      a.alibi = slope.tensor;
    a.softcap = softcap ? 15 : 0;
    a.windowLeft = window ? 32 : -1;
    a.causal = causal;
    if (heads != Heads::Few) // else the operation's own choice
      a.tiling = tilingOf(*on.device, a, heads);
    AttentionOperation operation(*on.jit);
    const Status s = operation.run(a);
    EXPECT_TRUE(s.ok()) << s.toString();
    return a.tiling;
  }
};

TEST_P(DefaultConfigurations, OfAttentionSpillNothing) {
  for (const auto &[dim, dimV] : headDims)
    for (unsigned options : {0,  1,  2,  3,  4,  5,  8,  9,  16, 17, 32, 33, 34, 35, 36,
                             37, 40, 41, 48, 49, 64, 65, 66, 67, 68, 69, 72, 73, 80, 81}) {
      if (!isFullTier() && options != 35 && (dim != 64 || options % 2 || options > 2))
        continue;
      const Heads heads = options & 32 ? Heads::Many : options & 64 ? Heads::Some : Heads::Few;
      const AttentionOptionsOf of{
          dim,  dimV, bool(options & 1), bool(options & 2), bool(options & 4), bool(options & 8), bool(options & 16),
          heads};
      report(of.text(), [&](Opened &on) { of.run(on); });
    }
}

/// A step of a decoder, eight heads a key head.
struct DecodeOptionsOf {
  std::int64_t dim, tokens, pageSize = 0;

  std::string text() const {
    return "attention_decode D" + std::to_string(dim) + ", " + std::to_string(8 * tokens) + " rows" +
           (pageSize ? ", pages of " + std::to_string(pageSize) : "");
  }
  void run(Opened &on) const {
    DecodeProblem p = decoding(tokens, {70});
    p.of.heads = 8, p.of.dim = p.of.dimV = dim, p.of.causal = true, p.pageSize = pageSize, p.splits = 1;
    std::mt19937_64 random(3);
    const PreparedDecode call = prepare(*on.device, p, randomDecodeData(p, random), random);
    const Status s = AttentionDecodeOperation(*on.jit).run(call.arguments);
    EXPECT_TRUE(s.ok()) << s.toString();
  }
};

TEST_P(DefaultConfigurations, OfAttentionDecodeSpillNothing) {
  for (const std::int64_t dim : {64, 128, 256})
    for (const std::int64_t tokens : {1, 4, 8, 16})
      for (const std::int64_t page : {0, 16}) {
        if (!isFullTier() && (dim != 128 || (tokens != 1 && tokens != 16) || (tokens == 1) != (page == 16)))
          continue;
        const DecodeOptionsOf of{dim, tokens, page};
        report(of.text(), [&](Opened &on) { of.run(on); });
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, DefaultConfigurations, testing::Values("sm_80", "sm_90"));

using WarpgroupConfigurations = DefaultConfigurations;

/// The four tiles of the operation's choice.
TEST_P(WarpgroupConfigurations, OfMatmulSpillNothingAndAreNotSerialised) {
  for (const auto &[M, N] : {std::pair<std::int64_t, std::int64_t>{64, 64}, {1024, 1024}, {1536, 1536}, {3072, 1536}}) {
    if (!isFullTier() && M != 64 && M != 3072)
      continue;
    reportMatmul(DType::BF16, DType::BF16, M, N);
    expectBulkCopies(std::to_string(M) + " x " + std::to_string(N));
    expectNoTouchInFlight("matmul " + std::to_string(M) + " x " + std::to_string(N));
  }
}

/// As of attention, words spilled outside of the rounds cost nothing.
TEST_P(WarpgroupConfigurations, OfAttentionDecodeTouchNothingInFlight) {
  for (const std::int64_t dim : {64, 128})
    for (const std::int64_t tokens : {8, 16})
      for (const std::int64_t page : {0, 16}) {
        if (!isFullTier() && (dim != 128 || tokens != 16 || page != 0))
          continue;
        const DecodeOptionsOf of{dim, tokens, page};
        report(of.text(), [&](Opened &on) { of.run(on); }, 256);
        if (HasFailure() || IsSkipped())
          return;
        expectNoTouchInFlight(of.text());
      }
}

/// The powers of a block stand between the wait for its scores, which leaves the product of the block before in flight,
/// and the wait for that: assemblers would rather wait for both at once (7 of 64 powers were left where the second wait
/// did not stand in the arms of a conditional).  Words spilled outside of the rounds, where no product is in flight,
/// cost nothing.
TEST_P(WarpgroupConfigurations, OfAttentionComputePowersWhileTheyMultiply) {
  for (const std::int64_t dim : {64, 80, 96, 128, 192, 256})
    for (unsigned options = 0; options < 8; ++options) {
      if (!isFullTier() && options != 0 && (dim != 128 || options != 1))
        continue;
      const AttentionOptionsOf of{dim,   dim,        bool(options & 1), true, bool(options & 2), bool(options & 4),
                                  false, Heads::Many};
      Tiling tiles;
      report(of.text(), [&](Opened &on) { tiles = of.run(on); }, 128);
      if (HasFailure() || IsSkipped())
        return;
      expectBulkCopies(of.text());
      expectNoTouchInFlight(of.text());
      const auto powers = static_cast<unsigned>(tiles.blockM * tiles.blockN / (32 * tiles.warps));
      unsigned most = 0;
      for (const BetweenWaits &b : betweenWaits(sassOf(cubin, "attention")))
        if (b.leftBefore == 1 && b.leftAfter == 0 && b.products == 0)
          most = std::max(most, b.specials);
      EXPECT_GE(10 * most, 9 * powers) << of.text() << ": of " << powers << " powers " << most
                                       << " stand between the two waits of a round";
    }
}

/// Of 8-bit floats, whose values threads turn while products are in flight.
TEST_P(WarpgroupConfigurations, OfEighthsTouchNothingInFlight) {
  for (const std::int64_t dim : {64, 128, 256})
    for (const bool causal : {false, true}) {
      if (!isFullTier() && (dim != 128 || causal))
        continue;
      AttentionOptionsOf of{dim, dim, causal};
      of.heads = Heads::Many, of.type = DType::F8E4M3;
      report(of.text(), [&](Opened &on) { of.run(on); }, 128);
      if (HasFailure() || IsSkipped())
        return;
      expectNoTouchInFlight(of.text());
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, WarpgroupConfigurations, testing::Values("sm_90a"));

} // namespace
} // namespace kiln::test
