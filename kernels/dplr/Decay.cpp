#include "kernels/dplr/Decay.h"

#include <bit>
#include <functional>
#include <optional>
#include <vector>

namespace kiln::kernels {

using namespace language;

namespace {

ChunkRows scaled(const ChunkRows &rows, const Shape &shape, const Decay::Factors &by) {
  return {reshape(rows.q, shape) * by.q, reshape(rows.a, shape) * by.a, reshape(rows.k, shape) * by.kb,
          reshape(rows.b, shape) * by.kb};
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

ChunkTile turned(const ChunkTile &x) {
  return x.rank() == 3 ? transpose(x, {0, 2, 1}) : transpose(x);
}
/// A product of operands of 11 bits, as the specification asks of these (S4).
ChunkTile product(const ChunkTile &x, const ChunkTile &y) {
  return dot(x, y, Precision::Tf32);
}
ChunkTile product(const ChunkTile &x, const ChunkTile &y, const ChunkTile &more) {
  return dot(x, y, more, Precision::Tf32);
}

Decay::Products each(const Decay::Products &x, auto f) {
  return {f(x.qk), f(x.qb), f(x.ak), f(x.ab)};
}
/// The products of a level where its pairs are, elsewhere others.
Decay::Products selected(const Tile<i1> &pairs, const Decay::Products &x, const Decay::Products &otherwise) {
  const auto one = [&](const ChunkTile &a, const ChunkTile &b) { return select(pairs, a, b); };
  return {one(x.qk, otherwise.qk), one(x.qb, otherwise.qb), one(x.ak, otherwise.ak), one(x.ab, otherwise.ab)};
}
Decay::Products selected(const Tile<i1> &pairs, const Decay::Products &x) {
  return each(x, [&](const ChunkTile &a) { return select(pairs, a, 0.0f); });
}

ChunkRows sum(const ChunkRows &x, const ChunkRows &y) {
  return {x.q + y.q, x.a + y.a, x.k + y.k, x.b + y.b};
}

} // namespace

Decay::Decay(const ChunkTile &g, bool bounded)
    : size(static_cast<int>(g.extent(0))), dim(static_cast<int>(g.extent(1))), blocks(size / blockRows),
      bounded(bounded) {
  gate = reshape(bounded ? g : max(g, lowestGate), {blocks, blockRows, dim});
  const auto inclusive = cumsum(gate, along(1));
  total = language::sum(gate, along(1));
  lambda = exp(inclusive);
  exclusive = exp(inclusive - gate);
  mu = exp(expandDims(total, 1) - inclusive);
}

ChunkTile Decay::ofChunk() const {
  return exp(language::sum(total, along(0)));
}

Decay::Factors Decay::acrossBlocks(int together) const {
  if (together == 1)
    return {lambda, exclusive, mu};
  const auto groups = reshape(total, {blocks / together, together, dim});
  const auto inclusive = cumsum(groups, along(1));
  const auto before = reshape(exp(inclusive - groups), {blocks, 1, dim}),
             after = reshape(exp(expandDims(language::sum(groups, along(1)), 1) - inclusive), {blocks, 1, dim});
  return {lambda * before, exclusive * before, mu * after};
}

ChunkRows Decay::decayed(const ChunkRows &rows) const {
  return reshaped(scaled(rows, {blocks, blockRows, dim}, fromStartToEnd()), {size, dim});
}

Decay::Level Decay::across(int together) const {
  return {acrossBlocks(together),
          secondAgainstFirst(expandDims(range(0, size), 1), expandDims(range(0, size), 0), together * blockRows),
          false};
}

Decay::Level Decay::ofHalves(int half) const {
  const Shape groups{size / half, half, dim};
  const auto g = reshape(gate, groups);
  const auto inclusive = cumsum(g, along(1));
  const auto second = expandDims(expandDims(range(0, size / half) % 2 == 1, 1), 2);
  const auto only = [&](const Tile<i1> &here, const ChunkTile &x) {
    return reshape(select(here, x, 0.0f), {blocks, blockRows, dim});
  };
  return {{only(second, exp(inclusive)), only(second, exp(inclusive - g)),
           only(!second, exp(expandDims(language::sum(g, along(1)), 1) - inclusive))},
          secondAgainstFirst(rowOf(blockRows), columnOf(blockRows), half),
          true};
}

Decay::Level Decay::aroundMiddle() const {
  const auto first = expandDims(expandDims(range(0, blockRows) < blockRows / 2, 0), 2);
  const auto middle = language::sum(select(first, gate, 0.0f), along(1));
  const auto up = expandDims(exp(-middle), 1), down = expandDims(exp(middle - total), 1);
  return {{lambda * up, exclusive * up, mu * down}, columnOf(blockRows) < rowOf(blockRows), true};
}

template <typename Of> auto Decay::insideBlocks(Of f) const {
  using Levels = std::vector<std::function<Level()>>;
  const auto middle = [&] { return f(Levels{[this] { return aroundMiddle(); }}); };
  if (bounded)
    return middle();
  return when(min(total) >= lowestSum, middle, [&] {
    Levels levels;
    for (int half = blockRows / 2; half >= 1; half /= 2)
      levels.push_back([this, half] { return ofHalves(half); });
    return f(levels);
  });
}

Shape Decay::shapeOf(const Level &level) const {
  return level.inside ? Shape{blocks, blockRows, dim} : Shape{size, dim};
}

Decay::Products Decay::productsOf(const Level &level, const ChunkRows &rows) const {
  const ChunkRows x = reshaped(scaled(rows, {blocks, blockRows, dim}, level.factors), shapeOf(level));
  const auto k = turned(x.k), b = turned(x.b);
  return {product(x.q, k), product(x.q, b), product(x.a, k), product(x.a, b)};
}

Decay::Products Decay::products(const ChunkRows &rows) const {
  const auto inside = insideBlocks([&](const auto &levels) {
    std::optional<Products> out;
    for (const auto &make : levels) {
      const Level level = make();
      const Products here = productsOf(level, rows);
      out = out ? selected(level.pairs, here, *out) : selected(level.pairs, here);
    }
    return std::tuple{out->qk, out->qb, out->ak, out->ab};
  });
  const auto placed = [&](const ChunkTile &x) {
    if (blocks == 1)
      return reshape(x, {size, size});
    const auto i = expandDims(expandDims(expandDims(range(0, blocks), 1), 2), 3),
               j = expandDims(expandDims(expandDims(range(0, blocks), 0), 0), 3);
    const auto wide = broadcastTo(expandDims(x, 2), {blocks, blockRows, blocks, blockRows});
    return reshape(select(i == j, wide, 0.0f), {size, size});
  };
  Products out = each(std::make_from_tuple<Products>(inside), placed);
  for (int together = 1; together < blocks; together *= 2) {
    const Level level = across(together);
    out = selected(level.pairs, productsOf(level, rows), out);
  }
  return out;
}

ChunkRows Decay::gradientsOf(const Level &level, const ChunkRows &rows, const Products &of) const {
  const Shape blocked{blocks, blockRows, dim};
  const ChunkRows x = reshaped(scaled(rows, blocked, level.factors), shapeOf(level));
  const Products d = selected(level.pairs, of);
  const ChunkRows out = reshaped({product(d.qk, x.k, product(d.qb, x.b)), product(d.ak, x.k, product(d.ab, x.b)),
                                  product(turned(d.qk), x.q, product(turned(d.ak), x.a)),
                                  product(turned(d.qb), x.q, product(turned(d.ab), x.a))},
                                 blocked);
  return reshaped(scaled(out, blocked, level.factors), {size, dim});
}

ChunkRows Decay::gradients(const ChunkRows &rows, const Products &whole, const Products &inside) const {
  const auto blockwise = insideBlocks([&](const auto &levels) {
    std::optional<ChunkRows> out;
    for (const auto &make : levels) {
      const ChunkRows here = gradientsOf(make(), rows, inside);
      out = out ? sum(*out, here) : here;
    }
    return std::tuple{out->q, out->a, out->k, out->b};
  });
  ChunkRows out = std::make_from_tuple<ChunkRows>(blockwise);
  for (int together = 1; together < blocks; together *= 2)
    out = sum(out, gradientsOf(across(together), rows, whole));
  return out;
}

} // namespace kiln::kernels
