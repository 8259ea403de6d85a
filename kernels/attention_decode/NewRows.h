//===- NewRows.h - Rows that a call adds to a cache ------------------------------===//
//
// Row t of k_new and v_new comes after the `count` rows that a sequence has; keys are rotated by their positions.
// Blocks of c.blockNew rows.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_NEWROWS_H
#define KILN_KERNELS_ATTENTION_DECODE_NEWROWS_H

#include "kernels/attention_decode/CacheRows.h"
#include "kernels/attention_decode/Rotary.h"

namespace kiln::kernels {

/// Tensors of T, tables of angles of C.
template <language::Element T, language::Element C> class NewRows {
  using Number = CacheRows::Number;
  using Columns = language::Scalar<language::i64>;
  using Tensor = language::TensorView<T, 4>;

public:
  NewRows(const AttentionDecodeConfig &c, const Tensor &keysOf, const Tensor &valuesOf, const Rotary<C> &rotate,
          const Number &batch, const Number &kvHead, const Number &count, const Number &added, const Columns &headDim,
          const Columns &valueDim)
      : c(c), keysOf(keysOf), valuesOf(valuesOf), rotate(rotate), batch(batch), kvHead(kvHead), count(count),
        added(added), headDim(headDim), valueDim(valueDim) {}

  /// From row `first` on, as the cache has them.
  language::Tile<T> keys(const Number &first) const {
    using namespace language;
    const auto t = expandDims(first + range(0, c.blockNew), 1);
    return rotate(tile(keysOf, first, c.dim, headDim), count + t, t < added);
  }
  language::Tile<T> values(const Number &first) const { return tile(valuesOf, first, c.dimV, valueDim); }

  /// Writes them to the caches, as far as there is room: `capacity` rows.
  void put(const CacheRows &cache, const Tensor &k, const Tensor &v, const Number &first,
           const Number &capacity) const {
    using namespace language;
    const auto t = expandDims(first + range(0, c.blockNew), 1);
    const auto inside = (t < added) & (count + t < capacity);
    const auto put = [&](const Tensor &to, const Tile<T> &values, int width, const Columns &columns) {
      const auto column = expandDims(range(0, width), 0);
      store(cache.at(to, kvHead, count + t, inside) + column, values, inside & (cast<i64>(column) < columns));
    };
    put(k, keys(first), c.dim, headDim);
    put(v, values(first), c.dimV, valueDim);
  }

private:
  language::Tile<T> tile(const Tensor &rowsOf, const Number &first, int width, const Columns &columns) const {
    using namespace language;
    const auto view = rowsOf.at(batch, all, kvHead, all).withExtents(rowsOf.extent(1), columns);
    return loadView(view.tiles({c.blockNew, width}), {first, 0});
  }

  const AttentionDecodeConfig &c;
  Tensor keysOf, valuesOf;
  Rotary<C> rotate;
  Number batch, kvHead, count, added;
  Columns headDim, valueDim;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_NEWROWS_H
