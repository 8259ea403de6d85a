// Calls that leave their tiling open take what a sweep kept, for calls alike and sizes of one bucket; no code is made.
#include "kernels/support/TunedTable.h"
#include "kernels/attention/AttentionBackwardOperation.h"
#include "kernels/attention/AttentionOperation.h"
#include "kernels/attention_decode/AttentionDecodeOperation.h"
#include "kernels/dplr/DplrOperation.h"
#include "kernels/matmul/MatmulOperation.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kernels;

TEST(TunedTable, BucketsArePowersOfTwo) {
  for (const auto &[value, bucket] : {std::pair(-1, 0), {0, 0}, {1, 1}, {2, 2}, {3, 4}, {4096, 4096}, {4097, 8192}})
    EXPECT_EQ(bucketOf(value), bucket);
  EXPECT_EQ(bucketOf(std::numeric_limits<std::int64_t>::max()), std::int64_t(1) << 62);
  const TunedSize sizes[] = {{"queries", 5000}, {"left", -1}};
  EXPECT_EQ(bucketsText(sizes), "queries 8192, left 0");
}

TEST(TunedTable, TilingsAreReadBack) {
  EXPECT_EQ(tilingOptions<Tiling>("", true),
            (std::vector<std::string>{"block_m", "block_n", "block_k", "warps", "stages"}));
  EXPECT_EQ(tilingOptions<Tiling>("keys", false),
            (std::vector<std::string>{"keys_block_m", "keys_block_n", "keys_warps", "keys_stages"}));
  const std::optional<Tiling> t = tilingOf<Tiling>({64, 128, 8, 3}, false);
  ASSERT_TRUE(t);
  EXPECT_EQ(t->blockM, 64);
  EXPECT_EQ(t->blockN, 128);
  EXPECT_EQ(t->blockK, 0);
  EXPECT_EQ(t->warps, 8);
  EXPECT_EQ(t->stages, 3);
  EXPECT_TRUE(tilingOf<Tiling>({0, 0, 0, 0}, false));
  for (const TunedValues &wrong : {TunedValues{65, 128, 8, 3},
                                   {64, 128, 8, 9},
                                   {64, 128, -8, 3},
                                   {64, 128, 8},
                                   {},
                                   {64, 128, 8, 3, 1},
                                   {(std::int64_t(1) << 32) + 64, 128, 8, 3}})
    EXPECT_FALSE(tilingOf<Tiling>(wrong, false));
}

/// The device of the tensors that a test makes.
Device *current = nullptr;

Tensor tensor(DType type, std::initializer_list<std::int64_t> shape) {
  Tensor t;
  t.device = current;
  t.dtype = type, t.rank = static_cast<unsigned>(shape.size());
  t.address = 1 << 20;
  std::copy(shape.begin(), shape.end(), t.shape.begin());
  std::int64_t stride = 1;
  for (unsigned d = t.rank; d-- > 0; stride *= std::max<std::int64_t>(1, t.shape[d]))
    t.strides[d] = stride;
  return t;
}

