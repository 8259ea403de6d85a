#include "kernels/dplr/DplrReference.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {
namespace {

using Doubles = std::vector<double>;

/// S^T x of a state [K, V].
Doubles read(const Doubles &state, const double *x, std::size_t dim, std::size_t dimV) {
  Doubles out(dimV);
  for (std::size_t i = 0; i < dim; ++i)
    for (std::size_t j = 0; j < dimV; ++j)
      out[j] += state[i * dimV + j] * x[i];
  return out;
}

/// S x of a state [K, V].
Doubles across(const Doubles &state, const double *x, std::size_t dim, std::size_t dimV) {
  Doubles out(dim);
  for (std::size_t i = 0; i < dim; ++i)
    for (std::size_t j = 0; j < dimV; ++j)
      out[i] += state[i * dimV + j] * x[j];
  return out;
}

/// The state after token t.
void step(const DplrHead &h, std::size_t t, Doubles &state) {
  const double *const a = &h.a[t * h.dim], *const b = &h.b[t * h.dim], *const k = &h.k[t * h.dim],
                      *const g = &h.g[t * h.dim], *const v = &h.v[t * h.dimV];
  const Doubles p = read(state, a, h.dim, h.dimV);
  for (std::size_t i = 0; i < h.dim; ++i) {
    const double decay = std::exp(g[i]);
    for (std::size_t j = 0; j < h.dimV; ++j)
      state[i * h.dimV + j] = decay * state[i * h.dimV + j] + b[i] * p[j] + k[i] * v[j];
  }
}

Doubles firstOf(const DplrHead &h) {
  return h.first.empty() ? Doubles(h.dim * h.dimV) : h.first;
}

} // namespace

DplrHeadResult dplrForward(const DplrHead &h) {
  DplrHeadResult out{{}, firstOf(h)};
  for (std::size_t t = 0; t < h.tokens; ++t) {
    step(h, t, out.last);
    for (const double x : read(out.last, &h.q[t * h.dim], h.dim, h.dimV))
      out.o.push_back(h.scale * x);
  }
  return out;
}

DplrHeadGradients dplrBackward(const DplrHead &h, std::span<const double> dO, std::span<const double> dLast) {
  const std::size_t K = h.dim, V = h.dimV;
  // Every 256th state is kept, those after it are made again: a long sequence's would take gigabytes.
  constexpr std::size_t apart = 256;
  std::vector<Doubles> kept, states;
  for (Doubles state = firstOf(h); kept.size() * apart < h.tokens;) {
    kept.push_back(state);
    for (std::size_t t = (kept.size() - 1) * apart; t < std::min(h.tokens, kept.size() * apart); ++t)
      step(h, t, state);
  }
  DplrHeadGradients out;
  out.q.resize(h.tokens * K);
  out.k = out.a = out.b = out.g = out.q;
  out.v.resize(h.tokens * V);
  Doubles &d = out.first = dLast.empty() ? Doubles(K * V) : Doubles(dLast.begin(), dLast.end());
  for (std::size_t t = h.tokens; t-- > 0;) {
    const std::size_t from = t / apart * apart;
    if (states.empty() || t + 1 == from + apart) {
      states = {kept[t / apart]};
      for (std::size_t s = from; s <= t; ++s) {
        states.push_back(states.back());
        step(h, s, states.back());
      }
    }
    const Doubles &before = states[t - from], &after = states[t - from + 1];
    const double *const q = &h.q[t * K], *const k = &h.k[t * K], *const a = &h.a[t * K], *const b = &h.b[t * K],
                        *const g = &h.g[t * K], *const v = &h.v[t * V], *const o = &dO[t * V];
    for (std::size_t i = 0; i < K; ++i)
      for (std::size_t j = 0; j < V; ++j)
        d[i * V + j] += h.scale * q[i] * o[j];
    const Doubles p = read(before, a, K, V), dp = read(d, b, K, V), dv = read(d, k, K, V);
    const Doubles dq = across(after, o, K, V), dk = across(d, v, K, V), db = across(d, p.data(), K, V),
                  da = across(before, dp.data(), K, V);
    for (std::size_t j = 0; j < V; ++j)
      out.v[t * V + j] = dv[j];
    for (std::size_t i = 0; i < K; ++i) {
      const double decay = std::exp(g[i]);
      double both = 0;
      for (std::size_t j = 0; j < V; ++j) {
        double &at = d[i * V + j];
        both += at * before[i * V + j];
        at = decay * at + a[i] * dp[j];
      }
      out.q[t * K + i] = h.scale * dq[i];
      out.k[t * K + i] = dk[i];
      out.a[t * K + i] = da[i];
      out.b[t * K + i] = db[i];
      out.g[t * K + i] = decay * both;
    }
  }
  return out;
}

} // namespace kiln::kernels
