//===- AttentionBlockMaskTest.cpp - Attention of listed blocks, both directions ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class AttentionBlockMasks : public AttentionBackward {
protected:
  /// With lists of blocks made of the mask.
  static Problem listed(Problem p, Hooks hooks, BlockSize blocks) {
    hooks.blocks = blocks;
    p.hooks = std::make_shared<const Hooks>(std::move(hooks));
    return p;
  }
  /// A mask of whole blocks, which no function computes.
  static Hooks ofBlocks(BlockSize size, std::function<bool(std::int64_t row, std::int64_t key)> sees) {
    Hooks out;
    out.mask = [size, sees](const Pair &x) { return sees(x.i / size.rows, x.j / size.keys); };
    return out;
  }
  std::vector<LaunchCounters> counted(const std::function<void()> &call) {
    on->device->takeCounters();
    EXPECT_TRUE(on->device->record({.counters = true}).ok());
    call();
    EXPECT_TRUE(on->device->record({}).ok());
    return on->device->takeCounters();
  }
};

TEST_P(AttentionBlockMasks, OfMasks) {
  unsigned number = 0;
  for (const BlockSize blocks : {BlockSize{64, 64}, {128, 64}, {48, 80}, {16, 32}})
    for (const bool packed : {false, true}) {
      if (!chosen(number, 8)) {
        ++number;
        continue;
      }
      Problem p = with(150, 170, number % 2 ? DType::F16 : DType::BF16);
      p.batch = 2, p.heads = 4, p.keyHeads = 2, p.sink = number % 3 == 1;
      if (packed)
        p.lengthsQ = {33, 0, 150, 5}, p.lengthsK = {40, 20, 140, 0}, p.around = 64;
      p = listed(p, number % 4 < 2 ? documents(p, random) : windowWithSinks(20, 3), blocks);
      ++number;
      both(p);
      all(p);
    }
}

/// Scores and masks by head, in lists by head; the built-in mask and used lengths hold inside.
TEST_P(AttentionBlockMasks, WithScoresAndTheBuiltInMask) {
  if (!isOneOf({0, 2}))
    return;
  Problem p = with(100, 100);
  p.batch = 2, p.heads = 4, p.keyHeads = 2;
  p = listed(p, relativeBias(p, random), {32, 32});
  compareRandom(p);
  compare(p, randomData(p, random));
  Problem q = with(100, 120);
  q.heads = 3, q.keyHeads = 1, q.left = 60, q.right = 10, q.usedQ = {90}, q.usedK = {101};
  q = listed(q, byHead(), {64, 32});
  both(q);
  all(q);
}

/// Tiles that are chosen for warpgroups where they divide the blocks, in one pass over the pairs and in two.
TEST_P(AttentionBlockMasks, TilesOfWarpgroups) {
  if (!isOneOf({2}))
    return;
  Problem p = with(280, 260);
  p.heads = 2, p.keyHeads = 1, p.dim = p.dimV = 128;
  const auto someBlocks = [](std::int64_t row, std::int64_t key) { return (row + key) % 2 == 0; };
  for (const bool isFunction : {true, false}) {
    const Problem q = listed(p, isFunction ? windowWithSinks(150, 3) : ofBlocks({128, 128}, someBlocks), {128, 128});
    compareRandom(q, isFunction);
  }
}

/// Blocks of rows without a list entry are empty rows; blocks of keys without one have no gradient.
TEST_P(AttentionBlockMasks, EmptyLists) {
  if (!isOneOf({1, 2}))
    return;
  Problem p = with(200, 200);
  p = listed(p, ofBlocks({64, 64}, [](auto row, auto key) { return row != 1 && key != 2 && (row + key) % 3 != 1; }),
             {64, 64});
  both(p);
  all(p);
  p = listed(with(70, 70), ofBlocks({64, 64}, [](auto, auto) { return false; }), {64, 64});
  both(p);
  all(p);
}

