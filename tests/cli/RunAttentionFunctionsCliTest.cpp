// `kiln run attention` and its neighbours with --score, --mask, --aux and --block-mask: results against float64, what
// is counted, and every way to get it wrong.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t S = 40, H = 2, D = 16; // one sequence, a key head of each query head

class RunAttentionFunctionsCliTest : public CliTest {
protected:
  void SetUp() override {
    setenv("KILN_CACHE_DIR", file("cache").c_str(), 1);
    for (std::size_t i = 0, id = 0; i < S; ++i)
      documents.push_back(static_cast<double>(id += i % 13 == 9)); // of 9, 13, 13 and 5 tokens
    for (const char *name : {"q", "k", "v", "do"}) {
      values.push_back(normals(S * H * D, values.size() + 1));
      save(name + std::string(".npy"), DType::F16, {1, S, H, D}, values.back());
    }
    bias = normals(H * 2 * S, 9);
    save("bias.npy", DType::F32, {H, 2 * S}, bias);
    save("documents.npy", DType::I32, {1, S}, documents);
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }

  std::string save(const std::string &name, DType type, const Shape &shape, const std::vector<double> &numbers) {
    return saveArray(file(name), type, shape, numbers);
  }
  std::string aux(const std::string &name) const { return name + "=" + file(name + ".npy"); }

  Words call(Words more) const {
    Words out = {"run", "attention", "--target", "sm_80"};
    for (const char *name : {"q", "k", "v"})
      out.insert(out.end(), {"--" + std::string(name), file(name + std::string(".npy"))});
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  void refused(const Words &more, const std::string &part) const {
    Words words = call(more);
    words.insert(words.end(), {"--output", file("o.npy")});
    expectRefused(words, part);
  }

  /// o and lse of a run, held against float64.
  template <typename Score, typename Mask> void agrees(const Words &more, Score score, Mask mask) {
    Words words = call(more);
    words.insert(words.end(), {"--output", file("o.npy"), "--lse", file("lse.npy")});
    const Outcome run = kiln(words);
    ASSERT_EQ(run.status, 0) << run.out << run.err;
    const std::vector<double> o = valuesOf(file("o.npy")), lse = valuesOf(file("lse.npy"));
    const auto at = [](std::size_t i, std::size_t h, std::size_t d) { return (i * H + h) * D + d; };
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t i = 0; i < S; ++i) {
        std::vector<double> weights(S);
        double total = 0;
        for (std::size_t j = 0; j < S; ++j) {
          double x = 0;
          for (std::size_t d = 0; d < D; ++d)
            x += values[0][at(i, h, d)] * values[1][at(j, h, d)] / 4; // 1 / sqrt(16)
          total += weights[j] = mask(i, j) ? std::exp(score(x, h, i, j)) : 0;
        }
        ASSERT_NEAR(lse[h * S + i], std::log(total), 2e-3) << h << " " << i;
        for (std::size_t d = 0; d < D; ++d) {
          double wanted = 0;
          for (std::size_t j = 0; j < S; ++j)
            wanted += weights[j] / total * values[2][at(j, h, d)];
          ASSERT_NEAR(o[at(i, h, d)], wanted, 4e-3) << h << " " << i;
        }
      }
  }

  std::vector<std::vector<double>> values; ///< of q, k, v, do
  std::vector<double> documents, bias;
};

/// Two aux tensors, which come in the order of their names, whatever the order of words.
TEST_F(RunAttentionFunctionsCliTest, AgreeWithFloat64) {
  const auto score = [&](double x, std::size_t h, std::size_t i, std::size_t j) {
    return x + bias[h * 2 * S + i + S - j];
  };
  const auto mask = [&](std::size_t i, std::size_t j) { return documents[i] == documents[j]; };
  const Words functions = {"--score", "x + bias[h, i - j + " + std::to_string(S) + "]",
                           "--mask",  "documents[b, i] == documents[b, j]",
                           "--aux",   aux("documents"),
                           "--aux",   aux("bias")};
  agrees(functions, score, mask);
  Words blocks = functions;
  blocks.insert(blocks.end(), {"--block-mask", "16x16"});
  agrees(blocks, score, mask);
}

/// Lists are of what the built-in mask hides too, and of a sequence's rows that count.
TEST_F(RunAttentionFunctionsCliTest, BlocksOfTheBuiltInMask) {
  const auto same = [](double x, auto...) { return x; };
  agrees({"--window", "10,0", "--block-mask", "16x32"}, same,
         [](std::size_t i, std::size_t j) { return j <= i && j + 10 >= i; });
  agrees({"--causal", "--seqused-k", save("used.npy", DType::I32, {1}, {40}), "--block-mask", "16x16", "--mask",
          "i - j < 20"},
         same, [](std::size_t i, std::size_t j) { return j <= i && i - j < 20; });
}

