//===- AttentionTest.cpp - Attention forward against float64, and the mask probe -===//
//
// The tolerance is the specification's (section 10): with `base` the same mathematics in the working type,
//   max |x - ref| <= f max |base - ref| + a,  mean |x - ref| <= 1.5 mean |base - ref| + a / 8,
// a = 2 u max |ref| + 1e-5, u = 2^-9 (bf16), 2^-12 (f16), f = 2, with softcap 3; lse within 1e-4 + 1e-5 |lse|, with
// softcap 1e-3 softcap.  Random numbers cannot see one wrong key among hundreds; the probe does: q = 0, v one-hot, so
// lse is the logarithm of the number of visible keys and o counts them by class.
//
//===----------------------------------------------------------------------===//
#include "kernels/attention/AttentionOperation.h"
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <cstring>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;
using Numbers = std::vector<double>;

constexpr std::byte poison{0xCD};

struct Held {
  std::unique_ptr<Buffer> buffer;
  Tensor tensor;
};

/// One call, dense or packed.
struct Problem {
  DType type = DType::Bf16;
  std::int64_t batch = 1, queries = 64, keys = 64, heads = 2, keyHeads = 2, dim = 64, dimV = 64;
  bool causal = false;
  std::int64_t left = -1, right = -1;
  Alignment alignment = Alignment::BottomRight;
  float softcap = 0, scale = 0; ///< scale 0: the default
  bool sink = false, alibi = false;
  std::vector<std::int64_t> lengthsQ = {}, lengthsK = {}; ///< packed: of each sequence
  std::vector<std::int64_t> usedQ = {}, usedK = {};
  std::vector<unsigned> order = {0, 1, 2, 3}; ///< of the dense tensors' dimensions in memory, outermost first
  std::string text() const {
    const auto n = [](auto v) { return std::to_string(v); };
    std::string out = std::string(dtypeName(type)) + " B" + n(batch) + " Sq" + n(queries) + " Sk" + n(keys) + " H" +
                      n(heads) + "/" + n(keyHeads) + " D" + n(dim) + "/" + n(dimV);
    out += (causal ? " causal" : "") + std::string(" window ") + n(left) + "," + n(right);
    out += alignment == Alignment::TopLeft ? " top_left" : "";
    out += softcap > 0 ? " softcap " + n(softcap) : "";
    out += std::string(sink ? " sink" : "") + (alibi ? " alibi" : "") + (lengthsQ.empty() ? "" : " packed");
    return out + (usedQ.empty() ? "" : " used_q") + (usedK.empty() ? "" : " used_k");
  }
  bool packed() const { return !lengthsQ.empty(); }
};

double rounded(double v, DType type) {
  const FloatFormat &f = *dtypeFloatFormat(type);
  return decodeFloat(encodeFloat(v, f), f);
}

