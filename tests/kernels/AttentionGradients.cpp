#include "tests/kernels/AttentionGradients.h"

#include "tests/kernels/Operand.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace kiln::test {
namespace {

/// Where the rows of a sequence start, how many it has room for, how many count.
struct Sequence {
  std::int64_t number, firstQ, firstK, queries, keys;
};

std::vector<Sequence> sequencesOf(const Problem &p) {
  std::vector<Sequence> out;
  std::int64_t firstQ = 0, firstK = 0;
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    const auto b = static_cast<std::size_t>(n);
    const std::int64_t roomQ = p.packed() ? p.lengthsQ[b] : p.queries, roomK = p.packed() ? p.lengthsK[b] : p.keys;
    out.push_back({n, firstQ, firstK, p.usedQ.empty() ? roomQ : p.usedQ[b], p.usedK.empty() ? roomK : p.usedK[b]});
    firstQ += roomQ, firstK += roomK;
  }
  return out;
}

/// lse of a packed call is [H, T], of a dense one [B, H, Sq].
std::size_t atLse(const Problem &p, const Sequence &s, std::int64_t head, std::int64_t i) {
  return static_cast<std::size_t>(p.packed() ? head * p.rowsQ() + s.firstQ + i
                                             : (s.number * p.heads + head) * p.queries + i);
}

std::int64_t positionOf(const Problem &p, const Sequence &s, std::int64_t i) {
  return i + (p.offset ? *p.offset : p.alignment == kernels::Alignment::BottomRight ? s.keys - s.queries : 0);
}
/// Keys that a row sees, from the first to before the last.
std::pair<std::int64_t, std::int64_t> seenBy(const Problem &p, const Sequence &s, std::int64_t i) {
  const std::int64_t at = positionOf(p, s, i), right = p.causal ? 0 : p.right;
  return {p.left < 0 ? 0 : std::max<std::int64_t>(0, at - p.left),
          right < 0 ? s.keys : std::min(s.keys, at + right + 1)};
}

/// NaN where nothing is to be written, 0 elsewhere.
Gradients blank(const Problem &p) {
  Gradients out;
  const auto fill = [&](Numbers &to, std::int64_t rows, std::int64_t width, auto first, auto count) {
    to.assign(static_cast<std::size_t>(rows * width), NAN);
    for (const Sequence &s : sequencesOf(p))
      std::fill_n(to.begin() + first(s) * width, count(s) * width, 0.0);
  };
  const auto firstQ = [](const Sequence &s) { return s.firstQ; };
  const auto firstK = [](const Sequence &s) { return s.firstK; };
  fill(out.dq, p.rowsQ(), p.heads * p.dim, firstQ, [](const Sequence &s) { return s.queries; });
  fill(out.dk, p.rowsK(), p.keyHeads * p.dim, firstK, [](const Sequence &s) { return s.keys; });
  fill(out.dv, p.rowsK(), p.keyHeads * p.dimV, firstK, [](const Sequence &s) { return s.keys; });
  return out;
}

double dot(const double *a, const double *b, std::int64_t n) {
  double sums[8] = {}; // the host adds several at a time
  for (std::int64_t c = 0; c < n; c += 8)
    for (std::int64_t lane = 0; lane < 8; ++lane)
      sums[lane] += a[c + lane] * b[c + lane];
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

class Definition {
public:
  Definition(const Problem &p, const Data &d, const LossGradients &g, bool roundSteps)
      : p(p), d(d), g(g), roundSteps(roundSteps), out(blank(p)), scaledK(d.k),
        scale(p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim))) {
    for (double &e : scaledK)
      e = step(e * scale);
  }

  Gradients all() {
    for (const Sequence &s : sequencesOf(p))
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < s.queries; ++i)
          row(s, h, i);
    for (Numbers *x : {&out.dq, &out.dk})
      for (double &e : *x)
        e = std::isnan(e) ? e : step(e * scale);
    for (double &e : out.dv)
      e = std::isnan(e) ? e : step(e);
    return std::move(out);
  }

