// `kiln run attention`: every named layout, results against float64, what one call compiles, and every way to get it
// wrong.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

/// q, k and v of a dense batch, by index; keys as many as queries.
struct Inputs {
  std::uint64_t B = 2, S = 9, H = 4, Hk = 2, D = 16;
  std::vector<double> q, k, v;
  Inputs(std::uint64_t heads, std::uint64_t keyHeads) : H(heads), Hk(keyHeads) {
    q = normals(B * S * H * D, 1), k = normals(B * S * Hk * D, 2), v = normals(B * S * Hk * D, 3);
  }
  double of(char tensor, std::uint64_t b, std::uint64_t s, std::uint64_t h, std::uint64_t d) const {
    const std::uint64_t heads = tensor == 'q' ? H : Hk;
    return (tensor == 'q' ? q : tensor == 'k' ? k : v)[((b * S + s) * heads + h) * D + d];
  }
};

class RunAttentionCliTest : public CachedCliTest {
protected:
  std::string save(const std::string &name, DType type, const Shape &shape, const std::vector<double> &values) {
    return saveArray(file(name), type, shape, values);
  }
  std::string zeros(const std::string &name, const Shape &shape, DType type = DType::F16) {
    return saveZeros(file(name), type, shape);
  }

  /// A file of the inputs with these axes (AttentionLayouts.h); `own`: the tensor, where the axes do not say.
  std::string saveAxes(const std::string &name, const Inputs &in, const std::string &axes, char own) {
    const std::uint64_t heads = own == 'q' ? in.H : in.Hk, g = in.H / in.Hk;
    Shape shape;
    for (const char a : axes)
      shape.push_back(a == 'b'   ? in.B
                      : a == 's' ? in.S
                      : a == 't' ? in.B * in.S
                      : a == 'h' ? heads
                      : a == 'd' ? in.D
                      : a == 'f' ? in.H + 2 * in.Hk
                      : a == 'g' ? in.Hk
                      : a == 'm' ? g + 2
                                 : static_cast<std::uint64_t>(a - '0'));
    std::size_t n = 1;
    for (const std::uint64_t e : shape)
      n *= e;
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t b = 0, s = 0, h = 0, d = 0, rest = i;
      char tensor = own;
      for (std::size_t x = axes.size(); x-- > 0; rest /= shape[x]) {
        const std::uint64_t at = rest % shape[x];
        switch (axes[x]) {
        case 'b':
          b = at;
          break;
        case 's':
          s = at;
          break;
        case 't':
          b = at / in.S, s = at % in.S;
          break;
        case 'h':
          h = at;
          break;
        case 'd':
          d = at;
          break;
        case '3':
          tensor = "qkv"[at];
          break;
        case '2':
          tensor = "kv"[at];
          break;
        case 'f': // heads of q, of k, of v
          tensor = at < in.H ? 'q' : at < in.H + in.Hk ? 'k' : 'v';
          h = at < in.H ? at : (at - in.H) % in.Hk;
          break;
        case 'm': // the group's queries, its key, its value; after 'g', which comes later here
          tensor = at < g ? 'q' : at == g ? 'k' : 'v';
          h = at < g ? at : 0;
          break;
        case 'g':
          h = tensor == 'q' ? at * g + h : at;
          break;
        }
      }
      values[i] = in.of(tensor, b, s, h, d);
    }
    return save(name, DType::F16, shape, values);
  }

  Outcome run(Words words) {
    words.insert(words.begin(), {"run", "attention", "--target", "sm_80"});
    return kiln(words);
  }

  /// o by index of the first tensor's axes, and lse by [B, H, S].
  struct Results {
    std::vector<double> o, lse;
  };
  Results results(const Inputs &in, const std::string &axes) {
    Shape oShape, lseShape;
    const std::vector<double> o = valuesOf(file("o.npy"), &oShape), lse = valuesOf(file("lse.npy"), &lseShape);
    Results out{std::vector<double>(in.q.size()), std::vector<double>(in.B * in.H * in.S)};
    const bool packed = axes[0] == 't';
    const Shape wanted = packed           ? Shape{in.B * in.S, in.H, in.D}
                         : axes == "bshd" ? Shape{in.B, in.S, in.H, in.D}
                         : axes == "sbhd" ? Shape{in.S, in.B, in.H, in.D}
                                          : Shape{in.B, in.H, in.S, in.D};
    EXPECT_EQ(oShape, wanted);
    EXPECT_EQ(lseShape, packed ? (Shape{in.H, in.B * in.S}) : (Shape{in.B, in.H, in.S}));
    if (oShape != wanted || lse.size() != out.lse.size())
      return out;
    for (std::uint64_t b = 0; b < in.B; ++b)
      for (std::uint64_t s = 0; s < in.S; ++s)
        for (std::uint64_t h = 0; h < in.H; ++h) {
          const std::uint64_t row = packed || axes == "bshd" ? (b * in.S + s) * in.H + h
                                    : axes == "sbhd"         ? (s * in.B + b) * in.H + h
                                                             : (b * in.H + h) * in.S + s;
          for (std::uint64_t d = 0; d < in.D; ++d)
            out.o[((b * in.S + s) * in.H + h) * in.D + d] = o[row * in.D + d];
          out.lse[(b * in.H + h) * in.S + s] = lse[packed ? h * in.B * in.S + b * in.S + s : (b * in.H + h) * in.S + s];
        }
    return out;
  }

  /// Runs a layout whose tensors have these axes.
  Results runLayout(const std::string &name, const Inputs &in, const Words &axes, Words more = {}) {
    more.insert(more.end(), {"--layout", name, "--causal", "--output", file("o.npy"), "--lse", file("lse.npy")});
    const Words options = axes.size() == 1 ? Words{"qkv"} : axes.size() == 2 ? Words{"q", "kv"} : Words{"q", "k", "v"};
    for (std::size_t i = 0; i < axes.size(); ++i)
      more.insert(more.end(), {"--" + options[i], saveAxes(options[i] + ".npy", in, axes[i], options[i][0])});
    if (axes.front()[0] == 't')
      more.insert(more.end(), {"--cu-seqlens-q", save("cu.npy", DType::I64, {3}, {0, 9, 18})});
    if (axes.back()[0] == 't')
      more.insert(more.end(), {"--cu-seqlens-k", save("cu.npy", DType::I32, {3}, {0, 9, 18})});
    const Outcome o = run(more);
    EXPECT_EQ(o.status, 0) << name << ": " << o.out << o.err;
    std::string order = axes.front();
    std::erase(order, '3');
    std::erase(order, 'm');
    std::replace(order.begin(), order.end(), 'f', 'h');
    std::replace(order.begin(), order.end(), 'g', 'h');
    return o.status ? Results{} : results(in, order);
  }

  void refused(Words words, const std::string &part) {
    words.insert(words.begin(), {"run", "attention", "--target", "sm_80"});
    words.insert(words.end(), {"--output", file("o.npy")});
    expectRefused(words, part);
  }
};

