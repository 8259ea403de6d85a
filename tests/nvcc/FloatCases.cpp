//===- FloatCases.cpp - fp32, double, half, bfloat16, mathematics ----------===//
//
// fp32 references are computed in double with bounds derived from the number of roundings (u = 2^-24 each); half,
// bfloat16 and double results are compared bit by bit with single-rounding references.
//
//===----------------------------------------------------------------------===//
#include "tests/nvcc/Bench.h"
#include "tests/parity/SoftFloat.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kiln::test {

namespace {

namespace sf = softfloat;

constexpr double u = 0x1p-24; // half an ulp of 1.0f

/// Relative error of a chain of n roundings.
double gamma(double n) {
  return n * u / (1 - n * u);
}

/// Spacing of floats at |x|.
double ulp(double x) {
  x = std::abs(x);
  if (!(x >= 0x1p-126))
    return 0x1p-149;
  return std::ldexp(1.0, std::ilogb(x) - 23);
}

void segmentScan(Bench &bench) {
  for (int n : sizes) {
    std::vector<float> in = randomFloats(bench, std::size_t(n), -4.0f, 4.0f);
    auto a = bench.upload(in), out = bench.output<float>(in.size()), total = bench.output<float>(in.size());
    bench.launch("segmentScan", {blocksFor(n, 64)}, {64}, 0, a, out, total, n);
    std::vector<double> want(in.size()), bound(in.size()), wantTotal(in.size()), totalBound(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      double sum = 0, magnitude = 0;
      for (std::size_t j = i / 8 * 8; j < std::min(i / 8 * 8 + 8, in.size()); ++j) {
        sum += double(in[j]);
        magnitude += std::abs(double(in[j]));
        if (j == i) {
          want[i] = sum;
          bound[i] = gamma(3) * magnitude; // three levels of additions
        }
      }
      wantTotal[i] = sum;
      totalBound[i] = gamma(3) * magnitude;
    }
    bench.expectNear("out", bench.read(out), want, bound);
    bench.expectNear("total", bench.read(total), wantTotal, totalBound);
  }
}

void matmul(Bench &bench) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {31, 17, 40}, {64, 48, 100}}) {
    std::vector<float> a = randomFloats(bench, std::size_t(m * k), -1.0f, 1.0f);
    std::vector<float> b = randomFloats(bench, std::size_t(k * n), -1.0f, 1.0f);
    auto da = bench.upload(a), db = bench.upload(b), dc = bench.output<float>(std::size_t(m * n));
    bench.launch("matmul", {blocksFor(n, 16), blocksFor(m, 16)}, {16, 16}, 0, da, db, dc, m, n, k);
    std::vector<double> want, bound;
    for (int r = 0; r < m; ++r)
      for (int c = 0; c < n; ++c) {
        double sum = 0, magnitude = 0;
        for (int j = 0; j < k; ++j) {
          double product = double(a[std::size_t(r * k + j)]) * double(b[std::size_t(j * n + c)]);
          sum += product;
          magnitude += std::abs(product);
        }
        want.push_back(sum);
        bound.push_back(gamma(k + 1) * magnitude); // k products and additions, fused or not
      }
    bench.expectNear("c", bench.read(dc), want, bound);
  }
}

void saxpy(Bench &bench) {
  for (int n : sizes)
    for (unsigned blocks : {1u, 4u}) {
      std::vector<float> x = randomFloats(bench, std::size_t(n), -9.0f, 9.0f);
      std::vector<float> y = randomFloats(bench, std::size_t(n), -9.0f, 9.0f);
      auto dx = bench.upload(x), dy = bench.upload(y);
      float a = 1.7f;
      bench.launch("saxpy", {blocks}, {128}, 0, a, dx, dy, n);
      std::vector<double> want, bound;
      for (std::size_t i = 0; i < x.size(); ++i) {
        double product = double(a) * double(x[i]);
        want.push_back(product + double(y[i]));
        bound.push_back(gamma(2) * (std::abs(product) + std::abs(double(y[i]))));
      }
      bench.expectNear("y", bench.read(dy), want, bound);
    }
}

