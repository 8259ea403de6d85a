#include "kernels/dplr/Decay.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// One matrix after the other: what is alive is one gradient and what it adds to.
ChunkRows gradientsOf(ChunkRule rule, const ChunkRows &x, const Tile<i1> &pairs, const ProductGradients &of) {
  const auto product = [](const ChunkTile &l, const ChunkTile &r) { return dot(l, r, Precision::Tf32); };
  const auto more = [](const ChunkTile &l, const ChunkTile &r, const ChunkTile &to) {
    return dot(l, r, to, Precision::Tf32);
  };
  const auto at = [&](const std::function<ChunkTile()> &d) { return select(pairs, d(), 0.0f); };
  const auto qk = at(of.qk);
  ChunkRows out;
  out.q = product(qk, x.k), out.k = product(transpose(qk), x.q);
  if (hasOwnB(rule)) {
    const auto qb = at(of.qb);
    out.q = more(qb, x.b, out.q);
    out.b = product(transpose(qb), x.q);
  }
  if (!reads(rule))
    return out;
  const auto ak = at(of.ak);
  out.a = product(ak, x.k);
  out.k = more(transpose(ak), x.a, out.k);
  if (hasOwnB(rule)) {
    const auto ab = at(of.ab);
    out.a = more(ab, x.b, out.a);
    out.b = more(transpose(ab), x.a, out.b);
  }
  return out;
}

} // namespace

Decay::Decay(ChunkSource from, bool bounded) : source(std::move(from)), bounded(bounded || !source.gates) {
  if (!decays())
    return;
  gate = gates();
  width = static_cast<int>(gate.extent(1));
  const auto halves = reshape(gate, {2, source.rows / 2, width});
  within = cumsum(halves, along(1));
  // The last rows.  Another sum would exchange as much between warps as the running sum does.
  half = reshape(gather(within, full<i32>({2, 1, width}, source.rows / 2 - 1), along(1)), {2, width});
}

ChunkTile Decay::gates() const {
  return bounded ? source.gates() : max(source.gates(), lowestGate);
}

Factor Decay::ofChunk() const {
  return decays() ? Factor{exp(expandDims(sum(half, along(0)), 0))} : Factor{};
}

ChunkRows Decay::scaled(const ChunkRows &x, const Factors &by) const {
  ChunkRows out;
  out.q = x.q * by.q, out.k = x.k * by.kb;
  if (reads(source.rule))
    out.a = x.a * by.a;
  out.b = hasOwnB(source.rule) ? x.b * by.kb : out.k;
  return out;
}

Decay::Factors Decay::aroundMiddle() const {
  if (!decays())
    return {};
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto fromMiddle = reshape(within - expandDims(select(isFirst, half, 0.0f), 1), {source.rows, width});
  return {{exp(fromMiddle)}, {exp(fromMiddle - gate)}, {exp(-fromMiddle)}};
}

Decay::Factors Decay::fromStartToEnd() const {
  if (!decays())
    return {};
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto all = expandDims(sum(half, along(0)), 0);
  // What lies before each half.
  const auto before = expandDims(select(isFirst, 0.0f, all - half), 1);
  const auto fromStart = reshape(within + before, {source.rows, width});
  return {{exp(fromStart)}, {exp(fromStart - gate)}, {exp(all - fromStart)}};
}

Decay::Level Decay::ofHalves(const Scalar<i32> &log) const {
  const int size = source.rows;
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  const auto isSecond = ((i >> log) & 1) == 1;
  const auto reference = (((i >> (log + 1)) << (log + 1)) + (1 << log)) - 1; // the first half's last row
  // From the reference to a row of the second half, from a row of the first to the reference.
  const auto counted = select(isSecond, (j > reference) & (j <= i), (j > i) & (j <= reference));
  const auto here = gates();
  const auto sums = width == 1 ? expandDims(sum(select(counted, transpose(here), 0.0f), along(1)), 1)
                               : dot(select(counted, full<f32>({size, size}, 1.0f), 0.0f), here, Precision::Tf32x3);
  const auto second = [&](const ChunkTile &x) { return select(isSecond, x, 0.0f); };
  return {{{second(exp(sums))}, {second(exp(min(sums - here, 0.0f)))}, {select(isSecond, 0.0f, exp(sums))}},
          ((i >> (log + 1)) == (j >> (log + 1))) & ((i >> log) > (j >> log))};
}

ChunkRows Decay::gradients(const ChunkRows &rows, const ProductGradients &of) const {
  const bool withA = reads(source.rule), withB = hasOwnB(source.rule);
  const auto none = zeros<f32>({source.rows, source.columns});
  const auto at = [&](const ChunkRows &x, const Factors &factors, const Tile<i1> &pairs) {
    ChunkRows out = gradientsOf(source.rule, scaled(x, factors), pairs, of);
    out.q = out.q * factors.q, out.k = out.k * factors.kb;
    out.a = withA ? out.a * factors.a : none;
    out.b = withB ? out.b * factors.kb : none;
    return out;
  };
  const auto tied = [](const ChunkRows &x) { return std::tuple{x.q, x.a, x.k, x.b}; };
  const auto middle = [&] {
    return tied(at(rows, aroundMiddle(), expandDims(range(0, source.rows), 0) < expandDims(range(0, source.rows), 1)));
  };
  const auto halves = [&] {
    return loop(over(0, levels()), none, none, none, none, [&](auto log, auto q, auto a, auto k, auto b) {
      const Level level = ofHalves(log);
      const ChunkRows more = at(source.read(), level.factors, level.pairs);
      return std::tuple{q + more.q, withA ? a + more.a : a, k + more.k, withB ? b + more.b : b};
    });
  };
  const auto out = choose(middle, halves);
  return {std::get<0>(out), std::get<1>(out), std::get<2>(out), std::get<3>(out)};
}

} // namespace kiln::kernels