TEST_F(RunAttentionCliTest, AgreesWithFloat64) {
  const Inputs in(4, 2);
  const Results got = runLayout("bshd_bshd_bshd", in, {"bshd", "bshd", "bshd"});
  ASSERT_EQ(got.o.size(), in.q.size());
  for (std::uint64_t b = 0; b < in.B; ++b)
    for (std::uint64_t h = 0; h < in.H; ++h)
      for (std::uint64_t i = 0; i < in.S; ++i) {
        double total = 0;
        std::vector<double> weights;
        for (std::uint64_t j = 0; j <= i; ++j) {
          double x = 0;
          for (std::uint64_t d = 0; d < in.D; ++d)
            x += in.of('q', b, i, h, d) * in.of('k', b, j, h / 2, d);
          weights.push_back(std::exp(x / 4)); // 1 / sqrt(16)
          total += weights.back();
        }
        EXPECT_NEAR(got.lse[(b * in.H + h) * in.S + i], std::log(total), 1e-4);
        for (std::uint64_t d = 0; d < in.D; ++d) {
          double o = 0;
          for (std::uint64_t j = 0; j <= i; ++j)
            o += weights[j] / total * in.of('v', b, j, h / 2, d);
          ASSERT_NEAR(got.o[((b * in.S + i) * in.H + h) * in.D + d], o, 2e-3);
        }
      }
}

