#include "Silu.h"

#include <cmath>

using namespace kiln::language;

static constexpr float beta = 1.0f;

Kernel silu(const SiluConfig &c) {
  return kernel("silu", {.warps = c.warps, .config = {{"block", c.block}}},
                [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<i64, "n"> n) {
                  auto i = cast<i64>(programId()) * c.block + cast<i64>(range(0, c.block));
                  auto mask = i < n;
                  auto value = load(x + i, mask);
                  store(out + i, value / (1.0f + exp(value * -beta)), mask);
                });
}

double siluOnHost(double x) {
  return x / (1 + std::exp(-double(beta) * x));
}
