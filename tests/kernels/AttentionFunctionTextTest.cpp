//===- AttentionFunctionTextTest.cpp - Scores and masks of attention as text ---===//
#include "kernels/attention/FunctionText.h"
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"

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