/// What no list names is neither loaded nor multiplied, and what lists name is copied as it is without them.
TEST_P(AttentionBlockMasks, HiddenBlocksCostNothing) {
  if (!isOneOf({0, 2}))
    return;
  if (!on->emulated())
    GTEST_SKIP() << "a GPU counts nothing";
  const Problem plain = with(512, 512, DType::F16);
  const Data d = randomData(plain, random);
  const LossGradients g = randomGradients(plain, false, random);
  const auto sees = [](std::int64_t row, std::int64_t key) { return (row * 3 + key) % 4 == 0; };
  const Problem some = listed(plain, ofBlocks({128, 128}, sees), {128, 128}),
                every = listed(plain, ofBlocks({128, 128}, [](auto, auto) { return true; }), {128, 128}),
                none = listed(plain, ofBlocks({128, 128}, [](auto, auto) { return false; }), {128, 128});
  const auto forward = [&](const Problem &p) {
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.tiling = {.blockM = 64, .blockN = 64, .warps = 4};
    return counted([&] { run(call); });
  };
  const auto backward = [&](const Problem &p, bool deterministic) {
    PreparedGradients call = prepared(p, d, g);
    call.arguments.deterministic = deterministic;
    call.arguments.ofKeys = call.arguments.ofQueries = {.blockM = 64, .blockN = 64, .warps = 4};
    return counted([&] { runGradients(call); });
  };
  const auto check = [&](const char *what, auto countsOf, std::initializer_list<std::size_t> launches,
                         std::optional<std::size_t> onePass = {}) {
    const auto ofPlain = countsOf(plain), ofSome = countsOf(some), ofEvery = countsOf(every), ofNone = countsOf(none);
    for (const std::size_t i : launches) {
      SCOPED_TRACE(std::string(what) + " launch " + std::to_string(i) + ", " + deviceName());
      ASSERT_LT(i, ofNone.size());
      // Without lists a product that only memory gets (dq) is made a round late: once a program there is none before.
      const std::uint64_t late = i == onePass ? 2 * (512 / 64) * 2u * 64 * 64 * 64 : 0;
      EXPECT_EQ(ofEvery[i].total.matrixFlops + late, ofPlain[i].total.matrixFlops);
      EXPECT_EQ(ofSome[i].total.matrixFlops * 4, ofEvery[i].total.matrixFlops) << "a quarter of the blocks";
      EXPECT_EQ(ofNone[i].total.matrixFlops, 0u);
      EXPECT_LT(ofSome[i].total.instructions * 2, ofEvery[i].total.instructions);
      EXPECT_LT(ofNone[i].total.instructions * 4, ofEvery[i].total.instructions) << "what a program does once";
      // Two tiles of 64 rows and columns a step, 64 steps of 2 heads, are copied ahead, as without lists.
      if (ofPlain[i].total.asyncBytes > 0) {
        EXPECT_GE(ofEvery[i].total.asyncBytes, 64u * 2 * 2 * 64 * 64 * 2);
      }
      EXPECT_LE(ofEvery[i].total.asyncBytes, ofPlain[i].total.asyncBytes);
      EXPECT_LE(ofSome[i].total.asyncBytes * 2, ofEvery[i].total.asyncBytes);
      const auto bulk = static_cast<unsigned>(AccessKind::BulkLoad);
      EXPECT_EQ(ofEvery[i].total.global[bulk].requests > 0, ofPlain[i].total.global[bulk].requests > 0);
      EXPECT_EQ(ofEvery[i].total.localRequests, 0u) << "registers are spilled";
    }
  };
  check("forward", forward, {0});
  // Without lists a deterministic call is in one pass there, too.
  if (on->device->info().target->has(Capability::Wgmma))
    check("backward in one pass", [&](const Problem &p) { return backward(p, false); }, {1}, 1);
  else
    check("backward in two passes", [&](const Problem &p) { return backward(p, true); }, {1, 2});
}

/// dq by atomics of the walk over blocks of rows: where tiles for warpgroups divide the blocks, and not where they do
/// not.
TEST_P(AttentionBlockMasks, InOnePass) {
  if (!on->emulated() || !on->device->info().target->has(Capability::Wgmma))
    return;
  for (const BlockSize blocks : {BlockSize{64, 128}, BlockSize{64, 64}}) {
    Problem p = with(150, 170);
    p.heads = 2, p.keyHeads = 1;
    if (blocks.keys == 128)
      p.lengthsQ = {33, 0, 150, 5}, p.lengthsK = {40, 20, 140, 0}, p.around = 64;
    p = listed(p, relativeBias(p, random), blocks);
    Data d = randomData(p, random);
    LossGradients g = randomGradients(p, true, random);
    poisonUnused(p, d);
    poisonUnused(p, g);
    const PreparedGradients call = prepared(p, d, g);
    std::string kernels;
    for (const LaunchCounters &c : counted([&] { compareGradients(p, d, g, call, runGradients(call)); }))
      kernels += c.kernel + " ";
    const bool onePass = blocks.keys == 128;
    EXPECT_EQ(kernels.find("attention_query_sums") != std::string::npos, onePass) << kernels;
    EXPECT_EQ(kernels.find("attention_query_gradients") == std::string::npos, onePass) << kernels;
  }
}

