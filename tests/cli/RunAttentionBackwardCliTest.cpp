// `kiln run attention_backward`: gradients of what `kiln run attention` gave, against float64; layouts; what it
// refuses.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include "kernels/attention/Dropout.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

/// A dense batch with a causal mask: queries as many as keys.
struct Problem {
  std::uint64_t B = 2, S = 9, H = 4, Hk = 2, D = 16;
  std::vector<double> q = normals(B * S * H * D, 1), k = normals(B * S * Hk * D, 2), v = normals(B * S * Hk * D, 3),
                      dO = normals(B * S * H * D, 4);
  std::size_t at(std::uint64_t heads, std::uint64_t b, std::uint64_t s, std::uint64_t h) const {
    return ((b * S + s) * heads + h) * D;
  }
  /// [b, s, h, d] as [s, b, h, d].
  std::vector<double> turned(const std::vector<double> &x, std::uint64_t heads) const {
    std::vector<double> out;
    for (std::uint64_t s = 0; s < S; ++s)
      for (std::uint64_t b = 0; b < B; ++b)
        out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>(at(heads, b, s, 0)),
                   x.begin() + static_cast<std::ptrdiff_t>(at(heads, b, s, 0) + heads * D));
    return out;
  }
};

class RunAttentionBackwardCliTest : public CachedCliTest {
protected:
  std::string save(const std::string &name, const Shape &shape, const std::vector<double> &values,
                   DType type = DType::F16) {
    return saveArray(file(name), type, shape, values);
  }
  std::string zeros(const std::string &name, const Shape &shape, DType type = DType::F16) {
    return saveZeros(file(name), type, shape);
  }
  Outcome run(const std::string &kernel, Words words, const Words &more) {
    words.insert(words.begin(), {"run", kernel, "--target", "sm_80"});
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  }
  /// Forward, then backward with its o and lse.
  Outcome both(const Words &inputs, const Words &ofLoss, const Words &more = {}) {
    Words forward = {"--output", file("o.npy"), "--lse", file("lse.npy")};
    forward.insert(forward.end(), more.begin(), more.end());
    const Outcome first = run("attention", inputs, forward);
    EXPECT_EQ(first.status, 0) << first.out << first.err;
    Words backward = {"--o",          file("o.npy"), "--lse",        file("lse.npy"), "--dq",
                      file("dq.npy"), "--dk",        file("dk.npy"), "--dv",          file("dv.npy")};
    backward.insert(backward.end(), ofLoss.begin(), ofLoss.end());
    backward.insert(backward.end(), more.begin(), more.end());
    return run("attention_backward", inputs, backward);
  }
  void refused(Words words, const std::string &part) {
    words.insert(words.begin(), {"run", "attention_backward", "--target", "sm_80"});
    words.insert(words.end(), {"--output", file("dq.npy"), "--dk", file("dk.npy"), "--dv", file("dv.npy")});
    expectRefused(words, part);
  }
};