void softmax(Bench &bench) {
  for (int cols : sizes) {
    const int rows = 3;
    std::vector<float> in = randomFloats(bench, std::size_t(rows * cols), -10.0f, 10.0f);
    auto a = bench.upload(in), out = bench.output<float>(in.size());
    bench.launch("softmax", {unsigned(rows)}, {128}, 0, a, out, cols);
    std::vector<double> want, bound;
    for (int r = 0; r < rows; ++r) {
      const float *row = &in[std::size_t(r * cols)];
      double top = double(*std::max_element(row, row + cols)), sum = 0;
      for (int c = 0; c < cols; ++c)
        sum += std::exp(double(row[c]) - top);
      for (int c = 0; c < cols; ++c) {
        want.push_back(std::exp(double(row[c]) - top) / sum);
        // __expf(x): 2 + 1.173 |x| ulp; its argument is rounded once; |x| <= 20 here.  The quotient has 2 ulp, the sum
        // the roundings of cols / 128 + 9 additions and the error of its largest terms.
        double exponential = (2 + 1.173 * 20) * 2 * u + 20 * u;
        bound.push_back(want.back() * (2 * exponential + gamma(cols / 128.0 + 10) + 4 * u));
      }
    }
    bench.expectNear("out", bench.read(out), want, bound);
  }
}

void layerNorm(Bench &bench) {
  for (int cols : sizes) {
    const int rows = 2;
    const float epsilon = 1e-3f;
    std::vector<float> in = randomFloats(bench, std::size_t(rows * cols), -3.0f, 5.0f);
    std::vector<float> gain = randomFloats(bench, std::size_t(cols), 0.5f, 2.0f);
    std::vector<float> bias = randomFloats(bench, std::size_t(cols), -1.0f, 1.0f);
    auto a = bench.upload(in), g = bench.upload(gain), b = bench.upload(bias), out = bench.output<float>(in.size());
    bench.launch("layerNorm", {unsigned(rows)}, {96}, 0, a, g, b, out, cols, epsilon);
    std::vector<double> want, bound;
    for (int r = 0; r < rows; ++r) {
      const float *row = &in[std::size_t(r * cols)];
      double sum = 0, magnitude = 0, square = 0, deviation = 0;
      for (int c = 0; c < cols; ++c) {
        sum += double(row[c]);
        magnitude += std::abs(double(row[c]));
      }
      double mean = sum / cols, steps = cols / 96.0 + 9;
      for (int c = 0; c < cols; ++c) {
        square += (double(row[c]) - mean) * (double(row[c]) - mean);
        deviation += std::abs(double(row[c]) - mean);
      }
      double variance = square / cols + double(epsilon), scale = 1 / std::sqrt(variance);
      double meanError = gamma(steps) * magnitude / cols + 2 * u * std::abs(mean);
      double subtract = meanError + u * 8; // the difference is below 8 in magnitude
      double varianceError = (2 * subtract * deviation / cols + subtract * subtract) / variance + gamma(steps + 5);
      double scaleError = 0.5 * varianceError + 4 * u; // rsqrtf: 2 ulp
      for (int c = 0; c < cols; ++c) {
        double difference = double(row[c]) - mean, factor = double(gain[std::size_t(c)]) * scale;
        double w = difference * factor + double(bias[std::size_t(c)]);
        want.push_back(w);
        bound.push_back(std::abs(factor) * (subtract + std::abs(difference) * (scaleError + 3 * u)) * 1.01 +
                        u * std::abs(w) + 2 * u * std::abs(difference * factor));
      }
    }
    bench.expectNear("out", bench.read(out), want, bound);
  }
}