/// A bias after the score, and dropout, over lists.
TEST_P(AttentionBlockMasks, WithABiasAndDropout) {
  if (!isOneOf({1, 2}))
    return;
  for (const float dropout : {0.0f, 0.17f}) {
    Problem p = with(100, 120);
    p.heads = 4, p.keyHeads = 2, p.biasOf = 15, p.biasType = DType::F16, p.dropoutP = dropout;
    p = listed(p, dropout > 0 ? byHead() : relativeBias(p, random), {32, 64});
    compare(p, randomData(p, random));
    compareRandom(p);
  }
}

/// Lists of all batches and heads at once; of the mask alone, of full blocks alone.
TEST_P(AttentionBlockMasks, ListsForAllHeads) {
  if (!isOneOf({3}))
    return;
  Problem p = with(100, 100);
  p.batch = 2, p.heads = 2;
  Hooks hooks = ofBlocks({32, 32}, [](auto row, auto key) { return row >= key; });
  p = listed(p, hooks, {32, 32});
  const Data d = randomData(p, random);
  const auto lists = BlockMaskOnHost::from({1, 1, 100, 100}, {32, 32},
                                           [&](auto, auto, auto i, auto j) { return hooks.mask({0, 0, i, j}); });
  ASSERT_TRUE(lists.ok());
  EXPECT_EQ(lists->visited(), 10);
  const auto uploaded = lists->upload(*on->device);
  ASSERT_TRUE(uploaded.ok());
  PreparedCall call = prepare(*on->device, p, d);
  call.arguments.blockMask = uploaded->view();
  compare(p, d, run(call));
  call = prepare(*on->device, p, d);
  call.arguments.blockMask = uploaded->view();
  call.arguments.blockMask->partial.reset();
  compare(p, d, run(call));
  call = prepare(*on->device, p, d);
  call.arguments.blockMask = uploaded->view();
  call.arguments.blockMask->partial = std::exchange(call.arguments.blockMask->full, std::nullopt);
  compare(p, d, run(call));
}

/// Counts and entries that are wrong: nothing outside is read; a checked call says so.
TEST_P(AttentionBlockMasks, WrongEntries) {
  if (!isOneOf({1, 2}))
    return;
  if (!on->emulated())
    GTEST_SKIP() << "the emulator's findings";
  const Problem p = with(128, 100);
  const Data d = randomData(p, random);
  // Of the first block of rows a list that is longer than its memory, of the second one that names blocks that are not
  // there: 0 and 3 besides.
  const Operand counts = upload(*on->device, DType::I32, {1, 1, 2}, {1000000, 4}),
                blocks = upload(*on->device, DType::I32, {1, 1, 2, 4}, {0, 1, 2, 3, -1, 0, 1 << 30, 3});
  Hooks hooks = ofBlocks({64, 32}, [](auto row, auto key) { return row == 0 || key == 0 || key == 3; });
  Problem wanted = p;
  wanted.hooks = std::make_shared<const Hooks>(hooks);
  PreparedCall call = prepare(*on->device, p, d);
  call.arguments.tiling = {};
  call.arguments.blockMask = BlockMask{.rows = 64, .keys = 32, .full = BlockLists{counts.tensor, blocks.tensor}};
  call.arguments.checked = false;
  compare(wanted, d, run(call));
  for (const auto &[count, first, words] :
       {std::tuple(5.0, 0.0, "a count of blocks is below 0 or above the list's length"),
        std::tuple(-1.0, 0.0, "a count of blocks is below 0 or above the list's length"),
        std::tuple(1.0, -1.0, "a list of blocks names a block that no sequence has"),
        std::tuple(1.0, 4.0, "a list of blocks names a block that no sequence has")}) {
    const Operand oneCount = upload(*on->device, DType::I32, {1, 1, 2}, {count, 0}),
                  oneList = upload(*on->device, DType::I32, {1, 1, 2, 4}, {first, 1, 2, 3, 0, 0, 0, 0});
    call.arguments.blockMask->full = BlockLists{oneCount.tensor, oneList.tensor};
    call.arguments.checked.reset();
    (void)AttentionOperation(*on->jit).run(call.arguments);
    bool said = false;
    for (const Finding &f : on->device->takeFindings())
      said |= f.message.find(words) != std::string::npos;
    EXPECT_TRUE(said) << words;
  }
}