/// The same numbers from every layout, bit by bit.
TEST_F(RunAttentionCliTest, EveryNamedLayout) {
  const Inputs grouped(4, 2), even(3, 3);
  const Results wanted = runLayout("bshd_bshd_bshd", grouped, {"bshd", "bshd", "bshd"}),
                wantedEven = runLayout("bshd_bshd_bshd", even, {"bshd", "bshd", "bshd"});
  ASSERT_FALSE(wanted.o.empty() || wantedEven.o.empty());
  const auto same = [&](const std::string &name, const Words &axes, const Words &more = {}) {
    const bool oneHeadCount = name.find('3') != std::string::npos;
    const Results got = runLayout(name, oneHeadCount ? even : grouped, axes, more),
                  &want = oneHeadCount ? wantedEven : wanted;
    EXPECT_EQ(got.o, want.o) << name;
    EXPECT_EQ(got.lse, want.lse) << name;
  };
  for (const std::string order : {"sbhd", "bhsd", "thd"})
    same(order + "_" + order + "_" + order, {order, order, order});
  for (const auto &[q, kv] : std::vector<std::pair<std::string, std::string>>{
           {"sbhd", "bshd"}, {"bshd", "sbhd"}, {"thd", "bshd"}, {"thd", "sbhd"}})
    same(q + "_" + kv + "_" + kv, {q, kv, kv});
  for (const std::string rows : {"bs", "sb", "t"}) {
    same(rows + "3hd", {rows + "3hd"});
    same(rows + "h3d", {rows + "h3d"});
    same(rows + "hd_" + rows + "2hd", {rows + "hd", rows + "2hd"});
    same(rows + "hd_" + rows + "h2d", {rows + "hd", rows + "h2d"});
    const std::string prefix = rows == "sb" ? "" : rows + "_";
    same(prefix + "flat_gqa", {rows + "fd"}, {"--heads", "4,2"});
    same(prefix + "grouped_gqa", {rows + "gmd"});
  }
}

TEST_F(RunAttentionCliTest, OneCallCompilesOneKernel) {
  Words words = {"--q",
                 zeros("q.npy", {1, 40, 4, 32}),
                 "--k",
                 zeros("k.npy", {1, 50, 2, 32}),
                 "--v",
                 zeros("v.npy", {1, 50, 2, 24}),
                 "--causal",
                 "--align",
                 "top_left",
                 "--window",
                 "20,-1",
                 "--softcap",
                 "30",
                 "--scale",
                 "0.5",
                 "--sink",
                 zeros("sink.npy", {4}, DType::F32),
                 "--alibi",
                 zeros("alibi.npy", {1, 4}, DType::F32),
                 "--seqused-k",
                 save("used.npy", DType::I64, {1}, {33}),
                 "--output",
                 file("o.npy"),
                 "--lse",
                 file("lse.npy"),
                 "--json"};
  for (const int compiles : {1, 0}) {
    const Outcome o = run(words);
    ASSERT_EQ(o.status, 0) << o.out << o.err;
    const auto j = nlohmann::json::parse(o.out);
    EXPECT_EQ(j["compiles"], compiles);
    EXPECT_EQ(j["size"], "B1 S40,50 H4/2 D32,24 causal window 20,-1");
    EXPECT_EQ(j["outputs"].size(), 2u);
  }
  words.insert(words.end(), {"--dtype", "bf16"});
  const auto j = nlohmann::json::parse(run(words).out);
  EXPECT_EQ(j["status"], 0) << j.dump();
  EXPECT_EQ(j["outputs"][1]["dtype"], "bfloat16");
}