class AttentionForward : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
  }

  /// In the default tier each device takes another sample: every `stride`-th case.
  static bool chosen(unsigned number, unsigned stride) {
    return isFullTier() || number % stride == GetParam() * 3 % stride;
  }

  Held upload(DType type, const std::vector<std::int64_t> &shape, const Numbers &values,
              std::vector<unsigned> order = {}) {
    const std::size_t rank = shape.size();
    std::vector<std::int64_t> strides(rank);
    if (order.size() != rank) {
      order.clear();
      for (unsigned d = 0; d < rank; ++d)
        order.push_back(d);
    }
    std::int64_t n = 1;
    for (std::size_t i = rank; i-- > 0; n *= shape[order[i]])
      strides[order[i]] = n;
    const unsigned bytes = dtypeBytes(type);
    std::vector<std::byte> data(static_cast<std::size_t>(n) * bytes, poison);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int64_t at = 0;
      auto rest = static_cast<std::int64_t>(i);
      for (std::size_t d = rank; d-- > 0; rest /= shape[d])
        at += rest % shape[d] * strides[d];
      std::byte *p = &data[static_cast<std::size_t>(at) * bytes];
      if (const FloatFormat *f = dtypeFloatFormat(type)) {
        const std::uint32_t code = encodeFloat(values[i], *f);
        std::memcpy(p, &code, bytes);
      } else if (type == DType::I32) {
        const auto v = static_cast<std::int32_t>(values[i]);
        std::memcpy(p, &v, 4);
      } else {
        const auto v = static_cast<float>(values[i]);
        std::memcpy(p, &v, 4);
      }
    }
    Held out;
    auto made = on->device->allocate(std::max<std::size_t>(data.size(), 16));
    EXPECT_TRUE(made.ok());
    out.buffer = std::move(*made);
    EXPECT_TRUE(out.buffer->copyFromHost(0, data).ok());
    auto tensor = Tensor::strided(*on->device, *out.buffer, type, shape, strides);
    EXPECT_TRUE(tensor.ok()) << tensor.status().toString();
    if (tensor)
      out.tensor = *tensor;
    return out;
  }

  Numbers download(const Held &h) {
    std::vector<std::byte> bytes(h.buffer->size());
    EXPECT_TRUE(h.buffer->copyToHost(0, bytes).ok());
    Numbers out;
    const unsigned size = dtypeBytes(h.tensor.dtype);
    for (std::int64_t i = 0; i < h.tensor.elements(); ++i) {
      std::int64_t at = 0, rest = i;
      for (unsigned d = h.tensor.rank; d-- > 0; rest /= h.tensor.shape[d])
        at += rest % h.tensor.shape[d] * h.tensor.strides[d];
      std::uint32_t code = 0;
      std::memcpy(&code, &bytes[static_cast<std::size_t>(at) * size], size);
      const FloatFormat *f = dtypeFloatFormat(h.tensor.dtype);
      float single;
      std::memcpy(&single, &code, 4);
      out.push_back(f ? decodeFloat(code, *f) : static_cast<double>(single));
    }
    return out;
  }

  struct Data {
    Numbers q, k, v, sink, alibi;
  };
  struct Results {
    Numbers o, lse;
  };

  std::int64_t rowsQ(const Problem &p) const { return p.packed() ? sum(p.lengthsQ) : p.batch * p.queries; }
  std::int64_t rowsK(const Problem &p) const { return p.packed() ? sum(p.lengthsK) : p.batch * p.keys; }
  static std::int64_t sum(const std::vector<std::int64_t> &v) {
    std::int64_t n = 0;
    for (const std::int64_t e : v)
      n += e;
    return n;
  }

  Data randomData(const Problem &p) {
    Data d;
    std::normal_distribution<double> normal;
    const auto fill = [&](Numbers &to, std::int64_t n, double factor = 1) {
      for (std::int64_t i = 0; i < n; ++i)
        to.push_back(rounded(normal(random) * factor, p.type));
    };
    fill(d.q, rowsQ(p) * p.heads * p.dim, p.softcap > 0 ? 2 * p.softcap : 1); // so that scores reach the cap
    fill(d.k, rowsK(p) * p.keyHeads * p.dim);
    fill(d.v, rowsK(p) * p.keyHeads * p.dimV);
    for (std::int64_t h = 0; h < p.heads; ++h) {
      d.sink.push_back(normal(random));
      d.alibi.push_back(std::ldexp(1, -static_cast<int>(h) - 1));
    }
    return d;
  }

  /// The definition, in float64, `round`ed after every step (identity: the reference).
  template <typename Round> Results define(const Problem &p, const Data &d, Round round) {
    Results out;
    out.o.assign(static_cast<std::size_t>(rowsQ(p) * p.heads * p.dimV), NAN); // NaN: not to be written
    out.lse.assign(static_cast<std::size_t>(rowsQ(p) * p.heads), NAN);
    const double scale = p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim));
    std::int64_t q0 = 0, k0 = 0;
    const std::int64_t sequences = p.packed() ? std::ssize(p.lengthsQ) : p.batch;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const std::int64_t capQ = p.packed() ? p.lengthsQ[b] : p.queries, capK = p.packed() ? p.lengthsK[b] : p.keys;
      const std::int64_t Q = p.usedQ.empty() ? capQ : p.usedQ[b], K = p.usedK.empty() ? capK : p.usedK[b];
      const std::int64_t shift = p.alignment == Alignment::BottomRight ? K - Q : 0, right = p.causal ? 0 : p.right;
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < Q; ++i) {
          const std::int64_t kh = h / (p.heads / p.keyHeads), at = i + shift;
          Numbers z;
          double most = -INFINITY;
          for (std::int64_t j = 0; j < K; ++j) {
            double x = 0;
            for (std::int64_t c = 0; c < p.dim; ++c)
              x += d.q[static_cast<std::size_t>(((q0 + i) * p.heads + h) * p.dim + c)] *
                   round(d.k[static_cast<std::size_t>(((k0 + j) * p.keyHeads + kh) * p.dim + c)] * scale);
            x = round(x);
            if (p.softcap > 0)
              x = round(p.softcap * std::tanh(x / p.softcap));
            if (p.alibi)
              x = round(x - d.alibi[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(at - j)));
            if ((right >= 0 && j > at + right) || (p.left >= 0 && j < at - p.left))
              x = -INFINITY;
            z.push_back(x);
            most = std::max(most, x);
          }
          if (p.sink)
            most = std::max(most, d.sink[static_cast<std::size_t>(h)]);
          const double base = most == -INFINITY ? 0 : most;
          double total = p.sink ? std::exp(d.sink[static_cast<std::size_t>(h)] - base) : 0;
          for (double &e : z)
            total += e = std::exp(e - base);
          // lse of a packed call is [H, T], of a dense one [B, H, Sq].
          const std::int64_t row = p.packed() ? h * rowsQ(p) + q0 + i : (b * p.heads + h) * p.queries + i;
          out.lse[static_cast<std::size_t>(row)] = total == 0 ? -INFINITY : base + std::log(total);
          for (std::int64_t c = 0; c < p.dimV; ++c) {
            double o = 0;
            for (std::int64_t j = 0; j < K; ++j)
              o += round(z[static_cast<std::size_t>(j)] / (total == 0 ? 1 : total)) *
                   d.v[static_cast<std::size_t>(((k0 + j) * p.keyHeads + kh) * p.dimV + c)];
            out.o[static_cast<std::size_t>(((q0 + i) * p.heads + h) * p.dimV + c)] = round(o);
          }
        }
      q0 += capQ;
      k0 += capK;
    }
    return out;
  }

  Results run(const Problem &p, const Data &d) {
    const auto shape = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      return p.packed() ? std::vector<std::int64_t>{rows, heads, dim}
                        : std::vector<std::int64_t>{p.batch, rows / p.batch, heads, dim};
    };
    const auto order = p.packed() ? std::vector<unsigned>{} : p.order;
    const Held q = upload(p.type, shape(rowsQ(p), p.heads, p.dim), d.q, order),
               k = upload(p.type, shape(rowsK(p), p.keyHeads, p.dim), d.k, order),
               v = upload(p.type, shape(rowsK(p), p.keyHeads, p.dimV), d.v, order),
               o = upload(p.type, shape(rowsQ(p), p.heads, p.dimV), {}, order),
               lse = upload(DType::F32,
                            p.packed() ? std::vector<std::int64_t>{p.heads, rowsQ(p)}
                                       : std::vector<std::int64_t>{p.batch, p.heads, p.queries},
                            {});
    (void)o.buffer->poison(poison);
    (void)lse.buffer->poison(poison);
    AttentionArguments a;
    a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.o = o.tensor;
    a.lse = lse.tensor;
    if (p.scale > 0)
      a.scale = p.scale;
    a.causal = p.causal, a.windowLeft = p.left, a.windowRight = p.right, a.alignment = p.alignment;
    a.softcap = p.softcap;
    std::vector<Held> more;
    const auto given = [&](std::optional<Tensor> &to, DType type, const Numbers &values) {
      more.push_back(upload(type, {std::ssize(values)}, values));
      to = more.back().tensor;
    };
    if (p.sink)
      given(a.sink, DType::F32, d.sink);
    if (p.alibi)
      given(a.alibi, DType::F32, d.alibi);
    if (p.packed()) {
      const auto starts = [](const std::vector<std::int64_t> &lengths) {
        Numbers out = {0};
        for (const std::int64_t n : lengths)
          out.push_back(out.back() + static_cast<double>(n));
        return out;
      };
      given(a.cuQ, DType::I32, starts(p.lengthsQ));
      given(a.cuK, DType::I32, starts(p.lengthsK));
      a.maxQueries = *std::max_element(p.lengthsQ.begin(), p.lengthsQ.end());
    }
    if (!p.usedQ.empty())
      given(a.usedQ, DType::I32, Numbers(p.usedQ.begin(), p.usedQ.end()));
    if (!p.usedK.empty())
      given(a.usedK, DType::I32, Numbers(p.usedK.begin(), p.usedK.end()));
    AttentionOperation operation(*on->jit);
    const Status s = operation.run(a);
    EXPECT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.message;
    return {download(o), download(lse)};
  }

  /// Rows that are not to be written hold the poison still.
  static bool untouched(double got, DType type) {
    const FloatFormat *f = dtypeFloatFormat(type);
    float single;
    const std::uint32_t bits = 0xCDCDCDCD;
    std::memcpy(&single, &bits, 4);
    return got == (f ? decodeFloat(0xCDCD, *f) : static_cast<double>(single));
  }

  void compare(const Problem &p, const Data &d) {
    SCOPED_TRACE(deviceNames()[GetParam()] + ": " + p.text());
    const Results got = run(p, d), want = define(p, d, [](double v) { return v; }),
                  base = define(p, d, [&](double v) { return rounded(v, p.type); });
    double most = 0, worst = 0, worstBase = 0, total = 0, totalBase = 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < got.o.size(); ++i) {
      if (std::isnan(want.o[i])) {
        ASSERT_TRUE(untouched(got.o[i], p.type)) << "row that is not used, element " << i;
        continue;
      }
      const double e = std::abs(got.o[i] - want.o[i]), b = std::abs(base.o[i] - want.o[i]);
      ASSERT_FALSE(std::isnan(e)) << "element " << i;
      most = std::max(most, std::abs(want.o[i])), worst = std::max(worst, e), worstBase = std::max(worstBase, b);
      total += e, totalBase += b, ++n;
    }
    const double u = std::ldexp(1, p.type == DType::Bf16 ? -9 : -12), a = 2 * u * most + 1e-5,
                 f = p.softcap > 0 ? 3 : 2;
    EXPECT_LE(worst, f * worstBase + a);
    EXPECT_LE(total, 1.5 * totalBase + static_cast<double>(n) * a / 8);
    for (std::size_t i = 0; i < got.lse.size(); ++i) {
      if (std::isnan(want.lse[i]))
        ASSERT_TRUE(untouched(got.lse[i], DType::F32)) << "lse of a row that is not used, " << i;
      else if (want.lse[i] == -INFINITY)
        ASSERT_EQ(got.lse[i], want.lse[i]) << i;
      else
        ASSERT_NEAR(got.lse[i], want.lse[i], (p.softcap > 0 ? 1e-3 * p.softcap : 1e-4) + 1e-5 * std::abs(want.lse[i]))
            << i;
    }
  }

  /// q = 0, v[j][c] = 1 where (j + by) mod Dv is c: every visible key counts once.
  void probe(const Problem &p, std::int64_t by) {
    SCOPED_TRACE("probe " + std::to_string(by) + ", " + deviceNames()[GetParam()] + ": " + p.text());
    Data d = randomData(p);
    std::fill(d.q.begin(), d.q.end(), 0.0);
    std::fill(d.v.begin(), d.v.end(), 0.0);
    const std::int64_t sequences = p.packed() ? std::ssize(p.lengthsK) : p.batch;
    std::int64_t k0 = 0;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const std::int64_t K = p.packed() ? p.lengthsK[b] : p.keys;
      for (std::int64_t j = 0; j < K; ++j)
        for (std::int64_t h = 0; h < p.keyHeads; ++h)
          d.v[static_cast<std::size_t>(((k0 + j) * p.keyHeads + h) * p.dimV + (j + by) % p.dimV)] = 1;
      k0 += K;
    }
    const Results got = run(p, d), want = define(p, d, [](double v) { return v; });
    for (std::size_t i = 0; i < got.lse.size(); ++i) {
      if (std::isnan(want.lse[i]))
        ASSERT_TRUE(untouched(got.lse[i], DType::F32)) << i;
      else if (want.lse[i] == -INFINITY)
        ASSERT_EQ(got.lse[i], want.lse[i]) << i;
      else
        ASSERT_NEAR(got.lse[i], want.lse[i], 1e-5 + 1e-6 * std::abs(want.lse[i])) << i;
    }
    const double u = std::ldexp(1, p.type == DType::Bf16 ? -8 : -11);
    for (std::size_t i = 0; i < got.o.size(); ++i)
      if (std::isnan(want.o[i]))
        ASSERT_TRUE(untouched(got.o[i], p.type)) << i;
      else
        ASSERT_NEAR(got.o[i], want.o[i], want.o[i] == 0 ? 0 : u * want.o[i] * 1.01 + 1e-6) << i;
  }

  void both(const Problem &p) {
    compare(p, randomData(p));
    if (!p.sink && !p.alibi && !HasFatalFailure()) {
      probe(p, 0);
      probe(p, p.dimV / 2);
    }
  }

  Opened *on = nullptr;
  std::mt19937_64 random{41};
};

