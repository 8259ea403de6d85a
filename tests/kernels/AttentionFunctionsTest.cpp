//===- AttentionFunctionsTest.cpp - Attention with functions of the caller, both directions ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;
using namespace language;

class AttentionFunctionsOfCallers : public AttentionBackward {
protected:
  static Problem given(Problem p, Hooks hooks) {
    p.hooks = std::make_shared<const Hooks>(std::move(hooks));
    return p;
  }
  /// Dense with groups of heads, and packed with a sequence without queries, one without keys.
  static Problem shape(bool packed, DType type = DType::BF16) {
    Problem p = with(70, 90, type);
    p.batch = 2, p.heads = 4, p.keyHeads = 2;
    if (packed)
      p.lengthsQ = {33, 0, 70, 5}, p.lengthsK = {40, 20, 70, 0}, p.around = 64;
    return p;
  }
};

TEST_P(AttentionFunctionsOfCallers, Masks) {
  unsigned number = 0;
  for (const bool packed : {false, true})
    for (unsigned mask = 0; mask < 4; ++mask) {
      if (!chosen(number++, 8))
        continue;
      Problem p = shape(packed, mask % 2 ? DType::F16 : DType::BF16);
      p.sink = mask == 3;
      p = given(p, mask == 0   ? documents(p, random)
                   : mask == 1 ? prefixes(p)
                   : mask == 2 ? windowWithSinks(20, 3)
                               : byHead());
      both(p);
      all(p);
    }
}

/// The built-in mask holds besides; so do used lengths.
TEST_P(AttentionFunctionsOfCallers, MasksBesidesTheBuiltIn) {
  if (!isOneOf({0, 2}))
    return;
  Problem p = shape(false);
  p.left = 30, p.right = 8, p.usedQ = {60, 70}, p.usedK = {90, 41};
  p = given(p, byHead());
  both(p);
  all(p);
}

TEST_P(AttentionFunctionsOfCallers, Scores) {
  unsigned number = 0;
  for (const bool packed : {false, true})
    for (unsigned score = 0; score < 4; ++score) {
      if (!chosen(number++, 8))
        continue;
      Problem p = shape(packed, score % 2 ? DType::F16 : DType::BF16);
      p.alibi = score == 0, p.sink = score == 1;
      p = given(p, score == 0 ? capped() : score == 1 ? distances(p) : score == 2 ? relativeBias(p, random) : cubic());
      Data d = randomData(p, random);
      compare(p, d);
      compareRandom(p, score == 2);
    }
}

/// A bias comes after the score, whatever it is the same for; dropout besides.
TEST_P(AttentionFunctionsOfCallers, WithABiasAndDropout) {
  const unsigned patterns[] = {15, 10, 6, 8, 0, 12, 4, 13};
  for (unsigned number = 0; number < std::size(patterns); ++number) {
    if (!chosen(number, 8))
      continue;
    Problem p = shape(number == 3 || number == 5, number % 2 ? DType::F16 : DType::BF16);
    p.biasOf = patterns[number], p.biasType = number % 3 ? DType::F32 : DType::BF16;
    p.dropoutP = number % 3 == 1 ? 0.17f : 0;
    p.alibi = number == 6;
    p = given(p, number % 4 == 0   ? relativeBias(p, random)
                 : number % 4 == 1 ? cubic()
                 : number % 4 == 2 ? documents(p, random)
                                   : distances(p));
    compare(p, randomData(p, random));
    compareRandom(p, number % 2);
  }
}

/// Masks that options have too, in the same tiles: the same bits.
TEST_P(AttentionFunctionsOfCallers, MasksThatOptionsHaveGiveTheirBits) {
  if (!isOneOf({0, 2}))
    return;
  Problem plain = with(97, 97);
  plain.lse = true;
  for (const std::int64_t window : {std::int64_t(-1), std::int64_t(20)}) {
    Problem optional = plain, functional = plain;
    optional.causal = true, optional.left = window;
    functional = given(functional, windowWithSinks(window < 0 ? 1000 : window, 0));
    const Data d = randomData(plain, random);
    PreparedCall a = prepare(*on->device, optional, d), b = prepare(*on->device, functional, d);
    for (PreparedCall *call : {&a, &b})
      call->arguments.tiling = {.blockM = 64, .blockN = 32, .warps = 4};
    const Results byOptions = run(a), byFunctions = run(b);
    EXPECT_EQ(byOptions.o, byFunctions.o);
    EXPECT_EQ(byOptions.lse, byFunctions.lse);
  }
}