TEST_F(RunAttentionBackwardCliTest, AgreesWithFloat64InEveryOrder) {
  const Problem p;
  const Shape ofQ = {p.B, p.S, p.H, p.D}, ofK = {p.B, p.S, p.Hk, p.D};
  Outcome o = both({"--q", save("q.npy", ofQ, p.q), "--k", save("k.npy", ofK, p.k), "--v", save("v.npy", ofK, p.v)},
                   {"--do", save("do.npy", ofQ, p.dO)}, {"--causal"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("3 compiled"), std::string::npos) << o.out;
  Shape shape;
  const std::vector<double> dq = valuesOf(file("dq.npy"), &shape), dk = valuesOf(file("dk.npy")),
                            dv = valuesOf(file("dv.npy"));
  EXPECT_EQ(shape, ofQ);
  ASSERT_EQ(dk.size(), p.k.size());
  std::vector<double> wantQ(dq.size()), wantK(dk.size()), wantV(dv.size());
  for (std::uint64_t b = 0; b < p.B; ++b)
    for (std::uint64_t h = 0; h < p.H; ++h)
      for (std::uint64_t i = 0; i < p.S; ++i) {
        const std::size_t row = p.at(p.H, b, i, h);
        std::vector<double> share, dp;
        double total = 0, delta = 0;
        for (std::uint64_t j = 0; j <= i; ++j) {
          double x = 0, y = 0;
          for (std::uint64_t d = 0; d < p.D; ++d) {
            x += p.q[row + d] * p.k[p.at(p.Hk, b, j, h / 2) + d];
            y += p.dO[row + d] * p.v[p.at(p.Hk, b, j, h / 2) + d];
          }
          share.push_back(std::exp(x / 4)), dp.push_back(y); // 1 / sqrt(16)
          total += share.back(), delta += share.back() * y;
        }
        for (std::uint64_t j = 0; j <= i; ++j) {
          const std::size_t key = p.at(p.Hk, b, j, h / 2);
          const double dx = share[j] / total * (dp[j] - delta / total) / 4;
          for (std::uint64_t d = 0; d < p.D; ++d) {
            wantQ[row + d] += dx * p.k[key + d];
            wantK[key + d] += dx * p.q[row + d];
            wantV[key + d] += share[j] / total * p.dO[row + d];
          }
        }
      }
  for (std::size_t i = 0; i < dq.size(); ++i)
    ASSERT_NEAR(dq[i], wantQ[i], 4e-3) << i;
  for (std::size_t i = 0; i < dk.size(); ++i) {
    ASSERT_NEAR(dk[i], wantK[i], 4e-3) << i;
    ASSERT_NEAR(dv[i], wantV[i], 4e-3) << i;
  }
  // Another order in memory, the same bits.
  const Shape turnedQ = {p.S, p.B, p.H, p.D}, turnedK = {p.S, p.B, p.Hk, p.D};
  o = both({"--q", save("q.npy", turnedQ, p.turned(p.q, p.H)), "--k", save("k.npy", turnedK, p.turned(p.k, p.Hk)),
            "--v", save("v.npy", turnedK, p.turned(p.v, p.Hk))},
           {"--do", save("do.npy", turnedQ, p.turned(p.dO, p.H))}, {"--causal", "--layout", "sbhd_sbhd_sbhd"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(valuesOf(file("dq.npy")), p.turned(dq, p.H));
  EXPECT_EQ(valuesOf(file("dk.npy")), p.turned(dk, p.Hk));
  EXPECT_EQ(valuesOf(file("dv.npy")), p.turned(dv, p.Hk));
}

/// q = 0 and v = 0: p is 1 / (keys of the row), and dv adds up do of 1.  Rows that no sequence uses: 0.
TEST_F(RunAttentionBackwardCliTest, PackedSequencesAndTheSink) {
  const std::string q = zeros("q.npy", {12, 1, 8}), k = zeros("k.npy", {10, 1, 8}), v = zeros("v.npy", {10, 1, 8}),
                    cuQ = save("cuq.npy", {4}, {0, 4, 4, 10}, DType::I64),
                    cuK = save("cuk.npy", {4}, {0, 3, 5, 10}, DType::I32),
                    sink = save("sink.npy", {1}, {0}, DType::F32),
                    ones = save("do.npy", {12, 1, 8}, std::vector<double>(96, 1.0)),
                    dlse = save("dlse.npy", {1, 12}, std::vector<double>(12, 1.0), DType::F32);
  const Words more = {"--cu-seqlens-q", cuQ, "--cu-seqlens-k", cuK, "--sink", sink};
  const Outcome o =
      both({"--q", q, "--k", k, "--v", v}, {"--do", ones, "--dlse", dlse, "--dsink", file("dsink.npy")}, more);
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const std::vector<double> dv = valuesOf(file("dv.npy")), dsink = valuesOf(file("dsink.npy"));
  ASSERT_EQ(dv.size(), 80u);
  for (std::size_t t = 0; t < 10; ++t) // 4 rows see 3 keys and the sink; none sees 2; 6 rows see 5 and the sink
    for (std::size_t c = 0; c < 8; ++c)
      EXPECT_NEAR(dv[t * 8 + c], t < 3 ? 1 : t < 5 ? 0 : 1, 2e-3) << t;
  ASSERT_EQ(dsink.size(), 1u);
  EXPECT_NEAR(dsink[0], 4.0 / 4 + 6.0 / 6, 1e-5); // the sink's share of each row, times dlse
  EXPECT_EQ(valuesOf(file("dq.npy")), std::vector<double>(96));
}

/// q = 0 and a one-hot v: the bias alone makes the probabilities, and o shows those that dropout keeps.
TEST_F(RunAttentionBackwardCliTest, BiasAndDropout) {
  constexpr std::uint64_t S = 9, H = 2, D = 16;
  std::vector<double> hot(S * H * D), bias = normals(H * S * S, 5), dO = normals(S * H * D, 6);
  for (std::uint64_t j = 0; j < S; ++j)
    for (std::uint64_t h = 0; h < H; ++h)
      hot[(j * H + h) * D + j] = 1;
  bias[3] = -INFINITY;
  const std::string zero = zeros("q.npy", {1, S, H, D}), biasFile = save("bias.npy", {1, H, S, S}, bias);
  bias = valuesOf(biasFile);
  const Outcome outcome =
      both({"--q", zero, "--k", zero, "--v", save("v.npy", {1, S, H, D}, hot)},
           {"--do", save("do.npy", {1, S, H, D}, dO), "--dbias", file("dbias.npy")},
           {"--bias", biasFile, "--dropout-p", "0.25", "--dropout-seed", "77", "--dropout-offset", "4294967297"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  Shape shape;
  const std::vector<double> o = valuesOf(file("o.npy")), dbias = valuesOf(file("dbias.npy"), &shape);
  EXPECT_EQ(shape, (Shape{1, H, S, S}));
  const kernels::Dropout dropout(0.25f, 77, 4294967297u);
  std::size_t dropped = 0;
  for (std::uint64_t h = 0; h < H; ++h)
    for (std::uint64_t i = 0; i < S; ++i) {
      const std::size_t row = (h * S + i) * S, at = (i * H + h) * D;
      double total = 0, delta = 0;
      for (std::uint64_t j = 0; j < S; ++j)
        total += std::exp(bias[row + j]);
      std::vector<double> kept;
      for (std::uint64_t j = 0; j < S; ++j) {
        const bool keeps = dropout.keeps(0, static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(i),
                                         static_cast<std::uint32_t>(j));
        dropped += !keeps;
        kept.push_back(keeps ? 1 / 0.75 : 0);
        const double share = std::exp(bias[row + j]) / total * kept[j];
        ASSERT_NEAR(o[at + j], share, 1e-3) << h << " " << i << " " << j;
        delta += share * dO[at + j];
      }
      for (std::uint64_t j = 0; j < S; ++j)
        ASSERT_NEAR(dbias[row + j], std::exp(bias[row + j]) / total * (kept[j] * dO[at + j] - delta), 2e-3)
            << h << " " << i << " " << j;
    }
  EXPECT_GT(dropped, 0u);
}

/// No queries: nothing adds to dk and dv.
TEST_F(RunAttentionBackwardCliTest, NoQueriesAndNoKeys) {
  const std::string none = zeros("none.npy", {2, 0, 2, 16}),
                    some = save("some.npy", {2, 200, 2, 16}, normals(12800, 1));
  Outcome o = both({"--q", none, "--k", some, "--v", some}, {"--do", none});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(valuesOf(file("dk.npy")), std::vector<double>(12800));
  EXPECT_EQ(valuesOf(file("dv.npy")), std::vector<double>(12800));
  o = both({"--q", some, "--k", none, "--v", none}, {"--do", some});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(valuesOf(file("dq.npy")), std::vector<double>(12800));
}

TEST_F(RunAttentionBackwardCliTest, WhatIsNotThere) {
  const std::string q = zeros("q.npy", {1, 8, 4, 16}), k = zeros("k.npy", {1, 8, 2, 16}),
                    lse = zeros("lse.npy", {1, 4, 8}, DType::F32), sink = zeros("sink.npy", {4}, DType::F32);
  const Words good = {"--q", q, "--k", k, "--v", k, "--o", q, "--lse", lse, "--do", q};
  const auto with = [&](const Words &more, const std::string &part) {
    Words words = good;
    words.insert(words.end(), more.begin(), more.end());
    refused(words, part);
  };
  refused({"--q", q, "--k", k, "--v", k, "--o", q, "--do", q}, "kernel 'attention_backward' needs --lse FILE.npy");
  refused({"--qkv", q}, "kernel 'attention_backward' has no parameter 'qkv'");
  with({"--layout", "bs3hd"}, "--layout bs3hd: there is no such choice");
  with({"--dsink", file("dsink.npy")}, "attention_backward: argument 'dsink' is given, but no sink is");
  with({"--sink", zeros("short.npy", {3}, DType::F32)}, "argument 'sink'");
  with({"--dbias", file("dbias.npy")}, "attention_backward: argument 'dbias' is given, but no bias is");
  with({"--bias", zeros("bias.npy", {1, 4, 8, 7}, DType::F32)}, "argument 'bias' has the extent 7 in dimension 3");
  with({"--dropout-p", "-0.5"}, "attention_backward: dropout_p = -0.5");
  with({"--dlse", zeros("dlse.npy", {1, 4, 7}, DType::F32)}, "argument 'dlse'");
  with({"--keys-block-n", "48"}, "attention_backward: keys_block_n = 48: a power of two from 16 to 256");
  with({"--queries-stages", "9"}, "attention_backward: queries_stages = 9: from 1 to 8");
  with({"--window", "-2,0"}, "window_left = -2");
  refused({"--q", q, "--k", k, "--v", k, "--o", k, "--lse", lse, "--do", q}, "argument 'o'");
  refused({"--q", q, "--k", k, "--v", k, "--o", q, "--lse", lse, "--do", k}, "argument 'do'");
  with({"--dtype", "e4m3"}, "kernel 'attention_backward' takes bf16, f16");
}

} // namespace
} // namespace kiln::test