/// The same of the lists of blocks of keys.
TEST_P(AttentionBlockMasks, WrongEntriesBackward) {
  if (!isOneOf({1, 2}))
    return;
  if (!on->emulated())
    GTEST_SKIP() << "the emulator's findings";
  const Problem p = listed(with(128, 100), ofBlocks({64, 64}, [](auto, auto) { return true; }), {64, 64});
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  PreparedGradients call = prepared(p, d, g);
  const Operand counts = upload(*on->device, DType::I32, {1, 1, 2}, {1000000, 3}),
                blocks = upload(*on->device, DType::I32, {1, 1, 2, 3}, {0, -1, 1, 1 << 30, 1, 0});
  std::optional<BlockLists> &lists = call.arguments.of.blockMask->fullOfKeys;
  lists = BlockLists{counts.tensor, blocks.tensor};
  call.arguments.of.checked = false;
  compareGradients(p, d, g, call, runGradients(call));
  for (const auto &[count, first, words] :
       {std::tuple(4.0, 0.0, "a count of blocks is below 0 or above the list's length"),
        std::tuple(1.0, -1.0, "a list of blocks names a block that no sequence has"),
        std::tuple(1.0, 2.0, "a list of blocks names a block that no sequence has")}) {
    const Operand oneCount = upload(*on->device, DType::I32, {1, 1, 2}, {count, 0}),
                  oneList = upload(*on->device, DType::I32, {1, 1, 2, 3}, {first, 1, 0, 0, 0, 0});
    lists = BlockLists{oneCount.tensor, oneList.tensor};
    call.arguments.of.checked.reset();
    (void)AttentionBackwardOperation(*on->jit).run(call.arguments);
    bool said = false;
    for (const Finding &f : on->device->takeFindings())
      said |= f.message.find(words) != std::string::npos;
    EXPECT_TRUE(said) << words;
  }
}