private:
  double step(double v) const { return roundSteps ? rounded(v, p.type) : v; }

  void row(const Sequence &s, std::int64_t h, std::int64_t i) {
    const std::int64_t kh = h / (p.heads / p.keyHeads), at = positionOf(p, s, i);
    const auto [begin, end] = seenBy(p, s, i);
    const auto rowQ = static_cast<std::size_t>((s.firstQ + i) * p.heads + h);
    const auto rowK = [&, first = begin](std::size_t j) {
      return static_cast<std::size_t>((s.firstK + first) * p.keyHeads + kh) + j * static_cast<std::size_t>(p.keyHeads);
    };
    const auto D = static_cast<std::size_t>(p.dim), V = static_cast<std::size_t>(p.dimV);
    const double *const q = &d.q[rowQ * D], *const dO = &g.dO[rowQ * V];
    double most = p.sink ? d.sink[static_cast<std::size_t>(h)] : -INFINITY;
    Numbers y, z, slopes;
    for (std::int64_t j = begin; j < end; ++j) {
      double x = step(dot(q, &scaledK[rowK(z.size()) * D], p.dim));
      const Pair pair{s.number, h, i, j};
      slopes.push_back(p.hooks && p.hooks->slope ? p.hooks->slope(x, pair) : 1);
      if (p.hooks && p.hooks->score)
        x = step(p.hooks->score(x, pair));
      if (p.softcap > 0)
        x = step(p.softcap * std::tanh(x / p.softcap));
      y.push_back(x);
      if (p.alibi)
        x = step(x - d.alibi[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(at - j)));
      if (p.biasOf)
        x = step(x + d.bias[atBias(p, s.number, h, i, j)]);
      if (!p.hasPair(pair))
        x = -INFINITY;
      z.push_back(x);
      most = std::max(most, x);
    }
    const double base = most == -INFINITY ? 0 : most;
    double total = p.sink ? std::exp(d.sink[static_cast<std::size_t>(h)] - base) : 0;
    for (const double x : z)
      total += std::exp(x - base);
    const bool isEmpty = total == 0;
    Numbers share, kept, o(V);
    for (std::size_t j = 0; j < z.size(); ++j) {
      share.push_back(step(std::exp(z[j] - base) / (isEmpty ? 1 : total)));
      kept.push_back(keptShare(p, s.number, h, i, begin + static_cast<std::int64_t>(j)));
      for (std::size_t c = 0; c < V; ++c)
        o[c] += kept[j] * share[j] * d.v[rowK(j) * V + c];
    }
    double shared = g.dlse.empty() || isEmpty ? 0 : g.dlse[atLse(p, s, h, i)];
    for (std::size_t c = 0; c < V; ++c)
      shared -= dO[c] * step(o[c]);
    for (std::size_t j = 0; j < z.size(); ++j) {
      const double dp = kept[j] * step(dot(dO, &d.v[rowK(j) * V], p.dimV)),
                   inner = p.softcap > 0 ? y[j] / p.softcap : 0;
      const double dx = step(step(share[j] * (dp + shared)) * (1 - inner * inner) * slopes[j]);
      for (std::size_t c = 0; c < D; ++c) {
        out.dq[rowQ * D + c] += dx * d.k[rowK(j) * D + c];
        out.dk[rowK(j) * D + c] += dx * q[c];
      }
      for (std::size_t c = 0; c < V; ++c)
        out.dv[rowK(j) * V + c] += kept[j] * share[j] * dO[c];
    }
  }

  const Problem &p;
  const Data &d;
  const LossGradients &g;
  const bool roundSteps;
  Gradients out;
  Numbers scaledK;
  const double scale;
};

} // namespace

