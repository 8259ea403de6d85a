#include "kernels/copy/Copy.h"

#include "kernels/support/Strided.h"

namespace kiln::kernels {

using namespace language;

template <Element T> static Kernel copyContiguous(const CopyConfig &c) {
  const int block = c.block;
  return kernel("copy", {.warps = c.warps, .config = entriesOf(c)},
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
  const int block = c.block;
  return kernel("copy_strided", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<T, 4, "x"> x, TensorArg<T, 4, "out"> out) {
                  const StridedBlock here(block, out);
                  store(here.at(out), load(here.at(x), here.mask), here.mask);
                });
}

Kernel copy(DType element, const CopyConfig &config) {
  return withElement<f32, f16, bf16, f64, i8, i16, i32, i64>(element, "copy", [&]<Element T>() {
    CopyConfig c = config;
    c.block = config.blockFor(bitsOf(elementOf<T>) / 8);
    return c.strided ? copyStrided<T>(c) : copyContiguous<T>(c);
  });
}

} // namespace kiln::kernels
