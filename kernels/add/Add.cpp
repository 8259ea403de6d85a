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
  return kernel("add", {.warps = c.warps, .config = entriesOf(c)},
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
  return kernel("add_strided", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<T, 4, "x"> x, TensorArg<T, 4, "y"> y, TensorArg<T, 4, "out"> out) {
                  const StridedBlock here(c.block, out);
                  store(here.at(out), sumOf(load(here.at(x), here.mask), load(here.at(y), here.mask)), here.mask);
                });
}

Kernel add(DType element, const AddConfig &config) {
  return withElement<f32, f16, bf16>(
      element, "add", [&]<Element T>() { return config.strided ? addStrided<T>(config) : addContiguous<T>(config); });
}

} // namespace kiln::kernels
