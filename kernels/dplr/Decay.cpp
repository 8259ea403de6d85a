#include "kernels/dplr/Decay.h"

namespace kiln::kernels {

using namespace language;

namespace {

ChunkRows scaled(const ChunkRows &rows, const Shape &shape, const ChunkTile &q, const ChunkTile &a,
                 const ChunkTile &kb) {
  return {reshape(rows.q, shape) * q, reshape(rows.a, shape) * a, reshape(rows.k, shape) * kb,
          reshape(rows.b, shape) * kb};
}

ChunkRows reshaped(const ChunkRows &rows, const Shape &shape) {
  return {reshape(rows.q, shape), reshape(rows.a, shape), reshape(rows.k, shape), reshape(rows.b, shape)};
}

/// [1, n, 1] and [1, 1, n].
Tile<i32> rowOf(int n) {
  return expandDims(expandDims(range(0, n), 0), 2);
}
Tile<i32> columnOf(int n) {
  return expandDims(expandDims(range(0, n), 0), 1);
}
/// Rows of the second half of 2 `half` rows against columns of the first.
Tile<i1> secondAgainstFirst(const Tile<i32> &i, const Tile<i32> &j, int half) {
  const int log = std::countr_zero(static_cast<unsigned>(half));
  return ((i >> (log + 1)) == (j >> (log + 1))) & ((i >> log) > (j >> log));
}

Decay::Products each(const Decay::Products &x, const Decay::Products &y, auto f) {
  return {f(x.qk, y.qk), f(x.qb, y.qb), f(x.ak, y.ak), f(x.ab, y.ab)};
}

} // namespace

Decay::Decay(const ChunkTile &g, bool bounded)
    : size(static_cast<int>(g.extent(0))), dim(static_cast<int>(g.extent(1))), blocks(size / blockRows),
      bounded(bounded) {
  gate = reshape(bounded ? g : max(g, lowestGate), {blocks, blockRows, dim});
  const auto inclusive = cumsum(gate, along(1));
  total = sum(gate, along(1));
  lambda = exp(inclusive);
  exclusive = exp(inclusive - gate);
  mu = exp(expandDims(total, 1) - inclusive);
}

ChunkTile Decay::ofChunk() const {
  return exp(sum(total, along(0)));
}

ChunkRows Decay::acrossBlocks(const ChunkRows &rows, int together) const {
  const Shape shape{blocks, blockRows, dim};
  if (together == 1)
    return scaled(rows, shape, lambda, exclusive, mu);
  const auto groups = reshape(total, {blocks / together, together, dim});
  const auto inclusive = cumsum(groups, along(1));
  const auto before = reshape(exp(inclusive - groups), {blocks, 1, dim}),
             after = reshape(exp(expandDims(sum(groups, along(1)), 1) - inclusive), {blocks, 1, dim});
  return scaled(rows, shape, lambda * before, exclusive * before, mu * after);
}

Decay::Products Decay::squares(const ChunkRows &rows) const {
  const bool batch = rows.q.rank() == 3;
  const auto turned = [&](const ChunkTile &x) { return batch ? transpose(x, {0, 2, 1}) : transpose(x); };
  const auto k = turned(rows.k), b = turned(rows.b);
  return {dot(rows.q, k, Precision::Tf32), dot(rows.q, b, Precision::Tf32), dot(rows.a, k, Precision::Tf32),
          dot(rows.a, b, Precision::Tf32)};
}

ChunkRows Decay::halves(const ChunkRows &rows, int half) const {
  const int groups = size / (2 * half);
  const auto g = reshape(gate, {2 * groups, half, dim});
  const auto inclusive = cumsum(g, along(1));
  const Shape shape{2 * groups, half, dim};
  const auto second = expandDims(expandDims(range(0, 2 * groups) % 2 == 1, 1), 2);
  const auto only = [&](const Tile<i1> &here, const ChunkTile &x) { return select(here, x, 0.0f); };
  const auto x = only(second, exp(inclusive)), e = only(second, exp(inclusive - g)),
             y = only(!second, exp(expandDims(sum(g, along(1)), 1) - inclusive));
  return reshaped(scaled(rows, shape, x, e, y), {blocks, blockRows, dim});
}

Decay::Products Decay::aroundMiddle(const ChunkRows &rows) const {
  const auto first = expandDims(expandDims(range(0, blockRows) < blockRows / 2, 0), 2);
  const auto middle = sum(select(first, gate, 0.0f), along(1));
  const auto up = expandDims(exp(-middle), 1), down = expandDims(exp(middle - total), 1);
  const auto mask = columnOf(blockRows) < rowOf(blockRows);
  const Products p = squares(scaled(rows, {blocks, blockRows, dim}, lambda * up, exclusive * up, mu * down));
  return each(p, p, [&](const ChunkTile &x, const ChunkTile &) { return select(mask, x, 0.0f); });
}

Decay::Products Decay::byHalves(const ChunkRows &rows) const {
  Products out;
  for (int half = blockRows / 2; half >= 1; half /= 2) {
    const Products level = squares(halves(rows, half));
    const auto here = secondAgainstFirst(rowOf(blockRows), columnOf(blockRows), half);
    out = half == blockRows / 2
              ? each(level, level, [&](const ChunkTile &x, const ChunkTile &) { return select(here, x, 0.0f); })
              : each(out, level, [&](const ChunkTile &x, const ChunkTile &y) { return select(here, y, x); });
  }
  return out;
}

Decay::Products Decay::insideBlocks(const ChunkRows &rows) const {
  if (bounded)
    return aroundMiddle(rows);
  const auto tied = [](const Products &p) { return std::tuple{p.qk, p.qb, p.ak, p.ab}; };
  const auto [qk, qb, ak, ab] = when(
      min(total) >= lowestSum, [&] { return tied(aroundMiddle(rows)); }, [&] { return tied(byHalves(rows)); });
  return {qk, qb, ak, ab};
}

Decay::Products Decay::products(const ChunkRows &rows) const {
  const Products inside = insideBlocks(rows);
  const auto placed = [&](const ChunkTile &x, const ChunkTile &) {
    if (blocks == 1)
      return reshape(x, {size, size});
    const auto i = expandDims(expandDims(expandDims(range(0, blocks), 1), 2), 3),
               j = expandDims(expandDims(expandDims(range(0, blocks), 0), 0), 3);
    const auto wide = broadcastTo(expandDims(x, 2), {blocks, blockRows, blocks, blockRows});
    return reshape(select(i == j, wide, 0.0f), {size, size});
  };
  Products out = each(inside, inside, placed);
  for (int together = 1; together < blocks; together *= 2) {
    const auto here = secondAgainstFirst(expandDims(range(0, size), 1), expandDims(range(0, size), 0),
                                         together * blockRows);
    const Products level = squares(reshaped(acrossBlocks(rows, together), {size, dim}));
    out = each(out, level, [&](const ChunkTile &x, const ChunkTile &y) { return select(here, y, x); });
  }
  return out;
}

} // namespace kiln::kernels
