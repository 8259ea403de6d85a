//===- SpecialValuesTest.cpp - Infinities, NaNs, signed zeros, denormals -------===//
#include "tests/kernels/Bench.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr DType floatTypes[] = {DType::F32, DType::F16, DType::BF16};

double largestOf(DType t) {
  return t == DType::F16 ? 65504.0 : t == DType::BF16 ? 0x1.FEp127 : 0x1.FFFFFEp127;
}
double smallestOf(DType t) { // denormal
  return t == DType::F16 ? 0x1p-24 : t == DType::BF16 ? 0x1p-133 : 0x1p-149;
}

/// Values that arithmetic treats apart, and their neighbours.
std::vector<double> specials(DType t) {
  std::vector<double> out;
  const double small = smallestOf(t), large = largestOf(t), normal = t == DType::F16 ? 0x1p-14 : 0x1p-126;
  for (double v : {0.0, small, 3 * small, normal - small, normal, normal + small, 1.0, 1.5, 3.0, large / 2, large, inf})
    for (double sign : {1.0, -1.0})
      out.push_back(sign * v);
  out.push_back(nan);
  return out;
}

Array randomBits(DType t, const Shape &shape, std::uint64_t seed) {
  std::uint64_t bytes = dtypeBytes(t);
  for (std::uint64_t n : shape)
    bytes *= n;
  Array out{t, shape, std::vector<std::byte>(bytes)};
  std::mt19937_64 random(seed);
  for (std::byte &b : out.data)
    b = std::byte(random());
  return out;
}

/// Rows, one kind a row, in a matrix of `columns`.
Array rowsOf(DType t, std::uint64_t columns, const std::vector<std::vector<double>> &patterns) {
  std::vector<double> values;
  for (const std::vector<double> &p : patterns)
    for (std::uint64_t j = 0; j < columns; ++j)
      // Patterns of one value fill the row; of more: the first fills it, the others stand here and there.
      values.push_back(p.size() > 1 && j % 7 == 3 ? p[1 + (j / 7) % (p.size() - 1)] : p[0]);
  return arrayOf(t, {patterns.size(), columns}, values);
}

class SpecialValues : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
  }
  void run(const std::string &family, Arrays inputs, Place in = Place::Dense, Place out = Place::Dense) {
    Case c{family, std::move(inputs), {}, {}, {}};
    c.places["x"] = in;
    c.places["out"] = out;
    runCase(*on, std::move(c));
  }
  Opened *on = nullptr;
};

TEST_P(SpecialValues, CopyAndTransposeKeepEveryBit) {
  // All 16-bit patterns.
  Array all{DType::F16, {256, 256}, std::vector<std::byte>(2 * 65536)};
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(&all.data[2 * i], &bits, 2);
  }
  run("copy", {{"x", all}});
  run("transpose", {{"x", all}});
  for (DType t : {DType::I8, DType::U8, DType::I64, DType::F64, DType::F8E4M3, DType::BF16, DType::F32, DType::U32}) {
    run("copy", {{"x", randomBits(t, {1023}, 1)}}, Place::Offset, Place::Offset);
    run("copy", {{"x", randomBits(t, {3, 70, 9}, 2)}}, Place::Swapped, Place::Steps);
    run("transpose", {{"x", randomBits(t, {67, 130}, 3)}}, Place::Dense, Place::Padded);
  }
}

TEST_P(SpecialValues, AddRoundsCorrectly) {
  for (DType t : floatTypes) {
    const std::vector<double> s = specials(t);
    std::vector<double> x, y;
    for (double a : s)
      for (double b : s) {
        x.push_back(a);
        y.push_back(b);
      }
    run("add", {{"x", arrayOf(t, {s.size(), s.size()}, x)}, {"y", arrayOf(t, {s.size(), s.size()}, y)}});
    // Any bits: denormals, NaNs, far apart exponents, ties.
    run("add", {{"x", randomBits(t, {20011}, 5)}, {"y", randomBits(t, {20011}, 6)}});
  }
}

TEST_P(SpecialValues, Softmax) {
  for (DType t : floatTypes) {
    const double large = largestOf(t), small = smallestOf(t);
    const std::vector<std::vector<double>> patterns = {
        {0.0},           {-0.0, 0.0},     {3.5},           {large},        {-large},
        {large, -large}, {-large, large}, {small, -small}, {-inf},         {-inf, 1.0, 2},
        {-inf, -large},  {0.0, inf},      {1.0, nan},      {-inf, nan},    {inf},
        {nan},           {-large, -inf},  {1.0, -inf},     {-100, 88, 80}, {20.0, -70, -90, -100}};
    for (std::uint64_t columns : {31, 1000})
      run("softmax", {{"x", rowsOf(t, columns, patterns)}});
  }
  // Rows longer than a tile.
  const double large = largestOf(DType::F32);
  run("softmax", {{"x", rowsOf(DType::F32, 16385,
                               {{0.0},
                                {large},
                                {-large},
                                {-large, large},
                                {-inf},
                                {-inf, 1.0, 2},
                                {-inf, -large},
                                {1.0, nan},
                                {0.0, inf},
                                {-large, -inf}})}});
}

TEST_P(SpecialValues, LayerNorm) {
  for (DType t : floatTypes) {
    // All equal: the variance is 0, eps alone is under the root.
    const std::vector<std::vector<double>> patterns = {{0.0},           {-0.0, 0.0},    {3.0},          {1000.0},
                                                       {smallestOf(t)}, {1.0, nan},     {1.0, inf},     {0.0, -inf},
                                                       {nan},           {100.0, 101.0}, {-2.0, 60000.0}};
    run("layer_norm", {{"x", rowsOf(t, 31, patterns)}});
    run("layer_norm", {{"x", rowsOf(t, 1000, patterns)}});
  }
  run("layer_norm", {{"x", rowsOf(DType::F32, 16387, {{0.0}, {3.0}, {1.0, nan}, {1.0, -inf}, {100.0, 101.0}})}});
}

TEST_P(SpecialValues, Sums) {
  for (DType t : floatTypes) {
    const double large = largestOf(t) / 64, share = largestOf(t) / 4096; // all sums are finite
    run("cumsum", {{"x", rowsOf(t, 31,
                                {{0.0},
                                 {-0.0},
                                 {0.0, inf},
                                 {1.0, inf, -inf},
                                 {1.0, nan},
                                 {large, -large},
                                 {smallestOf(t)},
                                 {-inf},
                                 {nan}})}});
    run("cumsum", {{"x", rowsOf(t, 2049, {{0.0, inf}, {smallestOf(t)}, {0.0, 1.0, nan}})}});
    for (const std::vector<double> &p : std::vector<std::vector<double>>{{0.0},
                                                                         {1.0, inf},
                                                                         {1.0, -inf},
                                                                         {1.0, inf, -inf},
                                                                         {1.0, nan},
                                                                         {smallestOf(t)},
                                                                         {share, -share},
                                                                         {32 * share}}) {
      Array x = rowsOf(t, 3001, {p});
      x.shape = {3001};
      run("reduce_sum", {{"x", x}}, Place::Offset);
    }
  }
}

std::vector<std::size_t> allDevices() {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < deviceNames().size(); ++i)
    out.push_back(i);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Kernels, SpecialValues, testing::ValuesIn(allDevices()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