void doubles(Bench &bench) {
  for (int n : sizes) {
    std::vector<double> xs(static_cast<std::size_t>(n)), ys(xs.size()), want;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      xs[i] = std::ldexp(double(std::int64_t(bench.rng()())), int(bench.rng()() % 60) - 90);
      ys[i] = std::ldexp(double(std::int64_t(bench.rng()())), int(bench.rng()() % 60) - 90);
    }
    auto a = bench.upload(xs), b = bench.upload(ys), out = bench.output<double>(xs.size() * 8);
    bench.launch("doubles", {blocksFor(n, 128)}, {128}, 0, a, b, out, n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      double x = xs[i], y = ys[i];
      want.insert(want.end(),
                  {x + y, x * y, x / y, std::sqrt(std::abs(x)), std::fma(x, y, 0.5), double(std::int64_t(x * 1000.0)),
                   double(float(x)) + std::floor(y), std::fmin(x, y) - std::trunc(x)});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void series(Bench &bench) {
  for (int terms : sizes) {
    const unsigned blocks = 3;
    auto out = bench.output<double>(blocks);
    bench.launch("series", {blocks}, {32}, 0, out, terms);
    std::vector<double> got = bench.read(out);
    for (unsigned b = 0; bench.good() && b < blocks; ++b) {
      long double want = 0;
      for (int k = terms; k-- > 0;)
        want += 1.0L / ((long double)(k + 1) * (k + 1 + int(b)));
      // Positive terms: every addition and every term is within half an ulp (2^-53).
      double bound = double(want) * 0x1p-53 * (terms / 32 + 9);
      bool near = std::abs(got[b] - double(want)) <= bound;
      bench.expectEqual("sum within its bound", std::vector<int>{near}, std::vector<int>{1});
    }
  }
}

/// Compares 16-bit floats: equal bits, or NaN for NaN.
void expectNarrow(Bench &bench, const char *what, const sf::Format &f, std::vector<std::uint16_t> got,
                  std::vector<std::uint16_t> want) {
  for (auto *values : {&got, &want})
    for (std::uint16_t &v : *values)
      if (sf::isNan(f, v))
        v = std::uint16_t(f.canonicalNan);
  bench.expectEqual(what, got, want);
}

struct Narrow {
  const sf::Format &f;
  using Bits = std::uint16_t;
  static constexpr auto rn = sf::Rounding::NearestEven;
  sf::Value v(Bits b) const { return sf::unpack(f, b); }
  Bits bits(const sf::Value &value) const { return Bits(sf::pack(f, value, rn)); }
  Bits add(Bits a, Bits b) const { return bits(sf::add(v(a), v(b), rn)); }
  Bits sub(Bits a, Bits b) const { return add(a, Bits(b ^ 0x8000)); }
  Bits mul(Bits a, Bits b) const { return bits(sf::multiply(v(a), v(b))); }
  Bits fma(Bits a, Bits b, Bits c) const { return bits(sf::fma(v(a), v(b), v(c), rn)); }
  bool less(Bits a, Bits b) const { return sf::compare(v(a), v(b)) < 0; }
  /// -0 is below +0.
  Bits max(Bits a, Bits b) const { return less(a, b) || (!less(b, a) && (a & 0x8000)) ? b : a; }
  Bits min(Bits a, Bits b) const { return max(a, b) == a ? b : a; }
};

void halfScalar(Bench &bench) {
  Narrow h{sf::half};
  for (int n : sizes) {
    std::size_t count = std::size_t(n);
    auto x = randomHalfBits(bench, count), y = randomHalfBits(bench, count), z = randomHalfBits(bench, count);
    std::vector<std::uint16_t> want;
    auto a = bench.upload(x), b = bench.upload(y), c = bench.upload(z);
    auto out = bench.output<std::uint16_t>(count * 8);
    bench.launch("halfScalar", {blocksFor(n, 128)}, {128}, 0, a, b, c, out, n);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t last;
      if (h.less(y[i], x[i])) {
        last = h.add(x[i], y[i]);
        last = sf::isNan(sf::half, last) || (last & 0x8000) ? 0 : std::min<std::uint16_t>(last, 0x3c00);
      } else {
        last = h.fma(x[i], y[i], z[i]);
        last = !sf::isNan(sf::half, last) && (last & 0x8000) ? 0 : last;
      }
      want.insert(want.end(), {h.add(x[i], y[i]), h.sub(x[i], y[i]), h.mul(x[i], y[i]), h.fma(x[i], y[i], z[i]),
                               h.max(x[i], y[i]), h.min(x[i], y[i]), std::uint16_t(x[i] | 0x8000), last});
    }
    expectNarrow(bench, "out", sf::half, bench.read(out), want);
  }
}

void halfPacked(Bench &bench) {
  Narrow h{sf::half};
  for (int n : sizes) {
    std::size_t count = std::size_t(n) * 2;
    auto x = randomHalfBits(bench, count), y = randomHalfBits(bench, count), z = randomHalfBits(bench, count);
    std::vector<std::uint16_t> want;
    auto a = bench.upload(x), b = bench.upload(y), c = bench.upload(z);
    auto out = bench.output<std::uint16_t>(count * 6);
    bench.launch("halfPacked", {blocksFor(n, 128)}, {128}, 0, a, b, c, out, n);
    for (std::size_t i = 0; i < count; i += 2) {
      for (std::size_t j : {i, i + 1})
        want.push_back(h.add(x[j], y[j]));
      for (std::size_t j : {i, i + 1})
        want.push_back(h.mul(x[j], y[j]));
      for (std::size_t j : {i, i + 1})
        want.push_back(h.fma(x[j], y[j], z[j]));
      for (std::size_t j : {i, i + 1})
        want.push_back(h.max(x[j], y[j]));
      want.insert(want.end(), {x[i], y[i]});
      for (std::size_t j : {i, i + 1})
        want.push_back(h.less(x[j], y[j]) ? 0x3c00 : 0);
    }
    expectNarrow(bench, "out", sf::half, bench.read(out), want);
  }
}

/// Floats around the range of half: every exponent from 2^-27 to 2^17.
std::vector<float> floatsAroundHalf(Bench &bench, std::size_t count) {
  std::vector<float> values(count);
  for (float &v : values) {
    std::uint64_t r = bench.rng()();
    v = std::ldexp(float(1 + double(r >> 40) * 0x1p-24), int(r % 45) - 27) * (r & 0x800 ? -1.0f : 1.0f);
    if ((r & 0xf0000) == 0) // a tie: a half value plus half its last place
      v = std::ldexp(float((r >> 40) % 2048) + 0.5f, int(r % 30) - 20);
  }
  return values;
}

std::uint16_t narrow(const sf::Format &f, float v, sf::Rounding rounding) {
  return std::uint16_t(sf::pack(f, sf::unpack(sf::single, std::bit_cast<unsigned>(v)), rounding));
}

void halfConvert(Bench &bench) {
  for (int n : sizes) {
    std::size_t count = std::size_t(n);
    std::vector<float> in = floatsAroundHalf(bench, count), wantWide;
    auto h = randomHalfBits(bench, count);
    std::vector<std::uint16_t> want;
    std::vector<int> wantWhole;
    auto a = bench.upload(in), wide = bench.output<float>(count);
    auto b = bench.upload(h), out = bench.output<std::uint16_t>(count * 3);
    auto whole = bench.output<int>(count);
    bench.launch("halfConvert", {blocksFor(n, 128)}, {128}, 0, a, b, out, wide, whole, n);
    for (std::size_t i = 0; i < count; ++i) {
      double product = double(in[i]) * 1.5; // exact
      want.insert(want.end(),
                  {narrow(sf::half, in[i], sf::Rounding::NearestEven),
                   narrow(sf::half, in[i], sf::Rounding::TowardZero),
                   std::uint16_t(sf::pack(sf::half, sf::unpack(sf::real, std::bit_cast<std::uint64_t>(product)),
                                          sf::Rounding::NearestEven))});
      double value = sf::toDouble(sf::half, h[i]);
      wantWide.push_back(float(value));
      wantWhole.push_back(std::isinf(value) ? (value > 0 ? INT32_MAX : INT32_MIN) : int(std::nearbyint(value)));
    }
    expectNarrow(bench, "narrow", sf::half, bench.read(out), want);
    bench.expectEqual("wide", bench.read(wide), wantWide);
    bench.expectEqual("whole", bench.read(whole), wantWhole);
  }
}

void halfDot(Bench &bench) {
  for (int n : sizes) {
    std::vector<std::uint16_t> x(std::size_t(n) * 2), y(x.size());
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::uint16_t(bench.rng()() % 0x3c00 | (bench.rng()() & 0x8000));
      y[i] = std::uint16_t(bench.rng()() % 0x3c00 | (bench.rng()() & 0x8000));
      double product = sf::toDouble(sf::half, x[i]) * sf::toDouble(sf::half, y[i]);
      sum += product;
      magnitude += std::abs(product);
    }
    auto a = bench.upload(x), b = bench.upload(y);
    auto out = bench.output<float>(1);
    bench.launch("halfDot", {1}, {32}, 0, a, b, out, n);
    // A lane adds 2 products a step, then five levels of the shuffle tree.
    bench.expectNear("dot", bench.read(out), {sum}, {gamma(3 * (n / 32 + 1) + 5) * magnitude});
  }
}

