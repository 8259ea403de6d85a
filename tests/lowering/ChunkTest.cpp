// Kernels of linear attention by chunks: gates by a running sum along the rows, products whose operands are computed
// from tiles that others need too, a state that is carried.  More tiles are alive than a thread has registers.  Against
// the recurrence in float64, and assembled: what the assembler spills.
#include "compiler/codegen/Assembler.h"
#include "compiler/language/Language.h"
#include "compiler/target/Target.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;

struct Chunk {
  std::int64_t rows, columns; ///< C; K and V
  bool tf32x3;                ///< products of f32 in three parts, else of f16
  int warps;
  const char *name;
  unsigned spilled; ///< bytes, at most
};

/// o = scale-free gated linear attention; S = diag(e^sum g) S + (k e^(sum g - G))^T v.  One sequence, one head.
lang::Kernel recorded(const Chunk &c) {
  using namespace kiln::language;
  return kernel(
      "k", {.warps = c.warps},
      [&](Arg<Pointer<f16>, "q"> q, Arg<Pointer<f16>, "k"> k, Arg<Pointer<f16>, "v"> v, Arg<Pointer<f32>, "g"> g,
          Arg<Pointer<f32>, "h"> h, Arg<Pointer<f32>, "o"> o, Arg<Pointer<f32>, "z"> z, Arg<i32, "tokens"> tokens) {
        const auto multiply = [&](const Tile<f32> &x, const Tile<f32> &y, const Tile<f32> &sum) -> Tile<f32> {
          return c.tf32x3 ? dot(x, y, sum, Precision::Tf32x3) : dot(cast<f16>(x), cast<f16>(y), sum);
        };
        const auto rows = [&](const auto &p) {
          return makeView(p, {tokens, c.columns}, {c.columns, 1}, {c.rows, c.columns});
        };
        auto Q = rows(q), K = rows(k), V = rows(v);
        auto G = rows(g), O = rows(o);
        auto state = makeView(h, {c.columns, c.columns}, {c.columns, 1}, {c.columns, c.columns}),
             last = makeView(z, {c.columns, c.columns}, {c.columns, 1}, {c.columns, c.columns});
        auto i = expandDims(range(0, c.rows), 1), j = expandDims(range(0, c.rows), 0);
        auto S = loop(over(0, tokens, c.rows), loadView(state, {0, 0}), [&](auto t, auto S) {
          auto qt = cast<f32>(loadView(Q, {t, 0})), kt = cast<f32>(loadView(K, {t, 0})),
               vt = cast<f32>(loadView(V, {t, 0}));
          auto gt = loadView(G, {t, 0});
          auto running = cumsum(gt, along(0));
          auto all = sum(gt, along(0));
          auto A =
              multiply(qt * exp(running, approx), transpose(kt * exp(-running, approx)), zeros<f32>({c.rows, c.rows}));
          A = select(i >= j, A, 0.0f);
          auto out = multiply(qt * exp(running, approx), S, zeros<f32>({c.rows, c.columns}));
          storeView(O, {t, 0}, multiply(A, vt, out));
          return multiply(transpose(kt * exp(expandDims(all, 0) - running, approx)), vt,
                          S * expandDims(exp(all, approx), 1));
        });
        storeView(last, {0, 0}, S);
      });
}

/// What the launcher would know of the pointers: they are aligned.
std::string aligned(std::string text) {
  const std::string name = "{tile.name", known = "{tile.divisibility = 16 : i32, tile.name";
  for (std::size_t at = 0; (at = text.find("> " + name, at)) != std::string::npos; at += known.size())
    text.replace(at + 2, name.size(), known);
  return text;
}

