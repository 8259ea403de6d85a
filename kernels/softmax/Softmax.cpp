#include "kernels/softmax/Softmax.h"

#include "kernels/support/Strided.h"

#include <limits>

namespace kiln::kernels {

using namespace language;

constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

/// A row is one tile.
template <Element T>
static void softmaxOnce(const RowBlock<T> &x, const RowBlock<T> &out, const Tile<i1> &rowMask,
                        const Scalar<i32> &columns, int block) {
  const auto column = columnsOfTile(block);
  const auto mask = rowMask & (column < columns);
  const auto value = cast<f32>(load(x.at(column), mask));
  const auto shown = select(mask, value, minusInfinity);
  const auto power = exp(shown - expandDims(max(shown, along(1)), 1));
  const auto scale = div(1.0f, sum(power, along(1)));
  store(out.at(column), cast<T>(power * expandDims(scale, 1)), mask);
}

/// Rows of any length: each element of the tile keeps the largest number it has met and the sum of exp(x - largest);
/// they are combined at the end, and the row is read again.
template <Element T>
static void softmaxLoop(const RowBlock<T> &x, const RowBlock<T> &out, const Tile<i1> &rowMask,
                        const Scalar<i64> &columns, const SoftmaxConfig &c) {
  const Shape shape = {c.rowsPerProgram, c.block};
  const auto column = columnsOfTile(c.block);
  const auto whole = columns / c.block * c.block; // up to here tiles are full and need no mask of columns
  const auto tailMask = rowMask & (column < cast<i32>(columns - whole));

  const auto meet = [](const auto &value, const auto &largest, const auto &total) {
    const auto next = max(largest, value);
    return std::tuple{next, total * exp(largest - next) + exp(value - next)};
  };
  // The lowest number, not minus infinity: its difference to itself is 0.
  const auto start = full<f32>(shape, std::numeric_limits<float>::lowest());
  const auto [inTiles, totals] =
      loop(over(0, whole, c.block), start, zeros<f32>(shape), [&](auto first, auto largest, auto total) {
        return meet(cast<f32>(load(x.at(first, column), rowMask)), largest, total);
      });
  const auto tail = select(tailMask, cast<f32>(load(x.at(whole, column), tailMask)), minusInfinity);
  const auto [largest, total] = meet(tail, inTiles, totals);

  const auto rowMax = expandDims(max(largest, along(1)), 1);
  const auto scale = expandDims(div(1.0f, sum(total * exp(largest - rowMax), along(1))), 1);

  const auto finish = [&](const Scalar<i64> &first, const Tile<i1> &mask) {
    const auto value = cast<f32>(load(x.at(first, column), mask));
    store(out.at(first, column), cast<T>(exp(value - rowMax) * scale), mask);
  };
  loop(over(0, whole, c.block), [&](auto first) { finish(first, rowMask); });
  finish(whole, tailMask);
}

template <Element T> static Kernel softmaxOf(const SoftmaxConfig &c) {
  return kernel("softmax",
                // Approximate: the error stays below 2 ulp + 1e-6, and bf16 rows take two thirds of the time.
                {.warps = c.warps, .grade = approx, .config = entriesOf(c)},
                [&](TensorArg<T, 2, "x", TensorTraits{.wholeRows = true}> x, TensorArg<T, 2, "out"> out) {
                  const auto row = rowsOfProgram(c.rowsPerProgram);
                  const auto rowMask = row < x.extent(0);
                  const auto columns = x.extent(1);
                  const RowBlock<T> from(x, row, c.adjacent), to(out, row, c.adjacent);
                  if (c.looping)
                    softmaxLoop(from, to, rowMask, columns, c);
                  else
                    forColumns(cast<i32>(columns), c.block,
                               [&](const Scalar<i32> &n) { softmaxOnce(from, to, rowMask, n, c.block); });
                });
}

Kernel softmax(DType element, const SoftmaxConfig &config) {
  return withElement<f32, f16, bf16>(element, "softmax", [&]<Element T>() { return softmaxOf<T>(config); });
}

} // namespace kiln::kernels