Problem with(std::int64_t queries, std::int64_t keys, DType type = DType::Bf16) {
  Problem p;
  p.queries = queries, p.keys = keys, p.type = type;
  return p;
}

TEST_P(AttentionForward, LengthsAndMasks) {
  unsigned number = 0;
  for (const auto &[Q, K] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 128}, {3, 97}, {113, 203}, {128, 128}, {200, 70}})
    for (unsigned mask = 0; mask < 5; ++mask) {
      if (!chosen(number++, 12))
        continue;
      Problem p = with(Q, K, mask % 2 ? DType::F16 : DType::Bf16);
      p.causal = mask == 1 || mask == 2;
      p.alignment = mask == 2 || mask == 4 ? Alignment::TopLeft : Alignment::BottomRight;
      if (mask >= 3)
        p.left = 17, p.right = mask == 3 ? 0 : 5;
      both(p);
    }
}

TEST_P(AttentionForward, HeadDims) {
  unsigned number = 0;
  for (const auto &[dim, dimV] : {std::pair<std::int64_t, std::int64_t>{8, 8},
                                  {40, 40},
                                  {80, 80},
                                  {96, 96},
                                  {128, 128},
                                  {192, 128},
                                  {256, 256},
                                  {64, 24}}) {
    if (!chosen(number++, 8))
      continue;
    Problem p = with(70, 90);
    p.dim = dim, p.dimV = dimV, p.causal = true;
    both(p);
  }
}