void bfloat(Bench &bench) {
  Narrow h{sf::bfloat};
  for (int n : sizes) {
    std::size_t count = std::size_t(n);
    auto x = randomHalfBits(bench, count * 2), y = randomHalfBits(bench, count * 2),
         z = randomHalfBits(bench, count * 2);
    auto a = bench.upload(x), b = bench.upload(y), c = bench.upload(z);
    auto scalar = bench.output<std::uint16_t>(count * 6), packed = bench.output<std::uint16_t>(count * 6);
    bench.launch("bfloatScalar", {blocksFor(n, 128)}, {128}, 0, a, b, c, scalar, n);
    bench.launch("bfloatPacked", {blocksFor(n, 128)}, {128}, 0, a, b, c, packed, n);
    std::vector<std::uint16_t> wantScalar, wantPacked;
    for (std::size_t i = 0; i < count; ++i)
      wantScalar.insert(wantScalar.end(), {h.add(x[i], y[i]), h.mul(x[i], y[i]), h.fma(x[i], y[i], z[i]),
                                           h.max(x[i], y[i]), h.min(x[i], y[i]), std::uint16_t(x[i] | 0x8000)});
    for (std::size_t i = 0; i < count * 2; i += 2) {
      for (std::size_t j : {i, i + 1})
        wantPacked.push_back(h.fma(x[j], y[j], z[j]));
      for (std::size_t j : {i, i + 1})
        wantPacked.push_back(h.max(x[j], y[j]));
      for (std::size_t j : {i, i + 1})
        wantPacked.push_back(h.add(x[j], y[j]));
    }
    expectNarrow(bench, "scalar", sf::bfloat, bench.read(scalar), wantScalar);
    expectNarrow(bench, "packed", sf::bfloat, bench.read(packed), wantPacked);

    std::vector<float> in = floatsAroundHalf(bench, count), wantWide;
    std::vector<std::uint16_t> wantNarrow, some(x.begin(), x.begin() + n);
    auto f = bench.upload(in), wide = bench.output<float>(count);
    auto s = bench.upload(some), narrowed = bench.output<std::uint16_t>(count * 2);
    bench.launch("bfloatConvert", {blocksFor(n, 128)}, {128}, 0, f, s, narrowed, wide, n);
    for (std::size_t i = 0; i < count; ++i) {
      wantNarrow.insert(wantNarrow.end(), {narrow(sf::bfloat, in[i], sf::Rounding::NearestEven),
                                           narrow(sf::bfloat, in[i], sf::Rounding::TowardZero)});
      wantWide.push_back(std::bit_cast<float>(unsigned(some[i]) << 16));
    }
    expectNarrow(bench, "narrow", sf::bfloat, bench.read(narrowed), wantNarrow);
    bench.expectEqual("wide", bench.read(wide), wantWide);
  }
}