LossGradients randomGradients(const Problem &p, bool withLse, std::mt19937_64 &random) {
  LossGradients g;
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < p.rowsQ() * p.heads * p.dimV; ++i)
    g.dO.push_back(rounded(normal(random), p.type));
  for (std::int64_t i = 0; withLse && i < p.rowsQ() * p.heads; ++i)
    g.dlse.push_back(rounded(normal(random), DType::F32));
  return g;
}

void poisonUnused(const Problem &p, LossGradients &g) {
  const Gradients shape = blank(p); // dq has a NaN where a row is not used
  for (std::int64_t r = 0; r < p.rowsQ(); ++r)
    if (std::isnan(shape.dq[static_cast<std::size_t>(r * p.heads * p.dim)]))
      std::fill_n(g.dO.begin() + r * p.heads * p.dimV, p.heads * p.dimV, NAN);
  if (g.dlse.empty())
    return;
  Numbers used(g.dlse.size(), NAN);
  for (const Sequence &s : sequencesOf(p))
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i)
        used[atLse(p, s, h, i)] = g.dlse[atLse(p, s, h, i)];
  g.dlse = used;
}

Gradients defineGradients(const Problem &p, const Data &d, const LossGradients &g, bool roundSteps) {
  return Definition(p, d, g, roundSteps).all();
}

SumsOfGradients defineSinks(const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                            const Numbers &lse) {
  SumsOfGradients out;
  out.value.assign(static_cast<std::size_t>(p.heads), 0), out.magnitude = out.value;
  for (const Sequence &s : sequencesOf(p))
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::size_t at = atLse(p, s, h, i), head = static_cast<std::size_t>(h);
        if (lse[at] == -INFINITY)
          continue;
        const double share = std::exp(d.sink[head] - lse[at]);
        const auto add = [&](double term) {
          out.value[head] += share * term, out.magnitude[head] += share * std::abs(term);
        };
        add(g.dlse.empty() ? 0 : g.dlse[at]);
        const auto first = static_cast<std::size_t>(((s.firstQ + i) * p.heads + h) * p.dimV);
        for (std::size_t c = first; c < first + static_cast<std::size_t>(p.dimV); ++c)
          add(-g.dO[c] * o[c]);
      }
  return out;
}

SumsOfGradients defineBias(const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                           const Numbers &lse) {
  SumsOfGradients out;
  out.value.assign(d.bias.size(), 0), out.magnitude = out.rounded = out.value;
  const auto productsOf = [&p](const double *a, const double *b) {
    double sum = 0;
    for (std::int64_t c = 0; c < p.dimV; ++c)
      sum += std::abs(a[c] * b[c]);
    return sum;
  };
  const double scale = p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim));
  for (const Sequence &s : sequencesOf(p))
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::size_t number = atLse(p, s, h, i);
        if (lse[number] == -INFINITY)
          continue;
        const auto place = [](std::int64_t row, std::int64_t heads, std::int64_t head, std::int64_t width) {
          return static_cast<std::size_t>((row * heads + head) * width);
        };
        const std::size_t q = place(s.firstQ + i, p.heads, h, p.dim), v = place(s.firstQ + i, p.heads, h, p.dimV);
        const double shared = (g.dlse.empty() ? 0 : g.dlse[number]) - dot(&g.dO[v], &o[v], p.dimV);
        const double productsOfO = productsOf(&g.dO[v], &o[v]);
        const std::int64_t kh = h / (p.heads / p.keyHeads), at = positionOf(p, s, i);
        const auto [begin, end] = seenBy(p, s, i);
        for (std::int64_t j = begin; j < end; ++j) {
          const Pair pair{s.number, h, i, j};
          if (!p.hasPair(pair))
            continue;
          double z = scale * dot(&d.q[q], &d.k[place(s.firstK + j, p.keyHeads, kh, p.dim)], p.dim);
          if (p.hooks && p.hooks->score)
            z = p.hooks->score(z, pair);
          if (p.softcap > 0)
            z = p.softcap * std::tanh(z / p.softcap);
          if (p.alibi)
            z -= d.alibi[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(at - j));
          const std::size_t to = atBias(p, s.number, h, i, j);
          const double share = std::exp(z + d.bias[to] - lse[number]);
          // Of the exponent's fp32 numbers, in units of the share: a product with log2(e) and a sum round each.
          const double exponent = share == 0 ? 0 : 2 * (std::abs(z) + std::abs(d.bias[to]) + std::abs(lse[number]));
          const double *const values = &d.v[place(s.firstK + j, p.keyHeads, kh, p.dimV)];
          const double kept = keptShare(p, s.number, h, i, j), dp = kept * dot(&g.dO[v], values, p.dimV);
          out.value[to] += share * (dp + shared);
          out.magnitude[to] += share * (std::abs(dp) + std::abs(shared));
          out.rounded[to] +=
              share * (kept * productsOf(&g.dO[v], values) + productsOfO + exponent * std::abs(dp + shared));
        }
      }
  return out;
}