TEST_P(AttentionForward, GroupsOfHeads) {
  unsigned number = 0;
  for (const auto &[heads, keyHeads] : {std::pair<std::int64_t, std::int64_t>{6, 2}, {5, 1}, {3, 3}}) {
    if (!chosen(number++, 3))
      continue;
    Problem p = with(40, 50);
    p.heads = heads, p.keyHeads = keyHeads, p.batch = 2;
    both(p);
  }
}

TEST_P(AttentionForward, SoftcapSinkAlibiScale) {
  for (unsigned options = 1; options < 16; ++options) {
    if (!chosen(options, 8))
      continue;
    Problem p = with(65, 80, options % 2 ? DType::F16 : DType::Bf16);
    p.softcap = options & 1 ? 15 : 0;
    p.sink = options & 2;
    p.alibi = options & 4;
    p.causal = options & 8;
    p.scale = options & 8 ? 0.2f : 0;
    if (p.softcap > 0)
      p.scale = 0.125f;
    compare(p, randomData(p));
  }
}

TEST_P(AttentionForward, PackedSequencesWithEmptyOnes) {
  Problem p;
  p.lengthsQ = {0, 70, 1, 0, 33, 130, 0}, p.lengthsK = {5, 90, 1, 0, 20, 130, 0};
  both(p);
  p.causal = true;
  both(p);
  p.left = 20;
  p.usedQ = {0, 50, 1, 0, 33, 100, 0}, p.usedK = {0, 80, 1, 0, 0, 130, 0};
  both(p);
}

