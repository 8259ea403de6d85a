#include "kernels/copy/Copy.h"

#include "kernels/support/Strided.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel copyContiguous(const CopyConfig &c) {
  const int block = c.blockFor(bitsOf(elementOf<T>) / 8);
  return kernel("copy", {.warps = c.warps, .config = {{"block", block}}},
                [&](Arg<Pointer<T>, "x"> x, Arg<Pointer<T>, "out"> out, Arg<i64, "n"> n) {
                  const auto first = cast<i64>(programId()) * block;
                  const auto i = range(0, block);
                  const auto from = x + first + i, to = out + first + i;
                  // Whole blocks need no mask, and their accesses are whole vectors whatever n is.
                  when(
                      first + block <= n, [&] { store(to, load(from)); },
                      [&] {
                        const auto mask = i < cast<i32>(n - first);
                        store(to, load(from, mask), mask);
                      });
                });
}

template <Element T> static Kernel copyStrided(const CopyConfig &c) {
  const int block = c.blockFor(bitsOf(elementOf<T>) / 8);
  return kernel("copy_strided", {.warps = c.warps, .config = {{"block", block}}},
                [&](Arg<Pointer<T>, "x"> x, Arg<Stride<T>, "x_stride_0"> x0, Arg<Stride<T>, "x_stride_1"> x1,
                    Arg<Stride<T>, "x_stride_2"> x2, Arg<Stride<T>, "x_stride_3"> x3, Arg<Pointer<T>, "out"> out,
                    Arg<Stride<T>, "out_stride_0"> o0, Arg<Stride<T>, "out_stride_1"> o1,
                    Arg<Stride<T>, "out_stride_2"> o2, Arg<Stride<T>, "out_stride_3"> o3, Arg<i64, "e1"> e1,
                    Arg<i64, "e2"> e2, Arg<i64, "e3"> e3) {
                  const StridedBlock rows(block, e1, e2, e3);
                  const auto value = load(rows.at(x, {x0, x1, x2, x3}), rows.mask);
                  store(rows.at(out, {o0, o1, o2, o3}), value, rows.mask);
                });
}

Kernel copy(ElementType element, const CopyConfig &config) {
  return withElement<f32, f16, bf16, f64, i8, i16, i32, i64>(element, "copy", [&]<Element T>() {
    return config.strided ? copyStrided<T>(config) : copyContiguous<T>(config);
  });
}

} // namespace kiln::kernels
