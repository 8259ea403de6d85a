#include "kernels/layer_norm/LayerNorm.h"

#include "kernels/support/Strided.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// weight[j], bias[j] for the columns of one tile, [1, C]; 1 and 0 without them.
template <Element T> struct Affine {
  Pointer<T> weight, bias;
  bool present = false;

  Tile<f32> apply(const Tile<f32> &x, const Scalar<i64> &first, const Tile<i32> &column, const Tile<i1> &columnMask,
                  Location loc = Location::current()) const {
    const LocationScope scope(loc);
    if (!present)
      return x;
    return x * cast<f32>(load(weight + first + column, columnMask)) +
           cast<f32>(load(bias + first + column, columnMask));
  }
};

template <Element T> struct Problem {
  RowBlock<T> x, out;
  Affine<T> affine;
  Tile<i1> rowMask;
  Scalar<i64> columns;
  Scalar<f32> eps;
  const LayerNormConfig &config;
};

} // namespace

/// A row is one tile: its mean, then the mean square of the differences to it.
template <Element T> static void normaliseOnce(const Problem<T> &p, const Scalar<i32> &columns) {
  const auto column = columnsOfTile(p.config.block);
  const auto columnMask = column < columns;
  const auto mask = p.rowMask & columnMask;
  const auto count = cast<f32>(columns);
  const auto value = cast<f32>(load(p.x.at(column), mask));
  const auto mean = div(sum(value, along(1)), count);
  const auto difference = select(mask, value - expandDims(mean, 1), 0.0f);
  const auto variance = div(sum(difference * difference, along(1)), count);
  const auto scale = expandDims(rsqrt(variance + p.eps, precise), 1);
  const auto first = constant<i64>(0);
  store(p.out.at(column), cast<T>(p.affine.apply(difference * scale, first, column, columnMask)), mask);
}

/// Rows of any length.  Each element of the tile keeps count, mean and sum of squared differences of the numbers it has
/// met (Welford); they are combined at the end (Chan, Golub, LeVeque), and the row is read again.
template <Element T> static void normaliseLoop(const Problem<T> &p) {
  const int block = p.config.block;
  const Shape shape = {p.config.rowsPerProgram, block};
  const auto column = columnsOfTile(block);
  const auto whole = p.columns / block * block; // up to here tiles are full
  const auto tailMask = column < cast<i32>(p.columns - whole);

  const auto [rounds, means, squares] = loop(over(0, whole, block), constant<f32>(0), zeros<f32>(shape),
                                             zeros<f32>(shape), [&](auto first, auto rounds, auto mean, auto square) {
                                               const auto value = cast<f32>(load(p.x.at(first, column), p.rowMask));
                                               const auto count = rounds + 1;
                                               const auto before = value - mean;
                                               const auto next = mean + before * div(1.0f, count);
                                               return std::tuple{count, next, square + before * (value - next)};
                                             });
  const auto tail = cast<f32>(load(p.x.at(whole, column), p.rowMask & tailMask));
  const auto before = select(broadcastTo(tailMask, shape), tail - means, 0.0f);
  const auto count = rounds + cast<f32>(tailMask);
  const auto mean = means + div(before, max(count, 1.0f));
  const auto square = squares + select(broadcastTo(tailMask, shape), before * (tail - mean), 0.0f);

  const auto [rowCount, rowMean, rowSquare] =
      reduce(std::tuple{broadcastTo(count, shape), mean, square}, along(1),
             [](auto na, auto ma, auto sa, auto nb, auto mb, auto sb) {
               const auto n = na + nb;
               const auto share = div(nb, max(n, 1.0f));
               const auto difference = mb - ma;
               return std::tuple{n, ma + difference * share, sa + sb + difference * difference * na * share};
             });
  const auto centre = expandDims(rowMean, 1);
  const auto scale = expandDims(rsqrt(div(rowSquare, rowCount) + p.eps, precise), 1);

  const auto finish = [&](const Scalar<i64> &first, const Tile<i1> &columnMask) {
    const auto mask = p.rowMask & columnMask;
    const auto value = cast<f32>(load(p.x.at(first, column), mask));
    const auto normal = (value - centre) * scale;
    store(p.out.at(first, column), cast<T>(p.affine.apply(normal, first, column, columnMask)), mask);
  };
  loop(over(0, whole, block), [&](auto first) { finish(first, full<i1>({1, block}, true)); });
  finish(whole, tailMask);
}

template <Element T> static void normalise(const Problem<T> &p) {
  if (p.config.looping)
    normaliseLoop(p);
  else
    forColumns(cast<i32>(p.columns), p.config.block, [&](const Scalar<i32> &n) { normaliseOnce(p, n); });
}

template <Element T> static Kernel layerNormOf(const LayerNormConfig &c) {
  // Approximate divisions (2 ulp): the precise one calls a function, which costs the registers of a call.  The root is
  // precise: it is right for subnormal variances.
  const KernelOptions options = {.warps = c.warps, .grade = approx, .config = entriesOf(c)};
  const auto body = [&](const TensorView<T, 2> &x, const Affine<T> &affine, const TensorView<T, 2> &out,
                        const Scalar<f32> &eps) {
    const auto row = rowsOfProgram(c.rowsPerProgram);
    normalise(Problem<T>{RowBlock<T>(x, row, c.adjacent), RowBlock<T>(out, row, c.adjacent), affine, row < x.extent(0),
                         x.extent(1), eps, c});
  };
  constexpr TensorTraits wholeRows{.wholeRows = true};
  if (c.affine)
    return kernel("layer_norm", options,
                  [&](TensorArg<T, 2, "x", wholeRows> x, TensorArg<T, 1, "weight"> weight, TensorArg<T, 1, "bias"> bias,
                      TensorArg<T, 2, "out"> out,
                      Arg<f32, "eps"> eps) { body(x, Affine<T>{weight.pointer(), bias.pointer(), true}, out, eps); });
  return kernel("layer_norm", options,
                [&](TensorArg<T, 2, "x", wholeRows> x, TensorArg<T, 2, "out"> out, Arg<f32, "eps"> eps) {
                  body(x, Affine<T>{}, out, eps);
                });
}

Kernel layerNorm(DType element, const LayerNormConfig &config) {
  return withElement<f32, f16, bf16>(element, "layer_norm", [&]<Element T>() { return layerNormOf<T>(config); });
}

} // namespace kiln::kernels