TEST_P(AttentionForward, UsedLengthsOfADenseBatch) {
  Problem p = with(60, 90);
  p.batch = 3;
  p.usedQ = {60, 10, 0}, p.usedK = {90, 0, 40};
  both(p);
}

/// Keys behind the used ones hold NaN, and reach nothing.
TEST_P(AttentionForward, WhatIsNotUsedMayBeNaN) {
  Problem p = with(40, 90);
  p.batch = 2;
  p.usedK = {50, 7};
  Data d = randomData(p);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t j = p.usedK[b]; j < p.keys; ++j)
      for (std::int64_t i = 0; i < p.keyHeads * p.dim; ++i)
        d.k[static_cast<std::size_t>((b * p.keys + j) * p.keyHeads * p.dim +
                                     i)] = NAN,
                                     d.v[static_cast<std::size_t>((b * p.keys + j) * p.keyHeads * p.dimV + i)] = NAN;
  compare(p, d);
}

TEST_P(AttentionForward, OrdersOfDimensionsInMemory) {
  for (const auto &order : {std::vector<unsigned>{0, 2, 1, 3}, {1, 0, 2, 3}, {2, 0, 1, 3}}) {
    Problem p = with(50, 60);
    p.batch = 2, p.order = order;
    both(p);
  }
}