/// `ulps`: the bound that CUDA documents for the function.
void unary(Bench &bench, const char *kernel, double (*reference)(double), double ulps, float low, float high,
           std::vector<float> specials) {
  for (int n : sizes) {
    std::vector<float> in = randomFloats(bench, std::size_t(n), low, high);
    for (std::size_t i = 0; i < std::min(specials.size(), in.size() / 2); ++i)
      in[i * 2] = specials[i];
    auto a = bench.upload(in), out = bench.output<float>(in.size());
    bench.launch(kernel, {blocksFor(n, 128)}, {128}, 0, a, out, n);
    std::vector<double> want, bound;
    for (float x : in) {
      double exact = reference(double(x));
      if (float(exact) != 0 && std::isinf(float(exact)))
        exact = double(float(exact));
      want.push_back(exact);
      bound.push_back(ulps * ulp(exact));
    }
    bench.expectNear(kernel, bench.read(out), want, bound);
  }
}

constexpr float infinity = __builtin_inff();

void mathematics(Bench &bench) {
  const float nan = __builtin_nanf("");
  std::vector<float> common{0.0f, -0.0f, 1.0f, -1.0f, infinity, -infinity, nan, 1e-40f, -1e-40f, 3e38f, 1e-30f};
  unary(bench, "mathExp", [](double x) { return std::exp(x); }, 2, -100.0f, 92.0f, common);
  unary(bench, "mathLog", [](double x) { return std::log(x); }, 1, 1e-6f, 50.0f, common);
  unary(bench, "mathErf", [](double x) { return std::erf(x); }, 2, -5.0f, 5.0f, common);
  unary(bench, "mathTanh", [](double x) { return std::tanh(x); }, 2, -10.0f, 10.0f, common);
  unary(bench, "mathRsqrt", [](double x) { return 1 / std::sqrt(x); }, 2, 0.001f, 1000.0f, common);
  unary(bench, "mathDivide", [](double x) { return 1.5 / x; }, 0.5, -100.0f, 100.0f, common);
  unary(bench, "mathSqrt", [](double x) { return std::sqrt(x); }, 0.5, 0.0f, 1e6f, common);
  std::vector<float> angles = common;
  for (int e = 4; e < 38; ++e) // the slow path of the argument reduction
    angles.push_back(std::pow(10.0f, float(e)) * 1.2345f);
  unary(bench, "mathSin", [](double x) { return std::sin(x); }, 2, -200.0f, 200.0f, angles);
}