/// With q = 0 every visible key counts once: lse is the logarithm of their number.  Rows that no sequence uses: 0, and
/// minus infinity.
TEST_F(RunAttentionCliTest, PackedSequencesAndRowsThatAreNotUsed) {
  const std::vector<double> ones(10 * 8, 1.0);
  const Outcome o = run(
      {"--q", zeros("q.npy", {12, 1, 8}), "--k", save("k.npy", DType::F16, {10, 1, 8}, ones), "--v",
       save("v.npy", DType::F16, {10, 1, 8}, ones), "--cu-seqlens-q", save("cuq.npy", DType::I64, {4}, {0, 4, 4, 10}),
       "--cu-seqlens-k", save("cuk.npy", DType::I32, {4}, {0, 3, 5, 10}), "--seqused-q",
       save("usedq.npy", DType::I32, {3}, {2, 0, 6}), "--seqused-k", save("usedk.npy", DType::I32, {3}, {3, 2, 0}),
       "--output", file("o.npy"), "--lse", file("lse.npy")});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const std::vector<double> out = valuesOf(file("o.npy")), lse = valuesOf(file("lse.npy"));
  ASSERT_EQ(lse.size(), 12u);
  for (std::size_t t = 0; t < 12; ++t) {
    if (t < 2) // of the first sequence, which has 3 keys
      EXPECT_NEAR(lse[t], std::log(3), 1e-6) << t;
    else // not used, or of the last sequence, which has no key
      EXPECT_EQ(lse[t], -INFINITY) << t;
    for (std::size_t d = 0; d < 8; ++d)
      EXPECT_EQ(out[t * 8 + d], t < 2 ? 1 : 0) << t;
  }
}

/// Nothing to compute: no launch, files without elements; no keys: every row is empty.
TEST_F(RunAttentionCliTest, NoQueriesAndNoKeys) {
  const std::string none = zeros("none.npy", {2, 0, 2, 16}), some = zeros("some.npy", {2, 5, 2, 16});
  Outcome o = run({"--q", none, "--k", some, "--v", some, "--output", file("o.npy"), "--lse", file("lse.npy")});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  Shape shape;
  EXPECT_TRUE(valuesOf(file("o.npy"), &shape).empty());
  EXPECT_EQ(shape, (Shape{2, 0, 2, 16}));
  o = run({"--q", some, "--k", none, "--v", none, "--output", file("o.npy"), "--lse", file("lse.npy")});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(valuesOf(file("o.npy")), std::vector<double>(2 * 5 * 2 * 16));
  EXPECT_EQ(valuesOf(file("lse.npy")), std::vector<double>(2 * 2 * 5, -INFINITY));
}

TEST_F(RunAttentionCliTest, WhatIsNotThere) {
  const std::string q = zeros("q.npy", {1, 8, 4, 16}), k = zeros("k.npy", {1, 8, 2, 16}),
                    qkv = zeros("qkv.npy", {1, 8, 3, 4, 16});
  refused({}, "needs q, k and v; or q and kv; or qkv; given: none");
  refused({"--q", q, "--k", k}, "given: q, k (give --q, --k and --v;");
  refused({"--q", q, "--qkv", qkv}, "given: q, qkv");
  refused({"--qkv", qkv, "--dropout", "0.1"}, "kernel 'attention' has no parameter 'dropout' (its parameters are --q");
  refused({"--qkv", qkv, "--page-table", k}, "has no parameter 'page-table'");
  refused({"--qkv", qkv, "--layout", "bs4hd"}, "--layout bs4hd: there is no such choice");
  refused({"--qkv", qkv, "--layout", "paged_kv_bshd_bshd_bshd"},
          "--layout paged_kv_bshd_bshd_bshd: there is no such choice");
  refused({"--qkv", qkv, "--layout", "bshd_bshd_bshd"}, "takes 3 tensors, 1 was given");
  refused({"--qkv", qkv, "--causal=1"}, "--causal=1: it has no value");
  refused({"--qkv", qkv, "--causal", "--causal"}, "--causal was given twice");
  refused({"--qkv", qkv, "--lse", file("o.npy")}, "two outputs are written to");
  refused({"--qkv", file("none.npy")}, "none.npy");
  refused({"--qkv", qkv, "--block-m", "48"}, "attention: block_m = 48: a power of two from 16 to 256");
  refused({"--qkv", qkv, "--warps", "3"}, "attention: warps = 3");
  refused({"--qkv", qkv, "--stages", "9"}, "attention: stages = 9: from 1 to 8");
  const std::string layer = zeros("layer.npy", {1, 8, 3, 1, 128});
  refused({"--qkv", layer, "--block-n", "256", "--stages", "4"},
          "need 524288 bytes of shared memory; a block of emulator:sm_80 has 166912 (give smaller tiles, or 1 stage");
}