/// q, k, v cut from one buffer [s, b, h + 2 hk, d]: each has strides of its own.
TEST_P(AttentionForward, CutFromOneInterleavedBuffer) {
  const std::int64_t S = 70, B = 2, H = 4, Hk = 2, D = 64, all = H + 2 * Hk;
  Problem p = with(S, S, DType::F16);
  p.batch = B, p.heads = H, p.keyHeads = Hk, p.left = 30, p.right = 0;
  Data d = randomData(p);
  Numbers whole(static_cast<std::size_t>(S * B * all * D));
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t s = 0; s < S; ++s)
      for (std::int64_t h = 0; h < all; ++h)
        for (std::int64_t c = 0; c < D; ++c) {
          const std::int64_t row = b * S + s;
          whole[static_cast<std::size_t>(((s * B + b) * all + h) * D + c)] =
              h < H        ? d.q[static_cast<std::size_t>((row * H + h) * D + c)]
              : h < H + Hk ? d.k[static_cast<std::size_t>((row * Hk + h - H) * D + c)]
                           : d.v[static_cast<std::size_t>((row * Hk + h - H - Hk) * D + c)];
        }
  const Held buffer = upload(p.type, {S * B * all * D}, whole), o = upload(p.type, {B, S, H, D}, {});
  const auto cut = [&](std::int64_t heads, std::int64_t first) {
    const std::vector<std::int64_t> shape = {B, S, heads, D}, strides = {all * D, B * all * D, D, 1};
    auto t =
        Tensor::strided(*on->device, *buffer.buffer, p.type, shape, strides, static_cast<std::size_t>(2 * first * D));
    EXPECT_TRUE(t.ok()) << t.status().toString();
    return *t;
  };
  AttentionArguments a;
  a.q = cut(H, 0), a.k = cut(Hk, H), a.v = cut(Hk, H + Hk), a.o = o.tensor;
  a.windowLeft = p.left, a.windowRight = p.right;
  AttentionOperation operation(*on->jit);
  const Status s = operation.run(a);
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(download(o), run(p, d).o); // the same numbers as from three tensors
  // Grouped: [b, s, hk, g + 2, d], two head strides for q.
  Numbers grouped(whole.size());
  const std::int64_t g = H / Hk;
  for (std::int64_t row = 0; row < B * S; ++row)
    for (std::int64_t h = 0; h < Hk; ++h)
      for (std::int64_t m = 0; m < g + 2; ++m)
        for (std::int64_t c = 0; c < D; ++c)
          grouped[static_cast<std::size_t>(((row * Hk + h) * (g + 2) + m) * D + c)] =
              m < g    ? d.q[static_cast<std::size_t>((row * H + h * g + m) * D + c)]
              : m == g ? d.k[static_cast<std::size_t>((row * Hk + h) * D + c)]
                       : d.v[static_cast<std::size_t>((row * Hk + h) * D + c)];
  const Held second = upload(p.type, {std::ssize(grouped)}, grouped), split = upload(p.type, {B, S, Hk, g, D}, {});
  const std::int64_t head = (g + 2) * D, token = Hk * head;
  const auto view = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, std::int64_t offset) {
    auto t = Tensor::strided(*on->device, *second.buffer, p.type, shape, strides, static_cast<std::size_t>(2 * offset));
    EXPECT_TRUE(t.ok()) << t.status().toString();
    return *t;
  };
  a.q = view({B, S, Hk, g, D}, {S * token, token, head, D, 1}, 0);
  a.k = view({B, S, Hk, D}, {S * token, token, head, 1}, g * D);
  a.v = view({B, S, Hk, D}, {S * token, token, head, 1}, (g + 1) * D);
  a.o = split.tensor;
  ASSERT_TRUE(operation.run(a).ok());
  EXPECT_EQ(download(split), download(o));
}

