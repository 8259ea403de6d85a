// Compile time grows with a tile, not with its square.  Measured in CPU time of the process, as a ratio: what else runs
// on the machine counts little, and the machine nothing.
#include "tests/lowering/LoweringHarness.h"

#include "compiler/language/Language.h"

#include <ctime>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace language;

double cpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// To compile the kernel.
double secondsOf(const language::Kernel &k) {
  EXPECT_TRUE(k.ok()) << k.status().toString();
  const double before = cpuSeconds();
  const LoweredKernel made = lowered(k.text(), "sm_90a", false, From::Tile);
  const double seconds = cpuSeconds() - before;
  EXPECT_TRUE(made.ok) << made.errors;
  return seconds;
}

/// Four times as much work; 16 times as much time if some pass is quadratic, and 4 to 6 if none is.
void expectLinear(const char *what, const language::Kernel &small, const language::Kernel &large) {
  double quarter = 1e9, whole = 1e9;
  // The least of three of each, in turn.  Of more where others take the machine's caches meanwhile: the larger one
  // needs them more, and a quadratic one stays beyond the limit.
  for (int i = 0; i < 3 || (i < 12 && whole >= 9 * quarter); ++i) {
    quarter = std::min(quarter, secondsOf(small));
    whole = std::min(whole, secondsOf(large));
  }
  std::printf("%s: a quarter of the tile %.0f ms, the whole %.0f ms of CPU time\n", what, quarter * 1e3, whole * 1e3);
  EXPECT_LT(whole, 9 * quarter) << what;
}

/// The precise exp of a tile of that many registers a thread.
language::Kernel exponentials(int registers) {
  return kernel("exponentials", {.warps = 1}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "rows"> rows) {
    const auto view = makeView(x, {rows, 128}, {128, 1}, {registers / 4, 128});
    storeView(view, {0, 0}, exp(loadView(view, {0, 0})));
  });
}

/// Loads and stores of one element each, each in a conditional.
language::Kernel guarded(int registers) {
  return kernel("guarded", {.warps = 1}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "rows"> rows, Arg<i64, "pitch"> pitch) {
    const auto view = makeView(x, {rows, 128}, {128, pitch}, {registers / 4, 128}, Unit::None);
    storeView(view, {0, 0}, loadView(view, {0, 0}) + 1.0f);
  });
}

TEST(CompileTime, OfATileOfExponentialsIsNotQuadratic) {
  expectLinear("exp", exponentials(128), exponentials(512));
}

TEST(CompileTime, OfATileOfGuardedLoadsIsNotQuadratic) {
  expectLinear("guarded loads", guarded(128), guarded(512));
}

} // namespace
} // namespace kiln::test
