#include "kernels/transpose/Transpose.h"

#include "compiler/language/Language.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel transposeOf(const TransposeConfig &c) {
  return kernel("transpose", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<T, 2, "x"> x, TensorArg<T, 2, "out"> out) {
                  const auto rows = x.extent(0), columns = x.extent(1);
                  const auto from = x.tiles({c.tileRows, c.tileColumns}, unitDim(c.xUnit));
                  const auto to = out.withExtents(columns, rows).tiles({c.tileColumns, c.tileRows}, unitDim(c.outUnit));
                  const auto tilesAcross = ceilDiv(columns, c.tileColumns);
                  const auto program = cast<i64>(programId());
                  const auto i = program / tilesAcross * c.tileRows;
                  const auto j = program % tilesAcross * c.tileColumns;
                  storeView(to, {j, i}, language::transpose(loadView(from, {i, j})));
                });
}

Kernel transpose(DType element, const TransposeConfig &config) {
  return withElement<f32, f16, bf16, f64, i8, i16, i32, i64>(element, "transpose",
                                                             [&]<Element T>() { return transposeOf<T>(config); });
}

} // namespace kiln::kernels