/// Scores that options have too: within the rounding of both.
TEST_P(AttentionFunctionsOfCallers, ScoresThatOptionsHave) {
  if (!isOneOf({2, 3}))
    return;
  for (const bool isCap : {true, false}) {
    Problem optional = with(65, 65), functional = optional;
    (isCap ? optional.softcap : optional.scale) = isCap ? 15 : 0;
    optional.alibi = !isCap;
    functional = given(functional, isCap ? capped() : distances(functional));
    const Data d = randomData(optional, random);
    const Results byOptions = run(optional, d), byFunctions = run(functional, d);
    for (std::size_t i = 0; i < byOptions.o.size(); ++i)
      ASSERT_NEAR(byOptions.o[i], byFunctions.o[i], 0x1p-7 * std::abs(byOptions.o[i]) + 2e-3) << i;
    for (std::size_t i = 0; i < byOptions.lse.size(); ++i)
      ASSERT_NEAR(byOptions.lse[i], byFunctions.lse[i], isCap ? 3e-2 : 1e-4) << i;
  }
}

/// Numbers of 8 bits, and programs that take tile after tile.
TEST_P(AttentionFunctionsOfCallers, EightBitsAndPersistentPrograms) {
  if (!isOneOf({2}))
    return;
  Problem eighth = shape(false, DType::F8E4M3);
  eighth = given(eighth, documents(eighth, random));
  both(eighth);
  Problem dense = with(200, 200);
  dense = given(dense, relativeBias(dense, random));
  const Data d = randomData(dense, random);
  PreparedCall call = prepare(*on->device, dense, d);
  call.arguments.persistent = true;
  compare(dense, d, run(call));
}

/// What a function loads in each round, and lists of blocks, do not keep keys and values from tensor copies by warps of
/// their own.
TEST_P(AttentionFunctionsOfCallers, KeysAreCopiedAsWithoutFunctions) {
  if (!on->emulated() || !on->device->info().target->has(Capability::Wgmma))
    return;
  Problem p = with(128, 384);
  p.heads = p.keyHeads = 1, p.dim = p.dimV = 128;
  const Data d = randomData(p, random);
  const auto counted = [&](const Problem &problem) {
    PreparedCall call = prepare(*on->device, problem, d);
    call.arguments.tiling = {.blockM = 128, .blockN = 128, .warps = 8};
    on->device->takeCounters();
    EXPECT_TRUE(on->device->record({.counters = true}).ok());
    compare(problem, d, run(call));
    EXPECT_TRUE(on->device->record({}).ok());
    const std::vector<LaunchCounters> got = on->device->takeCounters();
    EXPECT_EQ(got.size(), 1u);
    return got.empty() ? LaunchCounters() : got[0];
  };
  Hooks inLists = documents(p, random);
  inLists.blocks = BlockSize{128, 128};
  const LaunchCounters plain = counted(p), masked = counted(given(p, documents(p, random))),
                       listed = counted(given(p, inLists));
  const auto requests = [](const LaunchCounters &c, AccessKind kind) {
    return c.total.global[static_cast<unsigned>(kind)].requests;
  };
  EXPECT_GT(requests(plain, AccessKind::BulkLoad), 0u);
  EXPECT_EQ(requests(masked, AccessKind::BulkLoad), requests(plain, AccessKind::BulkLoad));
  EXPECT_EQ(requests(masked, AccessKind::Copy), requests(plain, AccessKind::Copy));
  EXPECT_GT(requests(listed, AccessKind::BulkLoad), 0u);
  EXPECT_EQ(requests(listed, AccessKind::Copy), 0u);
  for (const LaunchCounters *c : {&masked, &listed})
    EXPECT_EQ(c->block[0], plain.block[0]) << "warps that only copy";
}

TEST_P(AttentionFunctionsOfCallers, NothingIsReadOutsideOfAux) {
  if (!isOneOf({1}))
    return;
  if (!on->emulated())
    GTEST_SKIP() << "the emulator's findings";
  // A table that is too short by the last 10 keys.
  const AttentionFunctions functions(
      {.score = [](const auto &x, const AttentionPairs &pairs) { return x + pairs.load<f32>(0, pairs.key); }});
  Problem p = with(40, 50);
  Hooks hooks{functions};
  hooks.aux.push_back({DType::F32, {40}, Numbers(40, 2.0)});
  hooks.score = [](double x, const test::Pair &pair) { return x + (pair.j < 40 ? 2 : 0); };
  p = given(p, hooks);
  const Data d = randomData(p, random);
  PreparedCall call = prepare(*on->device, p, d);
  call.arguments.checked = false; // read as 0, and no finding
  compare(p, d, run(call));
  const auto isFound = [&] {
    bool said = false;
    for (const Finding &f : on->device->takeFindings())
      said |= f.message.find("a function reads outside of an aux tensor") != std::string::npos;
    return said;
  };
  call.arguments.checked.reset();
  (void)AttentionOperation(*on->jit).run(call.arguments);
  EXPECT_TRUE(isFound());
  const LossGradients g = randomGradients(p, false, random);
  PreparedGradients backward = prepared(p, d, g);
  backward.arguments.of.checked = false;
  compareGradients(p, d, g, backward, runGradients(backward));
  backward.arguments.of.checked.reset();
  (void)AttentionBackwardOperation(*on->jit).run(backward.arguments);
  EXPECT_TRUE(isFound());
}

