#include "kernels/reduce_sum/ReduceSum.h"

#include "compiler/language/Language.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel partial(const ReduceSumConfig &c) {
  return kernel("reduce_sum_partial", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<T, 1, "x"> vector, TensorArg<f32, 1, "partial"> partial) {
                  const auto x = vector.pointer();
                  const auto n = vector.extent(0), stride = vector.stride(0);
                  const auto out = partial.pointer();
                  const auto inside = range(0, c.block);
                  const auto at = [&](const Scalar<i64> &first) {
                    if (c.adjacent)
                      return x + first + inside;
                    return x + first * stride + cast<i64>(inside) * stride;
                  };
                  const auto program = cast<i64>(programId()), programs = cast<i64>(numPrograms());
                  const auto blocks = n / c.block;
                  const auto whole = blocks * c.block; // up to here blocks are full
                  const auto total = loop(over(program * c.block, whole, programs * c.block), zeros<f32>({c.block}),
                                          [&](auto first, auto total) { return total + cast<f32>(load(at(first))); });
                  // The program whose turn it would be takes the rest.
                  const auto mask = (inside < cast<i32>(n - whole)) & (program == blocks % programs);
                  store(out + program, sum(total + cast<f32>(load(at(whole), mask))));
                });
}

template <Element T> static Kernel final(const ReduceSumConfig &c) {
  return kernel("reduce_sum_final", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<f32, 1, "partial"> sums, TensorArg<T, 1, "out"> out) {
                  const auto partial = sums.pointer();
                  const auto count = sums.extent(0);
                  const auto inside = range(0, c.block);
                  const auto total = loop(over(0, count, c.block), zeros<f32>({c.block}), [&](auto first, auto total) {
                    return total + load(partial + first + inside, cast<i64>(inside) < count - first);
                  });
                  store(out.pointer(), cast<T>(sum(total)));
                });
}

Kernel reduceSumPartial(DType element, const ReduceSumConfig &config) {
  return withElement<f32, f16, bf16>(element, "reduce_sum_partial", [&]<Element T>() { return partial<T>(config); });
}

Kernel reduceSumFinal(DType element, const ReduceSumConfig &config) {
  return withElement<f32, f16, bf16>(element, "reduce_sum_final", [&]<Element T>() { return final<T>(config); });
}

} // namespace kiln::kernels
