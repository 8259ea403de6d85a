#include "kernels/add/Add.h"

#include "kernels/support/Strided.h"

namespace kiln::kernels {

using namespace language;

/// In fp32, then rounded: the same as one rounding, since 24 bits >= 2 * 11 + 2 (fp16) and 2 * 8 + 2 (bf16).
template <Element T> static Tile<T> sumOf(const Tile<T> &x, const Tile<T> &y, Location loc = Location::current()) {
  const LocationScope scope(loc);
  return cast<T>(cast<f32>(x) + cast<f32>(y));
}

template <Element T> static Kernel addContiguous(const AddConfig &c) {
  return kernel("add", {.warps = c.warps, .config = {{"block", c.block}}},
                [&](Arg<Pointer<T>, "x"> x, Arg<Pointer<T>, "y"> y, Arg<Pointer<T>, "out"> out, Arg<i64, "n"> n) {
                  const auto first = cast<i64>(programId()) * c.block;
                  const auto i = range(0, c.block);
                  const auto px = x + first + i, py = y + first + i, to = out + first + i;
                  // Whole blocks need no mask, and their accesses are whole vectors whatever n is.
                  when(
                      first + c.block <= n, [&] { store(to, sumOf(load(px), load(py))); },
                      [&] {
                        const auto mask = i < cast<i32>(n - first);
                        store(to, sumOf(load(px, mask), load(py, mask)), mask);
                      });
                });
}

template <Element T> static Kernel addStrided(const AddConfig &c) {
  return kernel("add_strided", {.warps = c.warps, .config = {{"block", c.block}}},
                [&](Arg<Pointer<T>, "x"> x, Arg<Stride<T>, "x_stride_0"> x0, Arg<Stride<T>, "x_stride_1"> x1,
                    Arg<Stride<T>, "x_stride_2"> x2, Arg<Stride<T>, "x_stride_3"> x3, Arg<Pointer<T>, "y"> y,
                    Arg<Stride<T>, "y_stride_0"> y0, Arg<Stride<T>, "y_stride_1"> y1, Arg<Stride<T>, "y_stride_2"> y2,
                    Arg<Stride<T>, "y_stride_3"> y3, Arg<Pointer<T>, "out"> out, Arg<Stride<T>, "out_stride_0"> o0,
                    Arg<Stride<T>, "out_stride_1"> o1, Arg<Stride<T>, "out_stride_2"> o2,
                    Arg<Stride<T>, "out_stride_3"> o3, Arg<i64, "e1"> e1, Arg<i64, "e2"> e2, Arg<i64, "e3"> e3) {
                  const StridedBlock block(c.block, e1, e2, e3);
                  const auto a = load(block.at(x, {x0, x1, x2, x3}), block.mask);
                  const auto b = load(block.at(y, {y0, y1, y2, y3}), block.mask);
                  store(block.at(out, {o0, o1, o2, o3}), sumOf(a, b), block.mask);
                });
}

Kernel add(ElementType element, const AddConfig &config) {
  return withElement<f32, f16, bf16>(
      element, "add", [&]<Element T>() { return config.strided ? addStrided<T>(config) : addContiguous<T>(config); });
}

} // namespace kiln::kernels