TEST_P(AttentionFunctionsOfCallers, Refusals) {
  if (GetParam() != 0)
    return; // the same everywhere
  Problem p = with(40, 50);
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  const auto refused = [&](const AttentionFunctions &functions, auto change,
                           std::initializer_list<const char *> words) {
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.functions = functions;
    change(call.arguments);
    const Status s = AttentionOperation(*on->jit).run(call.arguments);
    EXPECT_FALSE(s.ok());
    for (const char *word : words)
      EXPECT_NE(s.toString().find(word), std::string::npos) << s.toString();
  };
  using A = AttentionArguments;
  const auto nothing = [](A &) {};
  refused(capped().functions, [](A &a) { a.softcap = 20; }, {"softcap and a score function", "cap the scores"});
  const AttentionFunctions wide({.mask = [](const AttentionPairs &pairs) {
    return broadcastTo(expandDims(range(0, 8) > 2, 0), {8, 8}) & (pairs.head > 0);
  }});
  refused(wide, nothing, {"the mask function", "a tile of"});
  const AttentionFunctions reading(
      {.mask = [](const AttentionPairs &pairs) { return pairs.load<i32>(0, pairs.key) > 0; }});
  refused(reading, nothing, {"there is no tensor 'aux0'"});
  const Operand table = upload(*on->device, DType::F32, {50}, Numbers(50, 1)),
                rows = upload(*on->device, DType::I32, {2, 50}, Numbers(100, 1));
  refused(reading, [&](A &a) { a.aux = {table.tensor}; }, {"'aux0' is f32 of 1 dimensions", "i32"});
  refused(reading, [&](A &a) { a.aux = {rows.tensor}; }, {"'aux0' is i32 of 2 dimensions"});
  refused({}, [&](A &a) { a.aux = {table.tensor}; }, {"no function reads them"});
  refused(reading, [&](A &a) { a.aux.assign(9, table.tensor); }, {"at most 8"});
  refused(reading, [&](A &a) { a.aux = {a.o}; }, {"aux0", "o"});
  AttentionFunctionsDefinition alone;
  alone.scoreGradient = [](const Tile<f32> &x, const AttentionPairs &) { return x; };
  refused(alone, nothing, {"without a score function"});

  const AttentionFunctions fixed({.score = [](const Tile<f32> &x, const AttentionPairs &) { return x * 0.5f; }});
  PreparedGradients call = prepared(p, d, g);
  call.arguments.of.functions = fixed;
  const Status s = AttentionBackwardOperation(*on->jit).run(call.arguments);
  EXPECT_NE(s.toString().find("the score function has no derivative"), std::string::npos) << s.toString();
  EXPECT_NE(s.toString().find("scoreGradient"), std::string::npos) << s.toString();
}

/// Copies are the same functions; equal text made twice is compiled once.
TEST_P(AttentionFunctionsOfCallers, HaveAnIdentity) {
  const AttentionFunctions one = windowWithSinks(9, 1).functions, copy = one, other = windowWithSinks(9, 1).functions;
  EXPECT_TRUE(one == copy);
  EXPECT_FALSE(one == other);
  EXPECT_TRUE(AttentionFunctions() == AttentionFunctions());
  if (GetParam() != 0)
    return;
  const Problem p = with(40, 50);
  const Data d = randomData(p, random);
  AttentionOperation operation(*on->jit);
  const auto kernelOf = [&](const AttentionFunctions &functions) -> JitKernel * {
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.functions = functions;
    PlanListing plan;
    const Status s = operation.describe(call.arguments, plan);
    EXPECT_TRUE(s.ok()) << s.toString();
    return plan.launches.empty() ? nullptr : plan.launches[0].kernel;
  };
  EXPECT_EQ(kernelOf(one), kernelOf(copy));
  EXPECT_EQ(kernelOf(one), kernelOf(other));
  EXPECT_NE(kernelOf(one), kernelOf(windowWithSinks(9, 2).functions));
  EXPECT_NE(kernelOf(one), kernelOf({}));
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionFunctionsOfCallers, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
