#include "kernels/cumsum/Cumsum.h"

#include "kernels/support/Strided.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel cumsumOf(const CumsumConfig &c) {
  return kernel("cumsum", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<T, 2, "x"> x, TensorArg<T, 2, "out"> out) {
                  const auto row = rowsOfProgram(c.rowsPerProgram);
                  const auto rowMask = row < x.extent(0);
                  const auto column = columnsOfTile(c.block);
                  const auto columns = x.extent(1);
                  const RowBlock<T> from(x, row, c.adjacent), to(out, row, c.adjacent);
                  const auto whole = columns / c.block * c.block; // up to here tiles are full

                  // One tile: the sums so far go in, [R, 1], and those after it come out.
                  const auto step = [&](const Scalar<i64> &first, const Tile<i1> &mask, const Tile<f32> &before) {
                    const auto value = cast<f32>(load(from.at(first, column), mask));
                    store(to.at(first, column), cast<T>(language::cumsum(value, along(1)) + before), mask);
                    return before + expandDims(sum(value, along(1)), 1);
                  };
                  const auto before = loop(over(0, whole, c.block), zeros<f32>({c.rowsPerProgram, 1}),
                                           [&](auto first, auto before) { return step(first, rowMask, before); });
                  step(whole, rowMask & (column < cast<i32>(columns - whole)), before);
                });
}

Kernel cumsum(DType element, const CumsumConfig &config) {
  return withElement<f32, f16, bf16>(element, "cumsum", [&]<Element T>() { return cumsumOf<T>(config); });
}

} // namespace kiln::kernels
