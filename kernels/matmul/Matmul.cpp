#include "kernels/matmul/Matmul.h"

#include "compiler/language/Language.h"

namespace kiln::kernels {

using namespace language;

/// Where a program's tile lies.
struct TilePlace {
  Scalar<i64> batch, row, column;
};

static TilePlace placeOf(const Scalar<i64> &m, const Scalar<i64> &n, const MatmulConfig &c) {
  const auto down = ceilDiv(m, c.blockM), across = ceilDiv(n, c.blockN), tiles = down * across;
  const auto program = cast<i64>(programId());
  const auto batch = program / tiles, tile = program % tiles;
  const auto inGroup = across * c.groupM;
  const auto group = tile / inGroup, first = group * c.groupM;
  const auto rows = min(down - first, c.groupM); // the last group may be smaller
  const auto rest = tile % inGroup;
  return {batch, (first + rest % rows) * c.blockM, rest / rows * c.blockN};
}

static Tile<f32> activated(const Tile<f32> &x, Activation activation, Location loc = Location::current()) {
  const LocationScope scope(loc);
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Relu:
    return max(x, 0.0f);
  case Activation::Gelu: // x times the normal distribution's share below x
    return x * 0.5f * (1.0f + erf(x * 0.70710678118654752f));
  case Activation::Silu:
    return x / (1.0f + exp(-x));
  }
  return x;
}

template <Element T, Element O> static Kernel matmulOf(const MatmulConfig &c) {
  return kernel(
      "matmul",
      {.warps = c.warps,
       .config = {{"blockM", c.blockM},
                  {"blockN", c.blockN},
                  {"blockK", c.blockK},
                  {"groupM", c.groupM},
                  {"aUnit", c.aUnit},
                  {"bUnit", c.bUnit},
                  {"outUnit", c.outUnit},
                  {"bias", c.bias},
                  {"scaled", c.scaled},
                  {"activation", static_cast<int>(c.activation)},
                  {"precision", static_cast<int>(c.precision)}}},
      [&](Arg<Pointer<T>, "a"> a, Arg<i64, "a_batch_stride"> aBatch, Arg<i64, "a_row_stride"> aRow,
          Arg<i64, "a_column_stride"> aColumn, Arg<Pointer<T>, "b"> b, Arg<i64, "b_batch_stride"> bBatch,
          Arg<i64, "b_row_stride"> bRow, Arg<i64, "b_column_stride"> bColumn, Arg<Pointer<O>, "out"> out,
          Arg<i64, "out_batch_stride"> outBatch, Arg<i64, "out_row_stride"> outRow,
          Arg<i64, "out_column_stride"> outColumn, Arg<Pointer<O>, "bias"> bias, Arg<i64, "bias_stride"> biasStride,
          Arg<f32, "scale"> scale, Arg<i64, "m"> m, Arg<i64, "n"> n, Arg<i64, "k"> k) {
        using S = Sum<T, T>;
        const TilePlace at = placeOf(m, n, c);
        const auto left =
            makeView(a + at.batch * aBatch, {m, k}, {aRow, aColumn}, {c.blockM, c.blockK}, unitDim(c.aUnit));
        const auto right =
            makeView(b + at.batch * bBatch, {k, n}, {bRow, bColumn}, {c.blockK, c.blockN}, unitDim(c.bUnit));
        const auto to =
            makeView(out + at.batch * outBatch, {m, n}, {outRow, outColumn}, {c.blockM, c.blockN}, unitDim(c.outUnit));
        const auto total = loop(over(0, k, c.blockK), zeros<S>({c.blockM, c.blockN}), [&](auto i, auto sum) {
          const auto x = loadView(left, {at.row, i}), y = loadView(right, {i, at.column});
          if constexpr (std::same_as<T, f32>)
            return dot(x, y, sum, c.precision);
          else
            return dot(x, y, sum);
        });
        if constexpr (std::same_as<O, i32>) {
          storeView(to, {at.row, at.column}, total);
        } else {
          auto value = cast<f32>(total);
          if (c.scaled)
            value = value * scale;
          if (c.bias) {
            const auto of = makeView(bias, {n}, {biasStride}, {c.blockN}, Unit::None);
            value = value + expandDims(cast<f32>(loadView(of, {at.column})), 0);
          }
          storeView(to, {at.row, at.column}, cast<O>(activated(value, c.activation)));
        }
      });
}

Kernel matmul(ElementType element, ElementType out, const MatmulConfig &config) {
  if (element == ElementType::I8)
    return withElement<i32>(out, "matmul of i8", [&]<Element O>() { return matmulOf<i8, O>(config); });
  return withElement<f16, bf16, f8e4m3, f8e5m2, f32>(element, "matmul", [&]<Element T>() {
    return withElement<f32, f16, bf16>(out, "matmul", [&]<Element O>() { return matmulOf<T, O>(config); });
  });
}

} // namespace kiln::kernels
