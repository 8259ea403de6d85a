//===- Rotary.h - Rows of queries and keys, rotated by their positions ----------===//
//
// (a, b) becomes (a cos - b sin, a sin + b cos) for each pair of the first `rotary` columns; others stay.  Computed in
// fp32 and rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ROTARY_H
#define KILN_KERNELS_ATTENTION_DECODE_ROTARY_H

#include "compiler/language/Language.h"
#include "kernels/attention_decode/AttentionDecode.h"

namespace kiln::kernels {

/// Tables [position, pair]; of C.
template <language::Element C> class Rotary {
public:
  Rotary(const AttentionDecodeConfig &c, const language::TensorView<C, 2> &cosines,
         const language::TensorView<C, 2> &sines)
      : columns(c.rotary), pairs(c.pairs), cosines(cosines), sines(sines) {}

  /// `x`, [rows, width], at `positions`, [rows, 1]; rows that are not `inside` stay.
  template <language::Element T>
  language::Tile<T> operator()(const language::Tile<T> &x, const language::Tile<language::i32> &positions,
                               const language::Tile<language::i1> &inside) const {
    using namespace language;
    if (columns == 0)
      return x;
    const auto width = static_cast<int>(x.extent(1));
    const int half = columns / 2;
    const auto column = expandDims(range(0, width), 0);
    const bool halves = pairs == RotaryPairs::Halves;
    const auto isFirst = halves ? column < half : column % 2 == 0;
    const auto pair = halves ? select(isFirst, column, column - half) : column / 2;
    const auto other = halves ? select(isFirst, column + half, column - half) : select(isFirst, column + 1, column - 1);
    const auto isRotated = column < columns;
    const auto angle = [&](const TensorView<C, 2> &table) {
      const auto x = load(table.pointer() + cast<i64>(positions) * table.stride(0) + cast<i64>(pair) * table.stride(1),
                          inside & isRotated);
      if constexpr (std::same_as<C, f32>)
        return x;
      else
        return cast<f32>(x);
    };
    const auto partner =
        cast<f32>(gather(x, broadcastTo(select(isRotated, other, column), {x.extent(0), width}), along(1)));
    const auto own = cast<f32>(x), sine = angle(sines);
    const auto rotated = own * angle(cosines) + partner * select(isFirst, -sine, sine);
    return select(inside & isRotated, cast<T>(rotated), x);
  }

private:
  int columns;
  RotaryPairs pairs;
  language::TensorView<C, 2> cosines, sines;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ROTARY_H
