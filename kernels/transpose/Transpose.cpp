#include "kernels/transpose/Transpose.h"

#include "compiler/language/Language.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel transposeOf(const TransposeConfig &c) {
  return kernel(
      "transpose",
      {.warps = c.warps,
       .config =
           {{"tileRows", c.tileRows}, {"tileColumns", c.tileColumns}, {"xUnit", c.xUnit}, {"outUnit", c.outUnit}}},
      [&](Arg<Pointer<T>, "x"> x, Arg<Stride<T>, "x_stride_0"> x0, Arg<Stride<T>, "x_stride_1"> x1,
          Arg<Pointer<T>, "out"> out, Arg<Stride<T>, "out_stride_0"> out0, Arg<Stride<T>, "out_stride_1"> out1,
          Arg<i64, "rows"> rows, Arg<i64, "columns"> columns) {
        const auto from = makeView(x, {rows, columns}, {x0, x1}, {c.tileRows, c.tileColumns}, unitDim(c.xUnit));
        const auto to = makeView(out, {columns, rows}, {out0, out1}, {c.tileColumns, c.tileRows}, unitDim(c.outUnit));
        const auto tilesAcross = ceilDiv(columns, c.tileColumns);
        const auto program = cast<i64>(programId());
        const auto i = program / tilesAcross * c.tileRows;
        const auto j = program % tilesAcross * c.tileColumns;
        storeView(to, {j, i}, language::transpose(loadView(from, {i, j})));
      });
}

Kernel transpose(ElementType element, const TransposeConfig &config) {
  return withElement<f32, f16, bf16, f64, i8, i16, i32, i64>(element, "transpose",
                                                             [&]<Element T>() { return transposeOf<T>(config); });
}

} // namespace kiln::kernels