TEST_F(RunAttentionCliTest, Shapes) {
  const std::string q = zeros("q.npy", {2, 8, 4, 16}), k = zeros("k.npy", {2, 8, 2, 16});
  const auto three = [&](const std::string &a, const std::string &b, const std::string &c, const std::string &part) {
    refused({"--q", a, "--k", b, "--v", c}, part);
  };
  three(q, zeros("f32.npy", {2, 8, 2, 16}, DType::F32), k,
        "f32.npy: the file holds f32; kernel 'attention' takes bf16, f16");
  three(zeros("q32.npy", {2, 8, 4, 16}, DType::F32), k, k,
        "q32.npy: the file holds f32; kernel 'attention' takes bf16, f16");
  three(zeros("q12.npy", {2, 8, 4, 12}), k, k, "argument 'q' has the head dim 12: a multiple of 8 from 8 to 256");
  three(zeros("q264.npy", {2, 8, 4, 264}), k, k, "argument 'q' has the head dim 264");
  three(q, k, zeros("v20.npy", {2, 8, 2, 20}), "argument 'v' has the head dim 20");
  three(q, zeros("k24.npy", {2, 8, 2, 24}), k, "the head dim of q");
  three(q, zeros("k3.npy", {2, 8, 3, 16}), zeros("v3.npy", {2, 8, 3, 16}),
        "q has 4 heads, k 3: the first must be a multiple");
  three(q, zeros("k0.npy", {2, 8, 0, 16}), k, "q has 4 heads, k 0");
  three(q, k, zeros("v1.npy", {2, 8, 1, 16}), "the heads of k");
  three(q, k, zeros("v7.npy", {2, 7, 2, 16}), "the rows of k");
  three(q, zeros("kb.npy", {1, 8, 2, 16}), k, "the batch of q");
  three(zeros("wide.npy", {2, 8, 1ull << 33, 0}), k, k, "argument 'q' has an extent of 8589934592; the limit is 2^30");
  three(zeros("q3.npy", {8, 4, 16}), k, k,
        "argument 'q' has the shape [8, 4, 16], in layout bshd_bshd_bshd its axes are bshd");
  refused({"--q", q, "--kv", zeros("kv.npy", {2, 8, 3, 2, 16})}, "dimension 2 must be 2");
  const std::string flat = zeros("flat.npy", {8, 2, 8, 16});
  refused({"--qkv", flat, "--heads", "5,2"}, "argument 'qkv' has the shape [8, 2, 8, 16], in layout flat_gqa its axes "
                                             "are sbfd: dimension 2 must be 5 + 2 x 2 heads");
  refused({"--qkv", flat, "--heads", "4"}, "--heads 4: expected 2 numbers with commas between");
  refused({"--qkv", flat, "--heads", "4,2.5"}, "key_heads = 2.5 (give a whole number)");
  refused({"--qkv", flat, "--heads", "3,2.5e300"}, "give a whole number");
  refused({"--qkv", flat, "--heads", "2,3"}, "q has 2 heads, k 3");
  refused({"--qkv", flat, "--layout", "flat_gqa"}, "needs the numbers of heads");
}