void check(std::mt19937_64 &random, const Chunk &c, const char *target) {
  SCOPED_TRACE(std::string(target) + ", " + c.name);
  const lang::Kernel kernel = recorded(c);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  const std::int64_t tokens = c.rows + c.rows / 2 + 1, width = c.columns;
  const auto n = static_cast<std::size_t>(tokens * width), square = static_cast<std::size_t>(width * width);
  std::normal_distribution<float> normal;
  std::vector<_Float16> q(n), k(n), v(n);
  std::vector<float> g(n), h(square);
  for (std::size_t x = 0; x < n; ++x) {
    q[x] = static_cast<_Float16>(normal(random) / 8);
    k[x] = static_cast<_Float16>(normal(random) / 8);
    v[x] = static_cast<_Float16>(normal(random));
    g[x] = -std::abs(normal(random)) / 32;
  }
  for (float &x : h)
    x = normal(random);
  Emulator gpu(target);
  Buffer &bq = gpu.upload(q), &bk = gpu.upload(k), &bv = gpu.upload(v), &bg = gpu.upload(g), &bh = gpu.upload(h),
         &bo = gpu.allocate(n * sizeof(float)), &bz = gpu.allocate(square * sizeof(float));
  (void)bo.poison(std::byte(0xCD));
  (void)bz.poison(std::byte(0xCD));
  const KernelRun run = runKernel(gpu, target, aligned(kernel.text()), static_cast<unsigned>(c.warps),
                                  {bq, bk, bv, bg, bh, bo, bz, static_cast<std::int32_t>(tokens)}, {}, From::Tile);
  ASSERT_EQ(run.error, "");

  std::vector<double> S(h.begin(), h.end()), want(n);
  double most = 0, mostState = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto row = static_cast<std::size_t>(t * width);
    for (std::size_t x = 0; x < square; ++x) {
      const std::size_t a = x / static_cast<std::size_t>(width), b = x % static_cast<std::size_t>(width);
      S[x] = std::exp(static_cast<double>(g[row + a])) * S[x] +
             static_cast<double>(k[row + a]) * static_cast<double>(v[row + b]);
      want[row + b] += S[x] * static_cast<double>(q[row + a]);
    }
    for (std::size_t b = 0; b < static_cast<std::size_t>(width); ++b)
      most = std::max(most, std::abs(want[row + b]));
  }
  for (double x : S)
    mostState = std::max(mostState, std::abs(x));
  // Operands of 11 bits, or 32 in three parts; exp(x, approx) of up to e^4 loses a few bits more.
  const double part = c.tf32x3 ? 0x1p-18 : 0x1p-8;
  const auto got = gpu.download<float>(bo), gotState = gpu.download<float>(bz);
  for (std::size_t x = 0; x < n; ++x)
    ASSERT_NEAR(got[x], want[x], part * most) << "row " << x / static_cast<std::size_t>(width);
  for (std::size_t x = 0; x < square; ++x)
    ASSERT_NEAR(gotState[x], S[x], part * mostState);
}

// The spills are sm_80's (sm_90a: none).  With a thread's rows apart for the running sum they were 8 and 84 bytes, with
// 7 barriers for 5, 118 shuffles for 44, and 7 % more instructions.
const Chunk chunks[] = {{64, 64, false, 4, "64 x 64 of f16, 4 warps", 48},
                        {32, 64, true, 4, "32 x 64 of f32 in three parts, 4 warps", 144}};

TEST(Chunk, OfLinearAttentionIsTheRecurrence) {
  std::mt19937_64 random(61);
  for (const char *target : loweringTargets)
    for (const Chunk &c : chunks) {
      check(random, c, target);
      if (HasFatalFailure())
        return;
    }
}

TEST(Chunk, OfLinearAttentionSpillsLittle) {
  const auto assembler = findAssembler();
  if (!assembler.ok())
    GTEST_SKIP() << assembler.status().toString();
  for (const char *target : {"sm_80", "sm_90a"})
    for (const Chunk &c : chunks) {
      SCOPED_TRACE(std::string(target) + ", " + c.name);
      const LoweredKernel kernel = lowered(aligned(recorded(c).text()), target, false, From::Tile);
      ASSERT_TRUE(kernel.ok) << kernel.errors;
      const Result<AssembledModule> made = (*assembler)->assemble(kernel.ptx, target);
      ASSERT_TRUE(made.ok()) << made.status().toString();
      const KernelResources *k = made->resources.find("k");
      ASSERT_TRUE(k && k->spillStoreBytes && k->spillLoadBytes) << "the report says nothing of spills";
      std::printf("  %-8s%-44s%4u registers, %u bytes spilled, %u of shared memory\n", target, c.name, k->registers,
                  *k->spillStoreBytes, kernel.sharedBytes);
      EXPECT_LE(*k->spillStoreBytes, c.spilled);
      EXPECT_LE(*k->spillLoadBytes, c.spilled);
    }
}

} // namespace
} // namespace kiln::test
