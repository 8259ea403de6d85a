#include "kernels/dplr/Decay.h"

namespace kiln::kernels {

using namespace language;

namespace {

std::tuple<ChunkTile, ChunkTile, ChunkTile, ChunkTile> tied(const ChunkRows &x) {
  return {x.q, x.a, x.k, x.b};
}

/// One matrix after the other: what is alive is one gradient and what it adds to.
ChunkRows gradientsOf(const ChunkRows &x, const Tile<i1> &pairs, const ProductGradients &of) {
  const auto product = [](const ChunkTile &l, const ChunkTile &r) { return dot(l, r, Precision::Tf32); };
  const auto more = [](const ChunkTile &l, const ChunkTile &r, const ChunkTile &to) {
    return dot(l, r, to, Precision::Tf32);
  };
  const auto at = [&](const std::function<ChunkTile()> &d) { return select(pairs, d(), 0.0f); };
  const auto qk = at(of.qk);
  auto q = product(qk, x.k), k = product(transpose(qk), x.q);
  const auto qb = at(of.qb);
  q = more(qb, x.b, q);
  auto b = product(transpose(qb), x.q);
  const auto ak = at(of.ak);
  auto a = product(ak, x.k);
  k = more(transpose(ak), x.a, k);
  const auto ab = at(of.ab);
  return {q, more(ab, x.b, a), k, more(transpose(ab), x.a, b)};
}

} // namespace

ChunkRows operator*(const ChunkRows &x, const Decay::Factors &by) {
  return {x.q * by.q, x.a * by.a, x.k * by.kb, x.b * by.kb};
}
ChunkRows operator+(const ChunkRows &x, const ChunkRows &y) {
  return {x.q + y.q, x.a + y.a, x.k + y.k, x.b + y.b};
}

Decay::Decay(ChunkSource from, bool bounded) : bounded(bounded), source(std::move(from)), gate(gates()) {
  size = static_cast<int>(gate.extent(0)), dim = static_cast<int>(gate.extent(1));
  const auto halves = reshape(gate, {2, size / 2, dim});
  within = cumsum(halves, along(1));
  half = sum(halves, along(1));
}

ChunkTile Decay::gates() const {
  return bounded ? source.gates() : max(source.gates(), lowestGate);
}

ChunkTile Decay::ofChunk() const {
  return exp(sum(half, along(0)));
}

Decay::Factors Decay::aroundMiddle() const {
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto fromMiddle = reshape(within - expandDims(select(isFirst, half, 0.0f), 1), {size, dim});
  return {exp(fromMiddle), exp(fromMiddle - gate), exp(-fromMiddle)};
}

Decay::Factors Decay::fromStartToEnd() const {
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto all = expandDims(sum(half, along(0)), 0);
  // What lies before each half.
  const auto before = expandDims(select(isFirst, 0.0f, all - half), 1);
  const auto fromStart = reshape(within + before, {size, dim});
  return {exp(fromStart), exp(fromStart - gate), exp(all - fromStart)};
}

Decay::Level Decay::ofHalves(const Scalar<i32> &log) const {
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  const auto isSecond = ((i >> log) & 1) == 1;
  const auto reference = (((i >> (log + 1)) << (log + 1)) + (1 << log)) - 1; // the first half's last row
  // From the reference to a row of the second half, from a row of the first to the reference.
  const auto counted = select(isSecond, (j > reference) & (j <= i), (j > i) & (j <= reference));
  const auto here = gates();
  const auto sums = dot(select(counted, full<f32>({size, size}, 1.0f), 0.0f), here, Precision::Tf32x3);
  const auto second = [&](const ChunkTile &x) { return select(isSecond, x, 0.0f); };
  return {{second(exp(sums)), second(exp(min(sums - here, 0.0f))), select(isSecond, 0.0f, exp(sums))},
          ((i >> (log + 1)) == (j >> (log + 1))) & ((i >> log) > (j >> log))};
}

ChunkRows Decay::gradients(const ChunkRows &rows, const ProductGradients &of) const {
  const auto at = [&](const ChunkRows &x, const Factors &factors, const Tile<i1> &pairs) {
    return gradientsOf(x * factors, pairs, of) * factors;
  };
  const auto middle = [&] {
    return tied(at(rows, aroundMiddle(), expandDims(range(0, size), 0) < expandDims(range(0, size), 1)));
  };
  const auto halves = [&] {
    const auto none = zeros<f32>({size, dim});
    return loop(over(0, levels()), none, none, none, none, [&](auto log, auto q, auto a, auto k, auto b) {
      const Level level = ofHalves(log);
      return tied(ChunkRows{q, a, k, b} + at(source.rows(), level.factors, level.pairs));
    });
  };
  const auto out = choose(middle, halves);
  return {std::get<0>(out), std::get<1>(out), std::get<2>(out), std::get<3>(out)};
}

} // namespace kiln::kernels
