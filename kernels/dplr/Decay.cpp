#include "kernels/dplr/Decay.h"

#include <bit>

namespace kiln::kernels {

using namespace language;

namespace {

/// [C, 1] and [1, C].
Tile<i32> rowsOf(int n) {
  return expandDims(range(0, n), 1);
}
Tile<i32> columnsOf(int n) {
  return expandDims(range(0, n), 0);
}

/// A product of operands of 11 bits and float32's range, as the specification asks of these (S4).
ChunkTile product(const ChunkTile &x, const ChunkTile &y) {
  return dot(x, y, Precision::Tf32);
}
ChunkTile product(const ChunkTile &x, const ChunkTile &y, const ChunkTile &more) {
  return dot(x, y, more, Precision::Tf32);
}

Decay::Products productsOf(const ChunkRows &x) {
  const auto k = transpose(x.k), b = transpose(x.b);
  return {product(x.q, k), product(x.q, b), product(x.a, k), product(x.a, b)};
}

ChunkRows gradientsOf(const ChunkRows &x, const Decay::Products &d) {
  return {product(d.qk, x.k, product(d.qb, x.b)), product(d.ak, x.k, product(d.ab, x.b)),
          product(transpose(d.qk), x.q, product(transpose(d.ak), x.a)),
          product(transpose(d.qb), x.q, product(transpose(d.ab), x.a))};
}

/// Where the pairs are, the first, elsewhere the second.
Decay::Products selected(const Tile<i1> &pairs, const Decay::Products &x, const Decay::Products &y) {
  return {select(pairs, x.qk, y.qk), select(pairs, x.qb, y.qb), select(pairs, x.ak, y.ak), select(pairs, x.ab, y.ab)};
}
Decay::Products selected(const Tile<i1> &pairsOfQ, const Tile<i1> &pairsOfA, const Decay::Products &x) {
  return {select(pairsOfQ, x.qk, 0.0f), select(pairsOfQ, x.qb, 0.0f), select(pairsOfA, x.ak, 0.0f),
          select(pairsOfA, x.ab, 0.0f)};
}

std::tuple<ChunkTile, ChunkTile, ChunkTile, ChunkTile> tied(const Decay::Products &p) {
  return {p.qk, p.qb, p.ak, p.ab};
}
std::tuple<ChunkTile, ChunkTile, ChunkTile, ChunkTile> tied(const ChunkRows &x) {
  return {x.q, x.a, x.k, x.b};
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

int Decay::levels() const {
  return std::countr_zero(static_cast<unsigned>(size));
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
  const auto i = rowsOf(size), j = columnsOf(size);
  const auto blockOf = [&](const Tile<i32> &x) { return x >> (log + 1); };
  const auto isSecond = ((i >> log) & 1) == 1;
  const auto reference = (((i >> (log + 1)) << (log + 1)) + (1 << log)) - 1; // the first half's last row
  // From the reference to a row of the second half, from a row of the first to the reference.
  const auto counted = select(isSecond, (j > reference) & (j <= i), (j > i) & (j <= reference));
  const auto here = gates();
  const auto sums = dot(select(counted, full<f32>({size, size}, 1.0f), 0.0f), here, Precision::Tf32x3);
  const auto second = [&](const ChunkTile &x) { return select(isSecond, x, 0.0f); };
  return {{second(exp(sums)), second(exp(min(sums - here, 0.0f))), select(isSecond, 0.0f, exp(sums))},
          (blockOf(i) == blockOf(j)) & ((i >> log) > (j >> log))};
}

template <typename Middle, typename Halves> auto Decay::choose(Middle middle, Halves halves) const {
  return bounded ? middle() : when(min(half) >= lowestSum, middle, halves);
}

Decay::Products Decay::products(const ChunkRows &rows) const {
  const auto i = rowsOf(size), j = columnsOf(size);
  const auto middle = [&] { return tied(selected(j <= i, j < i, productsOf(rows * aroundMiddle()))); };
  const auto halves = [&] {
    // Nothing decays between a token and itself.
    const auto diagonal = [&](const ChunkTile &x, const ChunkTile &y) {
      return select(i == j, expandDims(sum(x * y, along(1)), 1), 0.0f);
    };
    const auto none = zeros<f32>({size, size});
    const ChunkRows first = source.rows();
    return loop(over(0, levels()), diagonal(first.q, first.k), diagonal(first.q, first.b), none, none,
                [&](auto log, auto qk, auto qb, auto ak, auto ab) {
                  const Level level = ofHalves(log);
                  return tied(selected(level.pairs, productsOf(source.rows() * level.factors), {qk, qb, ak, ab}));
                });
  };
  return std::make_from_tuple<Products>(choose(middle, halves));
}

ChunkRows Decay::gradients(const ChunkRows &rows, const Products &of) const {
  const auto i = rowsOf(size), j = columnsOf(size);
  const auto at = [&](const ChunkRows &x, const Factors &factors, const Tile<i1> &pairs) {
    return gradientsOf(x * factors, selected(pairs, pairs, of)) * factors;
  };
  const auto middle = [&] { return tied(at(rows, aroundMiddle(), j < i)); };
  const auto halves = [&] {
    const auto none = zeros<f32>({size, dim});
    return loop(over(0, levels()), none, none, none, none, [&](auto log, auto q, auto a, auto k, auto b) {
      const Level level = ofHalves(log);
      return tied(ChunkRows{q, a, k, b} + at(source.rows(), level.factors, level.pairs));
    });
  };
  return std::make_from_tuple<ChunkRows>(choose(middle, halves));
}

} // namespace kiln::kernels