TEST_F(RunAttentionCliTest, Options) {
  const std::string qkv = zeros("qkv.npy", {2, 8, 3, 4, 16});
  const auto option = [&](Words words, const std::string &part) {
    words.insert(words.begin(), {"--qkv", qkv});
    refused(words, part);
  };
  option({"--window", "-2,0"}, "window_left = -2");
  option({"--window", "3,4294967296"}, "window_right = 4294967296");
  option({"--window", "3"}, "--window 3: expected 2 numbers");
  option({"--window", "3,x"}, "--window 3,x: expected 2 numbers");
  option({"--align", "middle"}, "--align middle: there is no such choice");
  option({"--position-offset", "-1"}, "position_offset = -1: 0 to 2^28");
  option({"--position-offset", "1.5"}, "position_offset = 1.5");
  option({"--softcap", "-1"}, "softcap = -1");
  option({"--softcap", "inf"}, "softcap = inf");
  option({"--scale", "0"}, "scale = 0");
  option({"--scale", "-0.5"}, "scale = -0.5");
  option({"--scale", "nan"}, "scale = nan");
  option({"--sink", zeros("sink.npy", {3}, DType::F32)}, "argument 'sink'");
  option({"--alibi", zeros("alibi.npy", {3, 4}, DType::F32)}, "argument 'alibi'");
  option({"--bias", zeros("bias3.npy", {4, 8, 8}, DType::F32)}, "argument 'bias' has rank 3");
  option({"--bias", zeros("bias.npy", {2, 3, 8, 8}, DType::F32)},
         "argument 'bias' has the extent 3 in dimension 1; it must be 1, or 4, the heads of q");
  option({"--bias", zeros("biasi.npy", {2, 4, 8, 8}, DType::I32)}, "argument 'bias'");
  option({"--dropout-p", "1"}, "dropout_p = 1: from 0 up, and below 1");
  option({"--dropout-p", "nan"}, "dropout_p = nan");
  option({"--dropout-seed", "-1"}, "dropout_seed = -1");
  option({"--dropout-offset", "0.5"}, "dropout_offset = 0.5");
  option({"--seqused-k", save("long.npy", DType::I32, {3}, {1, 1, 1})},
         "argument 'seqused_k' has 3 entries; a batch of 2 needs 2");
  option({"--seqused-k", save("most.npy", DType::I32, {2}, {1, 9})}, "seqused_k[1] = 9: the sequence has 8 rows");
  option({"--seqused-q", save("minus.npy", DType::I32, {2}, {-1, 8})}, "seqused_q[0] = -1: the sequence has 8 rows");
  option({"--seqused-q", save("floats.npy", DType::F32, {2}, {1, 1})}, "which is not converted to i32");
  option({"--cu-seqlens-k", save("cu.npy", DType::I32, {3}, {0, 8, 16})},
         "layout bs3hd, the usual one without cu_seqlens_q, takes no cu_seqlens_k");
}

TEST_F(RunAttentionCliTest, Offsets) {
  const std::string q = zeros("q.npy", {16, 4, 16}), k = zeros("k.npy", {16, 2, 16});
  const std::string good = save("good.npy", DType::I32, {3}, {0, 8, 16});
  unsigned number = 0;
  const auto offsets = [&](const std::vector<double> &ofQ, const std::string &part, DType type = DType::I64) {
    refused({"--q", q, "--k", k, "--v", k, "--cu-seqlens-k", good, "--cu-seqlens-q",
             save("cu" + std::to_string(number++) + ".npy", type, {ofQ.size()}, ofQ)},
            part);
  };
  offsets({0, 8}, "arguments 'cu_seqlens_q' and 'cu_seqlens_k' have 2 and 3 offsets");
  offsets({}, "argument 'cu_seqlens_q' is empty");
  offsets({1, 8, 16}, "cu_seqlens_q[0] = 1: the first offset must be 0");
  offsets({0, 9, 8}, "cu_seqlens_q[2] = 8: below the offset before it, 9");
  offsets({0, -1, 8}, "cu_seqlens_q[1] = -1: below the offset before it, 0");
  offsets({0, 8, 17}, "cu_seqlens_q[2] = 17: the tensor has 16 rows");
  offsets({0, 8, 4294967312.0}, "element 2 is 4294967312, which does not fit 32 bits");
  offsets({0, 8, 16}, "which is not converted to i32", DType::F32);
  refused({"--q", q, "--k", k, "--v", k, "--cu-seqlens-q", good},
          "layout thd_thd_thd, which cu_seqlens_q stands for, needs cu_seqlens_k");
  refused({"--q", q, "--k", k, "--v", k, "--cu-seqlens-k", good},
          "layout bshd_bshd_bshd, the usual one without cu_seqlens_q, takes no cu_seqlens_k");
  refused({"--q", q, "--k", k, "--v", k, "--layout", "thd_thd_thd"}, "layout thd_thd_thd needs cu_seqlens_q");
  refused({"--q", q, "--k", k, "--v", k, "--cu-seqlens-k", good, "--cu-seqlens-q",
           save("square.npy", DType::I32, {3, 1}, {0, 8, 16})},
          "'cu_seqlens_q' has rank 2");
}

} // namespace
} // namespace kiln::test