TEST_P(AttentionBlockMasks, Refusals) {
  if (GetParam() != 0)
    return; // the same everywhere
  const Problem p = listed(with(100, 100), ofBlocks({32, 64}, [](auto, auto) { return true; }), {32, 64});
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  using A = AttentionArguments;
  const auto says = [](const Status &s, std::initializer_list<const char *> words) {
    EXPECT_FALSE(s.ok());
    for (const char *word : words)
      EXPECT_NE(s.toString().find(word), std::string::npos) << s.toString();
  };
  const auto refused = [&](auto change, std::initializer_list<const char *> words) {
    PreparedCall call = prepare(*on->device, p, d);
    change(call.arguments);
    says(AttentionOperation(*on->jit).run(call.arguments), words);
  };
  const auto backwardRefused = [&](auto change, std::initializer_list<const char *> words) {
    PreparedGradients call = prepared(p, d, g);
    change(call.arguments);
    says(AttentionBackwardOperation(*on->jit).run(call.arguments), words);
  };
  const Operand wide = upload(*on->device, DType::I64, {1, 2, 4}, Numbers(8, 0)),
                few = upload(*on->device, DType::I32, {1, 2, 3}, Numbers(6, 0)),
                heads = upload(*on->device, DType::I32, {1, 3, 4}, Numbers(12, 0));
  refused([](A &a) { a.blockMask->rows = 40; }, {"blocks of 40 rows", "a multiple of 16"});
  refused([](A &a) { a.blockMask->keys = 0; }, {"blocks of 0 keys"});
  refused([](A &a) { a.blockMask->full.reset(), a.blockMask->partial.reset(); }, {"a block mask without lists"});
  refused([&](A &a) { a.blockMask->full->counts = wide.tensor; }, {"block_mask.full.counts", "i64"});
  refused([&](A &a) { a.blockMask->partial->counts = few.tensor; }, {"block_mask.partial.counts", "3 blocks", "4"});
  refused([&](A &a) { a.blockMask->full->counts = heads.tensor; }, {"block_mask.full.counts", "the heads of q, or 1"});
  refused([](A &a) { a.blockMask->full->blocks.strides[3] = 2; }, {"block_mask.full.blocks"});
  refused([](A &a) { a.tiling.blockM = 64; }, {"tiles of 64 rows do not divide blocks of 32"});
  refused([](A &a) { a.tiling.blockN = 128; }, {"tiles of 128 keys do not divide blocks of 64"});
  using B = AttentionBackwardArguments;
  backwardRefused([](B &b) { b.of.blockMask->fullOfKeys.reset(); }, {"block_mask.full_of_keys is missing"});
  backwardRefused([](B &b) { b.of.blockMask->partialOfKeys.reset(); }, {"block_mask.partial_of_keys is missing"});
  backwardRefused([](B &b) { b.of.blockMask->full.reset(); }, {"block_mask.full_of_keys is given without"});
  backwardRefused([&](B &b) { b.of.blockMask->fullOfKeys->counts = wide.tensor; }, {"block_mask.full_of_keys.counts"});
  backwardRefused([](B &b) { b.ofKeys.blockM = 64; }, {"tiles of 64 rows do not divide blocks of 32"});
  const Operand bias = upload(*on->device, DType::F32, {1, 1, 1, 100}, Numbers(100, 0)),
                dbias = allocateOutput(*on->device, DType::F32, {1, 1, 1, 100});
  backwardRefused([&](B &b) { b.of.bias = bias.tensor, b.dbias = dbias.tensor; },
                  {"argument 'dbias' is given with a block mask", "leave one of the two out"});

  EXPECT_FALSE(BlockMaskOnHost::from({1, 1, 10, 10}, {17, 16}, [](auto, auto, auto, auto) { return true; }).ok());
  const std::vector<std::uint8_t> matrix(99, 1);
  says(BlockMaskOnHost::from({1, 1, 10, 10}, {16, 16}, matrix).status(),
       {"99 elements", "1 x 1 x 10 x 10", "give 100"});
}

/// The lists themselves, of a matrix.
TEST(BlockMasksOnHost, OfAMatrix) {
  // 40 queries and 50 keys: 3 x 4 blocks of 16.
  std::vector<std::uint8_t> matrix(40 * 50, 0);
  const auto see = [&](std::int64_t i, std::int64_t j) { matrix[static_cast<std::size_t>(i * 50 + j)] = 1; };
  for (std::int64_t i = 0; i < 16; ++i)
    for (std::int64_t j = 16; j < 32; ++j)
      see(i, j); // block (0, 1), full
  see(39, 49);   // the last corner: partial
  for (std::int64_t i = 32; i < 40; ++i)
    for (std::int64_t j = 0; j < 16; ++j)
      see(i, j); // what there is of block (2, 0): full
  const auto mask = BlockMaskOnHost::from({1, 1, 40, 50}, {16, 16}, matrix);
  ASSERT_TRUE(mask.ok());
  using Kind = BlockMaskOnHost::Kind;
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t key = 0; key < 4; ++key)
      EXPECT_EQ(mask->kind(0, 0, row, key), (row == 0 && key == 1) || (row == 2 && key == 0) ? Kind::Full
                                            : row == 2 && key == 3                           ? Kind::Partial
                                                                                             : Kind::Hidden);
  EXPECT_EQ(mask->visited(), 3);
  const auto full = mask->lists(Kind::Full, false), partial = mask->lists(Kind::Partial, false),
             fullOfKeys = mask->lists(Kind::Full, true), partialOfKeys = mask->lists(Kind::Partial, true);
  using List = std::vector<std::int32_t>;
  EXPECT_EQ(full.counts, (List{1, 0, 1}));
  EXPECT_EQ(partial.counts, (List{0, 0, 1}));
  EXPECT_EQ(fullOfKeys.counts, (List{1, 1, 0, 0}));
  EXPECT_EQ(partialOfKeys.counts, (List{0, 0, 0, 1}));
  EXPECT_EQ(full.blocks, (List{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(partial.blocks, (List{0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(fullOfKeys.blocks, (List{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(partialOfKeys.blocks, (List{0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBlockMasks, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
