// The table of operations: complete, all of it recorded once, and accepted by the dialects.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

using namespace kiln::language;

namespace {

/// Records every operation of the table.
Kernel everything() {
  return kernel(
      "everything", {},
      [](Arg<Pointer<f32>, "x"> x, Arg<Pointer<u32>, "u"> u, Arg<Pointer<i16>, "h"> h, Arg<f32, "a"> a, Arg<i32, "n"> n,
         Arg<u64, "w"> w, Arg<f64, "d"> d, Arg<bf16, "b"> b, Arg<Pointer<f8e4m3>, "q"> q,
         TensorArg<f16, 2, "tensor"> tensor) {
        storeView(tensor.at(n, all).tiles({32}), {0}, zeros<f16>({32}));
        auto i = reshape(range(0, 256), {8, 32});
        auto y = load(x + i, i < n, 1.5f, Cache::Streaming);
        auto v = load(u + i, n > 0, {}, Cache::Volatile);
        auto z = exp(y, approx) * y + exp2(y) - log(y, approx) * log2(y) / sin(y, approx);
        z += cos(z) + tanh(z, approx) + erf(z) + sqrt(z, approx) + rsqrt(z, approx) + pow(abs(z), 2.5f, approx);
        z = copysign(expm1(z) + log1p(z) * log10(z), cbrt(y));
        z = fma(z, y, 1.0f) + floor(z) + ceil(z) + trunc(z) + round(z) - div(-z, a, approx);
        z = max(min(maximum(minimum(z, 1.0f), y), 2), a);
        auto m = ((z < 1.0f) & (z <= a)) | ((z > y) ^ (z >= y)) | isNan(z) | ((z == y) & !(z != y));
        v = v / 3u % 5u + max(v, 1u) - min(v, cast<u32>(programId(Axis::Y))) * (v >> 1) + (v << 2);
        auto s = i / n % 7 + max(min(i, n), abs(i)) + (i >> 1) + ((~i & i) | (i ^ n));
        m = (m & (v < 7u) & (s <= n)) | (v > 1u) | (v >= 1u) | (w % 3u == 0u);
        z = select(m, z, 0.0f) + cast<f32>(v) + cast<f32>(s) + bitcast<f32>(v) + cast<f32>(d) + cast<f32>(b);
        auto wide = cast<i64>(s) + cast<i64>(v) + cast<i64>(cast<f64>(z));
        v = cast<u32>(wide) + cast<u32>(z);
        auto [l, r] = split(join(transpose(z), transpose(z, {1, 0})));
        auto t = broadcastTo(expandDims(sum(l, along(0)), 0), {32, 8}) + r;
        store(x + i, transpose(t), m, Cache::Global);
        store(q + range(0, 8), cast<f8e4m3>(max(t, along(0))));
        store(x - 1, argmax(t, along(1)).rank() ? sum(cast<f32>(argmax(t, along(1)))) : a);
        v = atomicAdd(u + i, v) + atomicMin(u + i, v, m, Order::Acquire, Scope::Cta) +
            atomicMax(u + i, 1u, m, Order::Release, Scope::Sys) + atomicAnd(u + i, v) + atomicOr(u + i, v) +
            atomicXor(u + i, v) + atomicExchange(u + i, 1u) + atomicCas(u + i, 0u, v, Order::AcqRel);
        (void)atomicMin(x, -1.0f);
        (void)atomicCas(h, 1, 2);
        (void)atomicExchange(x, a, n > 1);
        store(u + i, v);
        auto v2 = cast<i64>(v);
        auto view = makeView(x, {n, 1LL << 33}, {numPrograms(Axis::Z), 1}, {8, 32});
        storeView(narrow(view, along(0), 1, n), {n, 0}, gather(loadView(view, {n, 32}), i, along(0)), Cache::Streaming);
        auto c = cumsum(t, along(1), Direction::Reverse) + cumprod(t, along(0)) + cummax(t, along(0));
        c = dot(transpose(c), c, zeros<f32>({8, 8}), Precision::Tf32).rank()
                ? c
                : dot(c, transpose(c), zeros<f32>({32, 32}));
        auto [f, g] = minWithIndex(c, along(0));
        auto e = loop(over(0, n, 2), f,
                      [&](auto k, auto f) { return when(k > 3, [&] { return f * 2; }, [&] { return f; }); });
        auto [left, most] = whileLoop(
            n, e, [](auto k, auto f) { return (k > 0) & (max(f) < 100.0f); },
            [](auto k, auto f) { return std::tuple{k - 1, f + f}; });
        whileLoop([&] { return atomicAdd(u, 0u) > 7u; }, [&] { (void)atomicAdd(u, 1u); });
        e = whenRows(most > cast<f32>(left), [&] { return e * 3; }, [&] { return e; });
        when(n == 3, [&] { devicePrint("e \"quoted\" = ", e, g, n); });
        devicePrint("nothing");
        assume(multipleOf(n, 16) > 0);
        store(x + multipleOf(maxContiguous(v2, 8), 8), y);
        store(x, sum(withLayout(z, {.sizePerThread = {2, 1}, .threadsPerWarp = {4, 8}, .warpsPerCTA = {1, 4}})));
        loop(over(0, n).stages(2).unroll(3), [&](auto i) { store(x + i, 1); });
        loop(over(0, n).unroll(3), [&](auto i) {
          const auto [p, q] = inlinePtx<std::tuple<f32, i32>(f32, i32)>("mov.f32 $0, $2; neg.s32 $1, $3;", z, i);
          store(x + q, p);
          inlinePtxWithEffects<void(i32)>("nanosleep.u32 $0;", i);
        });
        auto halves = tensor.tiles({16, 64});
        auto ring = fill(pipeline<f16, "tensor">({16, 64}, {.stages = 3}), halves, {0, n});
        auto [taken, tile] = take(ring);
        drain(release(taken));
        store(tensor.pointer(), max(tile));
        deviceAssert(n < 100, "n is too large: 100 \\ more");
        deviceAssert(e > 0.0f, "not positive");
      });
}

TEST(Operations, EachOfTheTableCanBeRecorded) {
  const Kernel k = everything();
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const std::string text = kiln::test::withoutLocations(k.text());
  for (const std::string_view name : recordedOperations()) {
    const std::regex word("(^|[ \\n])" + std::regex_replace(std::string(name), std::regex("\\."), "\\.") + "[ (\\n{]");
    EXPECT_TRUE(std::regex_search(text, word)) << name << " is recorded by nothing here: extend everything()";
  }
}

TEST(Operations, NothingElseIsRecorded) {
  const Kernel k = everything();
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const std::set<std::string_view> known(recordedOperations().begin(), recordedOperations().end());
  const std::string text = kiln::test::withoutLocations(k.text());
  const std::regex operation("(?:^|\\n| = ) *((?:arith|math|scf|tile|func|return)[a-z0-9_.]*)");
  unsigned found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), operation), end; it != end; ++it, ++found)
    EXPECT_TRUE(known.count((*it)[1].str())) << (*it)[1].str();
  EXPECT_GT(found, 150u);
}

/// The operations of the tile dialect, by their definitions.
TEST(Operations, AreThoseOfTheDialect) {
  std::set<std::string> defined, recorded;
  const std::regex definition("Tile_Op<\"([a-z0-9_]+)\"");
  for (const auto &file : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/compiler/tile")) {
    if (file.path().extension() != ".td")
      continue;
    std::ifstream in(file.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it)
      defined.insert("tile." + (*it)[1].str());
  }
  if (defined.empty())
    GTEST_SKIP() << "the dialect's definitions are not in the source folder of the tests";
  for (const std::string_view name : recordedOperations())
    if (name.starts_with("tile."))
      recorded.emplace(name);
  EXPECT_EQ(recorded, defined);
}

TEST(Operations, TheDialectsAcceptAll) {
  if (kiln::test::kilnOpt().empty())
    GTEST_SKIP() << "kiln-opt was not built";
  const Kernel k = everything();
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(kiln::test::complaintsOfKilnOpt({k.text()}), "");
  // The test can fail.
  std::string broken = k.text();
  broken.replace(broken.find("tile.range 0"), 12, "tile.range 1");
  EXPECT_NE(kiln::test::complaintsOfKilnOpt({broken}).find("numbers"), std::string::npos);
}

} // namespace
