//===- PipelineLanguageTest.cpp - Rings of slots that an author writes -------------===//
//
// A kernel of the front end with two rings, one of each operand of a product, against float64.
//
//===----------------------------------------------------------------------===//
#include "kiln/Language.h"
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"

#include <algorithm>
#include <cmath>

namespace kiln::test {
namespace {

using namespace language;

constexpr int depth = 32, side = 64;

/// out = a b, one program; b's tiles lie with the columns or the rows adjacent.
language::Kernel product(bool turned, bool swapped) {
  return kernel(
      "product", {.warps = 4}, [&](TensorArg<f16, 2, "a"> a, TensorArg<f16, 2, "b"> b, TensorArg<f32, 2, "out"> out) {
        const Unit unit = turned ? unitDim(0) : Unit::Last;
        auto left = a.tiles({side, depth}), right = b.tiles({depth, side}, unit);
        auto n = cast<i32>(a.extent(1));
        auto rows = pipeline<f16, "a">({side, depth}, {.stages = 3});
        auto columns = pipeline<f16, "b">({depth, side}, {.stages = 3, .contiguous = unit});
        for (int i = 0; i < 2; ++i) {
          rows = fill(rows, swapped ? b.tiles({side, depth}) : left, {0, i * depth});
          columns = fill(columns, right, {i * depth, 0});
        }
        auto [sum, lastRows, lastColumns] = loop(over(0, n, depth), zeros<f32>({side, side}), rows, columns,
                                                 [&](auto i, auto sum, auto rows, auto columns) {
                                                   auto [takenRows, x] = take(rows);
                                                   auto [takenColumns, y] = take(columns);
                                                   rows = fill(takenRows, left, {0, i + 2 * depth});
                                                   columns = fill(takenColumns, right, {i + 2 * depth, 0});
                                                   return std::tuple{dot(x, y, sum), release(rows), release(columns)};
                                                 });
        drain(lastRows);
        drain(lastColumns);
        storeView(out.tiles({side, side}), {0, 0}, sum);
      });
}

Status multiply(Opened &on, const Operand &a, const Operand &b, const Operand &out, bool turned, bool swapped) {
  KILN_ASSIGN(const KernelSource source, sourceOf(product(turned, swapped)));
  KILN_ASSIGN(JitKernel * kernel, on.jit->kernel(source));
  return kernel->launch({1}, nullptr, named<"a">(a.tensor), named<"b">(b.tensor), named<"out">(out.tensor));
}

class PipelineLanguage : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
  }
  Status run(bool turned, bool swapped) { return multiply(*on, a, b, out, turned, swapped); }
  Opened *on = nullptr;
  Operand a, b, out;
};

TEST_P(PipelineLanguage, TwoRings) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  constexpr std::int64_t k = 7 * depth + 16; // the last tile is not whole
  std::vector<double> x(side * k);
  for (const bool turned : {false, true}) {
    SCOPED_TRACE(turned);
    for (double &e : x)
      e = normal(random);
    a = upload(*on->device, DType::F16, {side, k}, x);
    for (double &e : x)
      e = normal(random);
    b = upload(*on->device, DType::F16, {k, side}, x, {.dims = turned ? std::vector{1u, 0u} : std::vector{0u, 1u}});
    out = allocateOutput(*on->device, DType::F32, {side, side});
    const Status s = run(turned, false);
    ASSERT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.toString();
    const std::vector<double> got = download(out);
    for (std::int64_t i = 0; i < side; ++i)
      for (std::int64_t j = 0; j < side; ++j) {
        double want = 0, all = 0;
        for (std::int64_t t = 0; t < k; ++t) {
          const double term =
              a.values[static_cast<std::size_t>(i * k + t)] * b.values[static_cast<std::size_t>(t * side + j)];
          want += term, all += std::abs(term);
        }
        ASSERT_NEAR(got[static_cast<std::size_t>(i * side + j)], want, 1e-6 * all) << i << ", " << j;
      }
  }
}

/// What a wrong use of a ring is told when it is compiled.
std::string refusalOf(void (*use)(const View<f16> &)) {
  Opened *on = openedDevice("emulator:sm_90a");
  const auto source = sourceOf(kernel("wrong", {}, [&](TensorArg<f16, 2, "a"> a) { use(a.tiles({side, depth})); }));
  if (!on || !source.ok())
    return "not recorded: " + source.status().toString();
  const auto made = on->jit->kernel(*source);
  const Operand a = allocateOutput(*on->device, DType::F16, {side, depth});
  return made.ok() ? (*made)->launch({1}, nullptr, named<"a">(a.tensor)).toString() : made.status().toString();
}

TEST(PipelineMistakes, AreErrorsAtTheirLines) {
  const std::string full = refusalOf([](const View<f16> &tiles) {
    auto ring = pipeline<f16, "a">({side, depth}, {.stages = 2});
    for (int i = 0; i < 3; ++i)
      ring = fill(ring, tiles, {0, 0});
    drain(ring);
  });
  EXPECT_NE(full.find("PipelineLanguageTest.cpp:"), std::string::npos) << full;
  EXPECT_NE(full.find("free"), std::string::npos) << full;
  const std::string twice = refusalOf([](const View<f16> &tiles) {
    auto ring = pipeline<f16, "a">({side, depth}, {.stages = 2});
    (void)fill(ring, tiles, {0, 0});
    drain(fill(ring, tiles, {0, 0}));
  });
  EXPECT_NE(twice.find("PipelineLanguageTest.cpp:"), std::string::npos) << twice;
  EXPECT_NE(twice.find("once"), std::string::npos) << twice;
}

TEST(PipelineTargets, WithoutAsynchronousCopiesRefuse) {
  Opened *on = openedDevice("emulator:sm_75");
  ASSERT_TRUE(on);
  const Operand a = allocateOutput(*on->device, DType::F16, {side, depth}),
                b = allocateOutput(*on->device, DType::F16, {depth, side}),
                out = allocateOutput(*on->device, DType::F32, {side, side});
  const Status s = multiply(*on, a, b, out, false, false);
  EXPECT_EQ(s.code(), StatusCode::CompileError) << s.toString();
  EXPECT_NE(s.toString().find("PipelineLanguageTest.cpp:"), std::string::npos) << s.toString();
  EXPECT_NE(s.toString().find("needs the capability 'cp.async', which sm_75 lacks"), std::string::npos) << s.toString();
}

/// A seed of this project: what C++ cannot see, since views have no names, the verifier does.
TEST_P(PipelineLanguage, TilesOfAnotherTensorAreRefused) {
  const std::vector<double> ones(side * depth, 1);
  a = upload(*on->device, DType::F16, {side, depth}, ones);
  b = upload(*on->device, DType::F16, {depth, side}, ones);
  out = allocateOutput(*on->device, DType::F32, {side, side});
  const Status s = run(false, true);
  EXPECT_EQ(s.code(), StatusCode::CompileError) << s.toString();
  EXPECT_NE(s.toString().find("PipelineLanguageTest.cpp"), std::string::npos) << s.toString();
  EXPECT_NE(s.toString().find("'b'"), std::string::npos) << s.toString();
}

INSTANTIATE_TEST_SUITE_P(Devices, PipelineLanguage, testing::Range<std::size_t>(0, deviceNames().size()));

} // namespace
} // namespace kiln::test