class TunedCalls : public testing::Test {
protected:
  void SetUp() override {
    auto opened = openDevice("emulator:sm_90a");
    ASSERT_TRUE(opened.ok());
    device = std::move(*opened);
    current = device.get();
    jit = makeJit();
  }
  std::unique_ptr<Jit> makeJit() {
    JitOptions options;
    options.knobs.compiler = KILN_BINARY_DIR "/tests/libkiln-jit-fake-compiler.so";
    options.knobs.cacheDir = folder.path() + "/cache";
    options.onTunedQuestion = [this](const TunedQuestion &q) { asked.push_back(q); };
    auto made = Jit::create(*device, std::move(options));
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  /// What a call launches; `asked` is what it asked for.
  template <typename Operation, typename Arguments>
  std::vector<std::pair<const JitKernel *, Dim3>> launches(const Operation &operation, const Arguments &a) {
    asked.clear();
    PlanListing list;
    const Status s = operation.describe(a, list);
    EXPECT_TRUE(s.ok()) << s.toString();
    std::vector<std::pair<const JitKernel *, Dim3>> out;
    for (const PlanListing::Launch &l : list.launches)
      out.emplace_back(l.kernel, l.grid);
    return out;
  }
  void keep(const TunedQuestion &question, const TunedValues &values) {
    const Status s = jit->keepTuned(question, values, {});
    ASSERT_TRUE(s.ok()) << s.toString();
  }

  TemporaryDirectory folder;
  std::unique_ptr<Device> device;
  std::unique_ptr<Jit> jit;
  std::vector<TunedQuestion> asked;
};

AttentionArguments attentionOf(std::int64_t rows, bool causal = false) {
  AttentionArguments a;
  a.q = a.k = a.v = a.o = tensor(DType::BF16, {1, rows, 4, 128});
  a.k.address += 1 << 26, a.v.address += 2 << 26, a.o.address += 3 << 26;
  a.causal = causal;
  return a;
}

TEST_F(TunedCalls, AttentionTakesThemForSizesOfOneBucket) {
  const AttentionOperation before(*jit);
  const auto usual = launches(before, attentionOf(4096)), shorter = launches(before, attentionOf(2048)),
             causal = launches(before, attentionOf(4096, true));
  launches(before, attentionOf(4000));
  EXPECT_TRUE(asked.empty()); // remembered
  const AttentionOperation again(*jit);
  launches(again, attentionOf(4096));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].operation, "attention");
  EXPECT_EQ(asked[0].types, "bf16");
  EXPECT_NE(asked[0].sizes.find("queries 4096, keys 4096, heads 4"), std::string::npos) << asked[0].sizes;
  EXPECT_NE(asked[0].configuration.find("dim=128"), std::string::npos) << asked[0].configuration;
  keep(asked[0], {64, 32, 4, 3});
  AttentionArguments told = attentionOf(4096);
  told.tiling.blockM = 64, told.tiling.blockN = 32, told.tiling.warps = 4, told.tiling.stages = 3;
  const AttentionOperation after(*jit);
  const auto tuned = launches(after, attentionOf(4096));
  EXPECT_NE(tuned, usual);
  EXPECT_EQ(tuned, launches(after, told));
  EXPECT_TRUE(asked.empty()); // by a call that says its tiling
  EXPECT_EQ(launches(after, attentionOf(4033)).at(0).first, tuned.at(0).first);
  EXPECT_EQ(launches(after, attentionOf(2048)), shorter);
  EXPECT_EQ(launches(after, attentionOf(4096, true)), causal);
  // What was given part of is the caller's whole.
  told = attentionOf(4096);
  told.tiling.stages = 1;
  EXPECT_NE(launches(after, told), tuned);
}

TEST_F(TunedCalls, ValuesThatNoOptionTakesAreNone) {
  const AttentionOperation before(*jit);
  const auto usual = launches(before, attentionOf(4096));
  keep(TunedQuestion(asked.at(0)), {63, 32, 4, 3});
  const AttentionOperation after(*jit);
  EXPECT_EQ(launches(after, attentionOf(4096)), usual);
}

/// Nothing in the question would tell one function from another.
TEST_F(TunedCalls, CallsWithFunctionsDoNotAsk) {
  AttentionArguments a = attentionOf(4096);
  a.functions = AttentionFunctions({.mask = [](const AttentionPairs &p) { return p.query >= p.key; }});
  const AttentionOperation operation(*jit);
  launches(operation, a);
  EXPECT_TRUE(asked.empty());
}

TEST_F(TunedCalls, EachLaunchOfTheBackwardHasItsOwn) {
  AttentionBackwardArguments a;
  a.of = attentionOf(2048);
  a.of.lse = tensor(DType::F32, {1, 4, 2048});
  a.of.lse->address += 4 << 26;
  a.dO = a.dq = a.dk = a.dv = a.of.q;
  a.dO.address += 5 << 26, a.dq.address += 6 << 26, a.dk.address += 7 << 26, a.dv.address += std::uint64_t(8) << 26;
  for (const bool deterministic : {false, true}) {
    SCOPED_TRACE(deterministic);
    a.deterministic = deterministic;
    const AttentionBackwardOperation before(*jit);
    const auto usual = launches(before, a);
    ASSERT_FALSE(asked.empty());
    EXPECT_EQ(asked[0].part, "keys");
    EXPECT_EQ(asked[0].options.at(0), "keys_block_m");
    const std::vector<TunedQuestion> questions = asked;
    for (const TunedQuestion &q : questions)
      keep(q, {64, 64, 4, 1});
    const AttentionBackwardOperation after(*jit);
    const auto tuned = launches(after, a);
    EXPECT_NE(tuned, usual);
    AttentionBackwardArguments told = a;
    for (Tiling *t : {&told.ofKeys, &told.ofQueries})
      t->blockM = t->blockN = 64, t->warps = 4, t->stages = 1;
    EXPECT_EQ(launches(after, told), tuned);
  }
}