/// In both directions the kernels agree with the library's float64, which evaluates the text; pairs are counted.
TEST_F(RunAttentionFunctionsCliTest, BenchAndCheckOfBothDirections) {
  const auto with = [&](const std::string &command, const std::string &kernel) {
    Words out = {command, kernel, "--dtype", "bf16", "--target", "sm_80", "--json"};
    for (const char *name : {"q", "k", "v"})
      out.insert(out.end(), {"--with", name + std::string("=1x40x2x16")});
    if (kernel != "attention")
      out.insert(out.end(), {"--with", "do=1x40x2x16"});
    else
      out.insert(out.end(), {"--with", "lse=1"});
    out.insert(out.end(),
               {"--with", "aux=" + aux("documents"), "--with", "aux=" + aux("bias"), "--with",
                "score=9 * tanh((x * bias[h, i + j]) / 9)", "--with",
                "mask=documents[0, i] == documents[b, j] | h > i - j & i >= j", "--with", "block_mask=16x16"});
    return out;
  };
  double pairs = 0; // of both heads
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t i = 0; i < S; ++i)
      for (std::size_t j = 0; j < S; ++j)
        pairs += documents[i] == documents[j] || (h + j > i && i >= j);
  for (const auto &[kernel, products] : {std::pair("attention", 2), std::pair("attention_backward", 5)}) {
    const Outcome bench = kiln(with("bench", kernel));
    ASSERT_EQ(bench.status, 0) << bench.out << bench.err;
    const auto row = nlohmann::json::parse(bench.out)["results"].back();
    EXPECT_EQ(row["check"], "good");
    EXPECT_DOUBLE_EQ(row["flops"].get<double>(), 2 * products * pairs * D);
    EXPECT_NE(row["shape"].get<std::string>().find("score mask blocks 16x16"), std::string::npos) << row["shape"];
    Words words = with("check", kernel);
    words.insert(words.end(), {"--schedule", "adversarial"});
    const Outcome check = kiln(words);
    EXPECT_EQ(check.status, 0) << check.out << check.err;
    EXPECT_EQ(nlohmann::json::parse(check.out)["runs"], 1);
  }
}

/// On the emulator a read outside of a tensor is a finding, in the function's name.
TEST_F(RunAttentionFunctionsCliTest, ReadsOutOfBoundsAreFound) {
  Words words =
      call({"--mask", "documents[b, i + 1] == 0 | j == i", "--aux", aux("documents"), "--output", file("o.npy")});
  const Outcome o = kiln(words);
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("a function reads outside of an aux tensor"), std::string::npos) << o.out;
  for (const std::string &name : files())
    EXPECT_NE(name, "o.npy");
}

TEST_F(RunAttentionFunctionsCliTest, WhatIsWrong) {
  const std::string documentsFile = aux("documents");
  refused({"--mask", "j <="}, "mask 'j <=', at 5: a number, a name or '(' is expected");
  refused({"--mask", ""}, "--mask is empty");
  refused({"--score", "x + bias[h]", "--aux", aux("bias")}, "score 'x + bias[h]', at 5: 'bias' has 2 dimensions");
  refused({"--score", "x + y[h]", "--aux", aux("bias")}, "at 5: there is no aux tensor 'y'");
  refused({"--score", "i < j"}, "it gives a mask, not a number");
  refused({"--mask", "i - j"}, "it gives a whole number, not a mask");
  refused({"--aux", documentsFile}, "aux tensor 'documents' is given, and no function reads it");
  refused({"--mask", "j <= i", "--aux", "documents"}, "--aux documents: expected NAME=VALUE");
  refused({"--mask", "j <= i", "--aux", "a-b=" + file("bias.npy")}, "expected NAME=VALUE");
  refused({"--mask", "j <= i", "--aux", documentsFile, "--aux", documentsFile}, "--aux documents= was given twice");
  refused({"--mask", "j <= i", "--mask", "j <= i"}, "--mask was given twice");
  refused({"--mask", "j <= i", "--aux", "d=" + file("none.npy")}, "none.npy");
  refused({"--mask", "t[0, 0, 0, 0, i] == j", "--aux", "t=" + save("t.npy", DType::I32, {1, 1, 1, 1, S}, documents)},
          "aux tensor 't' is i32 of 5 dimensions");
  refused({"--block-mask", "128"}, "block_mask = 128: expected ROWSxKEYS");
  refused({"--block-mask", "20x16"}, "blocks of 20 rows: a multiple of 16");
  refused({"--score", "2 * x", "--softcap", "5"}, "softcap and a score function are given");
  refused({"--causal", "--block-mask", "16x16", "--block-n", "32"}, "tiles of 32 keys do not divide blocks of 16");
  Words many = {"--mask", "j <= i"};
  for (unsigned n = 0; n < 9; ++n)
    many.insert(many.end(), {"--aux", "d" + std::to_string(n) + "=" + file("documents.npy")});
  refused(many, "9 aux tensors (give at most 8)");
  expectRefused({"bench", "attention", "--target", "sm_80", "--dtype", "bf16", "--with", "q=1x40x2x16", "--with",
                 "k=1x40x2x16", "--with", "v=1x40x2x16", "--with", "seqused_k=1"},
                "a table cannot be (give a file: --with seqused_k=FILE.npy)");
}

/// The kernel of a text alone.
TEST_F(RunAttentionFunctionsCliTest, Compile) {
  const auto compile = [](const Words &more) {
    Words words = {"compile", "attention", "--target", "sm_80", "--emit", "tile"};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  };
  const Words functions = {"--set", "mask=documents[b, i] == documents[b, j]", "--set", "aux=documents:i32:2"};
  const Outcome good = compile(functions), plain = compile({});
  ASSERT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("aux0"), std::string::npos);
  EXPECT_EQ(good.out.find("partial_blocks"), std::string::npos);
  EXPECT_EQ(plain.out.find("aux0"), std::string::npos);
  Words blocks = functions;
  blocks.insert(blocks.end(), {"--set", "blockMask=128x128"});
  EXPECT_NE(compile(blocks).out.find("partial_blocks"), std::string::npos);
  for (const auto &[setting, part] :
       {std::pair("mask=j <", "mask 'j <', at 4"), std::pair("aux=documents", "expected NAME:DTYPE:RANK"),
        std::pair("blockMask=9x9", "blocks of 9 rows")}) {
    const Outcome o = compile({"--set", setting});
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  }
}

} // namespace
} // namespace kiln::test