void power(Bench &bench) {
  for (int n : sizes) {
    std::vector<float> x = randomFloats(bench, std::size_t(n), 0.01f, 20.0f);
    std::vector<float> y = randomFloats(bench, std::size_t(n), -12.0f, 12.0f);
    const std::pair<float, float> specials[] = {{0.0f, 2.0f},  {0.0f, -1.0f},    {-2.0f, 3.0f},
                                                {-2.0f, 0.5f}, {1.0f, infinity}, {infinity, -0.5f},
                                                {5.0f, 0.0f},  {-0.0f, 3.0f},    {-8.0f, -2.0f}};
    for (std::size_t i = 0; i < std::size(specials) && i * 2 < x.size(); ++i)
      std::tie(x[i * 2], y[i * 2]) = specials[i];
    auto a = bench.upload(x), b = bench.upload(y), out = bench.output<float>(x.size());
    bench.launch("mathPow", {blocksFor(n, 128)}, {128}, 0, a, b, out, n);
    std::vector<double> want, bound;
    for (std::size_t i = 0; i < x.size(); ++i) {
      want.push_back(std::pow(double(x[i]), double(y[i])));
      bound.push_back(4 * ulp(want.back()));
    }
    bench.expectNear("pow", bench.read(out), want, bound);
  }
}

constexpr NvccCase cases[] = {
    {"segmentScan", "scan", segmentScan},
    {"matmul", "matmul", matmul},
    {"saxpy", "rows", saxpy},
    {"softmax", "rows", softmax},
    {"layerNorm", "rows", layerNorm},
    {"doubles", "wide", doubles},
    {"series", "wide", series},
    {"halfScalar", "half", halfScalar},
    {"halfPacked", "half", halfPacked},
    {"halfConvert", "half", halfConvert},
    {"halfDot", "half", halfDot},
    {"bfloat", "bfloat", bfloat},
    {"mathematics", "mathlib", mathematics},
    {"power", "mathlib", power},
};

} // namespace

std::span<const NvccCase> floatCases() {
  return cases;
}

} // namespace kiln::test
