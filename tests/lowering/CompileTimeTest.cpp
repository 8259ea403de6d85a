// Compile time grows with a tile, not with its square.  Measured in CPU time of the process, as a ratio: what else runs
// on the machine counts little, and the machine nothing.
#include "tests/lowering/LoweringHarness.h"

#include "compiler/language/Language.h"

#include <ctime>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

double cpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// To compile the precise exp of a tile of that many registers a thread: the least of three.
double secondsOf(int registers) {
  using namespace language;
  const Kernel k = kernel("exponentials", {.warps = 1}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "rows"> rows) {
    const auto view = makeView(x, {rows, 128}, {128, 1}, {registers / 4, 128});
    storeView(view, {0, 0}, exp(loadView(view, {0, 0})));
  });
  EXPECT_TRUE(k.ok()) << k.status().toString();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double before = cpuSeconds();
    const LoweredKernel made = lowered(k.text(), "sm_90a", false, From::Tile);
    best = std::min(best, cpuSeconds() - before);
    EXPECT_TRUE(made.ok) << made.errors;
  }
  return best;
}

TEST(CompileTime, OfATileOfExponentialsIsNotQuadratic) {
  const double half = secondsOf(256), whole = secondsOf(512);
  std::printf("exp: 256 registers %.0f ms, 512 registers %.0f ms of CPU time\n", half * 1e3, whole * 1e3);
  EXPECT_LT(whole, 3 * half); // twice as much work; four times as much if some pass is quadratic
}

} // namespace
} // namespace kiln::test