ProbeOfGradients probeOf(const Problem &p, GradientProbe probe, std::int64_t by, std::mt19937_64 &random) {
  ProbeOfGradients out;
  out.d = randomData(p, random);
  const bool isA = probe == GradientProbe::A;
  for (Numbers *x : {&out.d.q, &out.d.k, &out.d.alibi})
    std::fill(x->begin(), x->end(), 0.0);
  std::fill(out.d.v.begin(), out.d.v.end(), 1.0);
  onlyHide(out.d.bias);
  out.g.dO.assign(static_cast<std::size_t>(p.rowsQ() * p.heads * p.dimV), 0);
  out.o = out.g.dO;
  out.lse.assign(static_cast<std::size_t>(p.rowsQ() * p.heads), NAN);
  out.want = blank(p);
  out.want.dbias.assign(out.d.bias.size(), 0);
  const double scale = p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim));
  const auto place = [](std::int64_t row, std::int64_t heads, std::int64_t head, std::int64_t width, std::int64_t c) {
    return static_cast<std::size_t>((row * heads + head) * width + c % width);
  };
  const std::int64_t group = p.heads / p.keyHeads;
  for (const Sequence &s : sequencesOf(p))
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::int64_t kh = h / group;
      for (std::int64_t j = 0; j < s.keys && !isA; ++j)
        out.d.k[place(s.firstK + j, p.keyHeads, kh, p.dim, j + by)] = 1;
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const auto [begin, end] = seenBy(p, s, i);
        const double sink = p.sink ? std::exp(out.d.sink[static_cast<std::size_t>(h)]) : 0;
        const auto sees = [&](std::int64_t j) {
          return p.hasPair({s.number, h, i, j}) && (!p.biasOf || out.d.bias[atBias(p, s.number, h, i, j)] == 0);
        };
        double total = sink;
        for (std::int64_t j = begin; j < end; ++j)
          total += sees(j);
        out.lse[atLse(p, s, h, i)] = std::log(total);
        if (isA)
          out.d.q[place(s.firstQ + i, p.heads, h, p.dim, i + by)] = 1;
        out.g.dO[place(s.firstQ + i, p.heads, h, p.dimV, i + by)] = 1;
        for (std::int64_t j = begin; j < end; ++j) {
          if (!sees(j))
            continue;
          const double share = keptShare(p, s.number, h, i, j) / total;
          if (share > 0)
            out.leastShare = std::min(out.leastShare, share);
          out.want.dv[place(s.firstK + j, p.keyHeads, kh, p.dimV, i + by)] += share;
          if (p.biasOf)
            out.want.dbias[atBias(p, s.number, h, i, j)] += share;
          if (isA)
            out.want.dk[place(s.firstK + j, p.keyHeads, kh, p.dim, i + by)] += scale * share;
          else
            out.want.dq[place(s.firstQ + i, p.heads, h, p.dim, j + by)] += scale * share;
        }
      }
    }
  return out;
}

} // namespace kiln::test