/// Wrong arguments: named, with a remedy, before anything is compiled.
TEST_P(AttentionForward, WrongArgumentsAreRefused) {
  const Held q = upload(DType::F16, {2, 16, 4, 64}, {}), k = upload(DType::F16, {2, 16, 2, 64}, {}),
             o = upload(DType::F16, {2, 16, 4, 64}, {}), other = upload(DType::Bf16, {2, 16, 2, 64}, {}),
             odd = upload(DType::F16, {2, 16, 3, 64}, {}), thin = upload(DType::F16, {2, 16, 4, 20}, {}),
             offsets = upload(DType::I32, {3}, {0, 1, 2}), flat = upload(DType::F16, {32, 4, 64}, {});
  const Held v = upload(DType::F16, {2, 16, 2, 64}, {});
  const auto before = on->jit->counters().compiles;
  AttentionArguments good;
  good.q = q.tensor, good.k = k.tensor, good.v = v.tensor, good.o = o.tensor;
  const auto refused = [&](auto change, std::initializer_list<const char *> parts) {
    AttentionArguments a = good;
    change(a);
    AttentionOperation operation(*on->jit);
    const Status s = operation.run(a);
    ASSERT_FALSE(s.ok()) << *parts.begin();
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument) << s.toString();
    EXPECT_FALSE(s.remedy().empty()) << s.toString();
    for (const char *part : parts)
      EXPECT_NE(s.message().find(part), std::string::npos) << part << " is not in: " << s.toString();
  };
  using A = AttentionArguments;
  refused([&](A &a) { a.k = other.tensor; }, {"'k'", "bf16", "f16"});
  refused([&](A &a) { a.k = odd.tensor; }, {"4 heads", "3"});
  refused([&](A &a) { a.q = thin.tensor; }, {"'q'", "20"});
  refused([&](A &a) { a.o = k.tensor; }, {"'o'"});
  refused([&](A &a) { a.q.strides[3] = 2; }, {"'q'", "stride"});
  refused([&](A &a) { a.windowLeft = -2; }, {"window_left", "-2"});
  refused([&](A &a) { a.scale = 0.0f; }, {"scale"});
  refused([&](A &a) { a.scale = -1.0f; }, {"scale"});
  refused([&](A &a) { a.softcap = -1; }, {"softcap"});
  refused([&](A &a) { a.cuQ = offsets.tensor; }, {"cu_k"});
  refused([&](A &a) { a.cuQ = a.cuK = offsets.tensor; }, {"rank 4", "3"});
  refused([&](A &a) { a.sink = offsets.tensor; }, {"'sink'"});
  refused([&](A &a) { a.usedK = offsets.tensor; }, {"'used_k'", "3", "2"});
  refused([&](A &a) { a.q.address += 1; }, {"'q'"});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// One call compiles one kernel; other lengths compile none.
TEST_P(AttentionForward, OneCompileForManyLengths) {
  std::unique_ptr<Opened> fresh = freshDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(fresh);
  on = fresh.get();
  for (const std::int64_t n : {80, 96, 208, 144}) {
    Problem p = with(n, n);
    p.causal = true;
    run(p, randomData(p));
    EXPECT_EQ(on->jit->counters().compiles, 1u) << n;
  }
}

/// The bits of the usual order under seeds of every schedule, and with every warp late somewhere; no findings.
TEST_P(AttentionForward, SeedsOfEverySchedule) {
  const std::string name = deviceNames()[GetParam()];
  const TemporaryDirectory folder;
  Problem p = with(100, 150);
  p.batch = 2, p.causal = true, p.left = 60;
  const Data d = randomData(p);
  const Results usual = run(p, d);
  const auto again = [&](const Opening &how, const std::string &what) {
    SCOPED_TRACE(name + " " + what);
    const std::unique_ptr<Opened> other = openWith(name, how);
    ASSERT_TRUE(other);
    Opened *const before = std::exchange(on, other.get());
    const Results got = run(p, d);
    on = before;
    ASSERT_EQ(got.o, usual.o);
    ASSERT_EQ(got.lse, usual.lse);
  };
  const bool emulated = on->emulated();
  for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 0; emulated && seed < pick(1u, 20u) && !HasFailure(); ++seed) {
      Opening how{{}, folder.path() + "/kernels", ""};
      how.emulator.schedule = schedule;
      how.emulator.seed = GetParam() + seed;
      again(how, std::string(scheduleName(schedule)) + " " + std::to_string(seed));
    }
  for (const char *stress : {"1", "3:2"})
    again({{}, folder.path() + "/kernels", stress}, std::string("KILN_STRESS=") + stress);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionForward, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