TEST_F(TunedCalls, Matmul) {
  const auto arguments = [](std::int64_t n) {
    MatmulArguments a;
    a.a = tensor(DType::BF16, {n, 512}), a.b = tensor(DType::BF16, {512, n}), a.out = tensor(DType::F32, {n, n});
    a.b.address += 1 << 26, a.out.address += 2 << 26;
    return a;
  };
  const MatmulOperation before(*jit);
  const auto usual = launches(before, arguments(1024));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].types, "bf16 to f32");
  EXPECT_EQ(asked[0].options.size(), 5u);
  keep(TunedQuestion(asked[0]), {64, 128, 32, 4, 2});
  const MatmulOperation after(*jit);
  MatmulArguments told = arguments(1024);
  told.tiling = {64, 128, 32, 4, 2};
  const auto tuned = launches(after, arguments(1024));
  EXPECT_NE(tuned, usual);
  EXPECT_EQ(tuned, launches(after, told));
  // A product with its splits named is another call.
  told.tiling = {}, told.splits = 2;
  launches(after, told);
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(TunedCalls, Decoding) {
  AttentionDecodeArguments a;
  a.q = a.o = tensor(DType::BF16, {2, 1, 8, 64});
  a.kCache = a.vCache = tensor(DType::BF16, {2, 2048, 2, 64});
  a.kCache.address += 1 << 26, a.vCache.address += 2 << 26, a.o.address += 3 << 26;
  const AttentionDecodeOperation before(*jit);
  const auto usual = launches(before, a);
  ASSERT_EQ(asked.size(), 1u);
  keep(TunedQuestion(asked[0]), {16, 64, 1, 2});
  const AttentionDecodeOperation after(*jit);
  AttentionDecodeArguments told = a;
  told.tiling.blockM = 16, told.tiling.blockN = 64, told.tiling.warps = 1, told.tiling.stages = 2;
  const auto tuned = launches(after, a);
  EXPECT_NE(tuned, usual);
  EXPECT_EQ(tuned, launches(after, told));
}

TEST_F(TunedCalls, Recurrences) {
  const auto arguments = [](std::int64_t tokens, std::int64_t columns = 64) {
    Rwkv7Arguments a;
    a.r = a.k = a.v = a.a = a.b = a.o = tensor(DType::BF16, {8, tokens, 32, columns});
    a.w = tensor(DType::F32, {8, tokens, 32, columns});
    std::uint64_t next = 1;
    for (Tensor *t : {&a.w, &a.k, &a.v, &a.a, &a.b, &a.o})
      t->address += next++ << 30;
    return a;
  };
  const Rwkv7Operation before(*jit);
  const auto usual = launches(before, arguments(4096));
  ASSERT_EQ(asked.size(), 1u);
  const TunedQuestion question = asked[0];
  EXPECT_EQ(question.operation, "rwkv7");
  EXPECT_EQ(question.options, (std::vector<std::string>{"warps", "block_v", "chain_warps", "stages"}));
  EXPECT_NE(question.sizes.find("sequences 8, tokens 4096, heads 32"), std::string::npos) << question.sizes;
  keep(question, {8, 32, 4, 3});
  const Rwkv7Operation after(*jit);
  Rwkv7Arguments told = arguments(4096);
  told.tiling = {8, 32, 4, 3};
  const auto tuned = launches(after, arguments(4096));
  EXPECT_NE(tuned, usual);
  EXPECT_EQ(tuned, launches(after, told));
  EXPECT_EQ(launches(after, arguments(3000)).at(1).first, tuned.at(1).first);
  // What no option takes is none, and so is what the call does not: four chunks of 128 columns do not fit.
  for (const auto &[columns, wrong] :
       {std::pair(64, TunedValues{8, 128, 4, 3}), {64, {2, 32, 4, 3}}, {128, {8, 64, 4, 4}}}) {
    const Rwkv7Operation asks(*jit);
    launches(asks, arguments(4096, columns));
    ASSERT_EQ(asked.size(), 1u);
    keep(TunedQuestion(asked[0]), wrong);
    const Rwkv7Operation again(*jit);
    Rwkv7Arguments chosen = arguments(4096, columns);
    chosen.tiling.warps = columns == 64 ? 4 : 8;
    EXPECT_EQ(launches(again, arguments(4096, columns)), launches(again, chosen));
  }
}

} // namespace
} // namespace kiln::test
