//===- AttentionFunctionTextTest.cpp - Scores and masks of attention as text ---===//
#include "kernels/attention/FunctionOnHost.h"
#include "kernels/attention/FunctionText.h"
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"

#include <cmath>
#include <functional>

namespace kiln::test {
namespace {

using namespace kernels;

class AttentionFunctionText : public AttentionBackward {
protected:
  /// The functions of the text in place of those in C++: the same values, and gradients.
  void same(Problem p, Hooks hooks, const AttentionFunctionsText &text) {
    SCOPED_TRACE(text.score + " | " + text.mask);
    const Result<AttentionFunctions> parsed = parseAttentionFunctions(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().toString();
    hooks.functions = *parsed;
    p.hooks = std::make_shared<const Hooks>(std::move(hooks));
    compare(p, randomData(p, random));
    compareRandom(p);
  }
};

TEST_P(AttentionFunctionText, ComputesWhatItSays) {
  if (!isOneOf({0, 2}))
    return;
  Problem p = with(70, 90);
  p.batch = 2, p.heads = 4, p.keyHeads = 2;
  same(p, documents(p, random), {.mask = "docs[b, i] == docs[b, j]", .aux = {{"docs", DType::I32, 2}}});
  same(p, relativeBias(p, random),
       {.score = "15 * tanh((x + bias[h, i - j + most[0]]) / 15.0)",
        .mask = "j <= i",
        .aux = {{"bias", DType::BF16, 2}, {"most", DType::I32, 1}}});
  Hooks chunks; // block-local attention
  chunks.mask = [](const Pair &x) { return x.i / 16 == x.j / 16; };
  same(p, chunks, {.mask = "i // 16 == j // 16"});
  same(p, windowWithSinks(20, 3), {.mask = "j <= i & (j >= i - 20 | j < 3)"});
}

/// Every operator and function, whole numbers and fp32, precedence.
TEST_P(AttentionFunctionText, OperatorsAndFunctions) {
  if (!isOneOf({1}))
    return;
  const Problem p = with(20, 30);
  Hooks hooks;
  hooks.mask = [](const Pair &x) {
    return !((x.i + x.j * 3 + x.head) % 7 < 2 && x.i != x.j) || (x.i - x.j) / 4 == -2 || x.j > 2 * x.i + 1;
  };
  same(p, hooks, {.mask = "!((i + j * 3 + h) % 7 < 2 & i != j) | (i - j) // 4 == -2 | j > 2 * i + 1"});
  Hooks scores;
  scores.score = [](double x, const Pair &pair) {
    const double i = static_cast<double>(pair.i), j = static_cast<double>(pair.j);
    return std::max(x, -2.0) * std::exp(-i / 10) + std::min(x * x, 4.0) / (1 + std::exp2(x)) -
           std::log(2 + x * x) * std::log2(j + 2) * 0.25 + std::sqrt(std::abs(x) + 1) + std::pow(i + 1, 0.5) * 0.1 -
           std::abs(i - j) / 16 + (i < j ? 0.5 * x : std::floor(j / 3) * 0.125);
  };
  scores.slope = [](double x, const Pair &pair) {
    const double i = static_cast<double>(pair.i), j = static_cast<double>(pair.j), e = std::exp2(x), h = 1 + e;
    return (x >= -2 ? std::exp(-i / 10) : 0) + (x * x <= 4 ? 2 * x / h : 0) -
           std::min(x * x, 4.0) * e * std::log(2.0) / (h * h) - 2 * x / (2 + x * x) * std::log2(j + 2) * 0.25 +
           (x < 0 ? -1 : 1) / (2 * std::sqrt(std::abs(x) + 1)) + (i < j ? 0.5 : 0);
  };
  same(p, scores,
       {.score = "max(x, -2) * exp(-i / 10) + min(x * x, 4) / (1 + exp2(x)) - log(2 + x * x) * log2(j + 2) * 0.25"
                 " + sqrt(abs(x) + 1) + pow(i + 1, .5) * 1e-1 - abs(i - j) / 16 + where(i < j, 0.5 * x, floor(j / 3) * "
                 "0.125)"});
}

/// On the host the same as C++: values of all lanes, and derivatives against differences.
TEST(AttentionFunctionTexts, OnTheHost) {
  constexpr std::int32_t n = host::mostLanes, top = std::numeric_limits<std::int32_t>::max();
  const std::vector<double> table = {3, -1, 4, 1, -5, 9};
  const std::vector<std::uint64_t> shape = {2, 3};
  const AuxOnHost aux[] = {{shape, table}};
  auto keys = host::Wholes::several(host::mostLanes);
  for (std::int32_t j = 0; j < n; ++j)
    keys[static_cast<unsigned>(j)] = j;
  const PairsOnHost pairs{1, 2, host::Wholes(7), keys, aux};
  const auto element = [&](std::int64_t a, std::int64_t b) {
    return a < 0 || a >= 2 || b < 0 || b >= 3 ? 0 : table[static_cast<std::size_t>(a * 3 + b)];
  };
  using Wanted = std::function<double(double x, std::int32_t j)>;
  const auto wraps = [](std::int64_t v) { return static_cast<double>(static_cast<std::int32_t>(v)); };
  const std::pair<const char *, Wanted> scores[] = {
      {"t[b, j] * x", [&](double x, std::int32_t j) { return element(1, j) * x; }},
      {"x + t[j - 2, h]", [&](double x, std::int32_t j) { return x + element(j - 2, 2); }},
      {"where(j % 3 == 1, tanh(x / 2) * i, -x) + (j - 5) // 2 % 4",
       [](double x, std::int32_t j) { return (j % 3 == 1 ? std::tanh(x / 2) * 7 : -x) + (j - 5) / 2 % 4; }},
      {"exp(-abs(x)) + exp2(x / 4) * log(x * x + j + 1) / sqrt(j + 2) - log2(j + 3)",
       [](double x, std::int32_t j) {
         return std::exp(-std::abs(x)) + std::exp2(x / 4) * std::log(x * x + j + 1) / std::sqrt(j + 2) -
                std::log2(j + 3);
       }},
      {"min(x, 0.25) + max(x, j / 64) + pow(abs(x) + 1, 1.5) + floor(j / 3)",
       [](double x, std::int32_t j) {
         return std::min(x, 0.25) + std::max(x, j / 64.0) + std::pow(std::abs(x) + 1, 1.5) + std::floor(j / 3.0);
       }},
      {"x + (2147483647 + j) + j // (i - 7)",
       [&](double x, std::int32_t j) { return x + wraps(std::int64_t(top) + j); }}};
  for (const auto &[text, wanted] : scores) {
    const Result<FunctionsOnHost> on = FunctionsOnHost::parse({.score = text, .aux = {{"t", DType::F32, 2}}});
    ASSERT_TRUE(on.ok()) << on.status().toString();
    for (const double x : {-1.75, -0.3, 0.4, 2.2}) {
      const host::Numbers got = on->score(host::number(x, 1), pairs);
      ASSERT_EQ(got.size(), static_cast<unsigned>(n)) << text;
      for (std::int32_t j = 0; j < n; ++j) {
        const host::Number &at = got.at(static_cast<unsigned>(j));
        const double value = wanted(x, j), h = 1e-5, scale = 1e-12 * std::abs(value);
        ASSERT_NEAR(at.value, value, scale) << text << " at " << x << ", " << j;
        ASSERT_NEAR(at.slope, (wanted(x + h, j) - wanted(x - h, j)) / (2 * h), 1e-6 + scale / h) << text << " " << x;
      }
    }
  }
  const Result<FunctionsOnHost> mask = FunctionsOnHost::parse({.mask = "!(j > i & j != 9) | h == 2 & j >= 100"});
  ASSERT_TRUE(mask.ok()) << mask.status().toString();
  for (std::int32_t j = 0; j < n; ++j)
    EXPECT_EQ(mask->mask(pairs).at(static_cast<unsigned>(j)), j <= 7 || j == 9 || j >= 100) << j;
  EXPECT_TRUE(mask->isMaskOfHead());
  EXPECT_FALSE(mask->isMaskOfBatch());
}

TEST(AttentionFunctionTexts, SayWhatIsWrong) {
  const auto refused = [](const AttentionFunctionsText &text, std::initializer_list<const char *> words) {
    const Status s = parseAttentionFunctions(text).status();
    EXPECT_FALSE(s.ok()) << text.score << text.mask;
    for (const char *word : words)
      EXPECT_NE(s.toString().find(word), std::string::npos) << s.toString();
  };
  refused({.score = "2 *"}, {"score '2 *', at 4", "a number, a name or '(' is expected"});
  refused({.score = "x + "}, {"is expected"});
  refused({.score = "(x"}, {"')' is expected"});
  refused({.score = "x x"}, {"at 3", "an operator or the end is expected"});
  refused({.score = "y"}, {"there is no 'y': x, b, h, i, j"});
  refused({.mask = "x > 0"}, {"mask 'x > 0'", "there is no 'x'"});
  refused({.score = "i < j"}, {"it gives a mask, not a number"});
  refused({.mask = "i - j"}, {"it gives a whole number, not a mask"});
  refused({.mask = "i & j"}, {"& takes a mask, not a whole number"});
  refused({.score = "x % 2"}, {"% takes a whole number, not a number"});
  refused({.score = "sinh(x)"}, {"there is no function 'sinh'"});
  refused({.score = "max(x)"}, {"max takes 2, and has 1"});
  refused({.score = "max(x, 1"}, {"',' or ')' is expected"});
  refused({.score = "x + t[i]"}, {"there is no aux tensor 't'"});
  refused({.score = "x + t[i]", .aux = {{"t", DType::F32, 2}}}, {"'t' has 2 dimensions, and 1 indices are given"});
  refused({.score = "x + t[x]", .aux = {{"t", DType::F32, 1}}}, {"an index of 't' is a number, not a whole number"});
  refused({.score = "x + t[0]", .aux = {{"t", DType::F8E4M3, 1}}}, {"aux tensor 't' is e4m3"});
  refused({.score = "x + t[0]", .aux = {{"t", DType::F32, 5}}}, {"of 5 dimensions"});
  refused({.score = "x * 99999999999"}, {"below 2^31"});
  refused({.score = "x * 1e99"}, {"no number of fp32"});
  refused({.score = std::string(1000, '(') + "x"}, {"nested more than 100 deep"});
  refused({.score = std::string(1000, '-') + "x"}, {"nested more than 100 deep"});
  refused({.score = std::string("x\0", 2)}, {"an operator or the end is expected"});
  EXPECT_FALSE(parseAttentionFunctions({})->hasScore());
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionFunctionText, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
