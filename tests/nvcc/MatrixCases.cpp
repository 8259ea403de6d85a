//===- MatrixCases.cpp - mma.sync, wmma, cp.async pipelines ----------------===//
#include "tests/nvcc/MatrixReference.h"

#include <algorithm>
#include <tuple>

namespace kiln::test {

namespace {

namespace sf = softfloat;

std::size_t area(int rows, int cols) {
  return std::size_t(rows) * std::size_t(cols);
}

void mmaF16(Bench &bench) {
  for (auto [m, n, k] : {std::tuple{64, 64, 96}, {70, 40, 200}, {1, 8, 8}}) {
    auto a = randomHalves(bench, sf::half, area(m, k), 2), b = randomHalves(bench, sf::half, area(k, n), 2);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.output<float>(area(m, n));
    bench.launch("mmaF16", {blocksFor(n, 64), blocksFor(m, 64)}, {128}, 0, da, db, c, m, n, k);
    Product p = multiply(a.values, b.values, m, n, k, false, f32Accumulation);
    bench.expectNear("c", bench.read(c), p.want, p.bound);
  }
  for (auto [m, n, k] : {std::tuple{32, 16, 64}, {10, 24, 40}}) {
    auto a = randomHalves(bench, sf::half, area(m, k), 1), b = randomHalves(bench, sf::half, area(k, n), 1);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.output<std::uint16_t>(area(m, n));
    bench.launch("mmaF16Half", {blocksFor(n, 16), blocksFor(m, 16)}, {32}, 0, da, db, c, m, n, k);
    Product p = multiply(a.values, b.values, m, n, k, false, f16Accumulation);
    bench.expectNear("c", toFloats(sf::half, bench.read(c)), p.want, p.bound);
  }
}

void mmaBf16(Bench &bench) {
  for (auto [m, n, k] : {std::tuple{128, 64, 384}, {150, 72, 64}}) {
    auto a = randomHalves(bench, sf::bfloat, area(m, k), 2), b = randomHalves(bench, sf::bfloat, area(n, k), 2);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.output<std::uint16_t>(area(m, n));
    bench.launch("mmaBf16", {blocksFor(n, 64), blocksFor(m, 128)}, {256}, 4 * (128 + 64) * 128, da, db, c, m, n, k);
    Product p = multiply(a.values, b.values, m, n, k, true, f32Accumulation);
    roundedTo(p, 8);
    bench.expectNear("c", toFloats(sf::bfloat, bench.read(c)), p.want, p.bound);
  }
}

void mmaTf32(Bench &bench) {
  for (const char *kernel : {"mmaTf32", "mmaTf32K4"})
    for (auto [m, n, k] : {std::tuple{32, 32, 48}, {33, 7, 29}, {1, 1, 1}}) {
      auto a = randomTf32(bench, area(m, k), 3), b = randomTf32(bench, area(n, k), 3);
      auto da = bench.upload(a.bits), db = bench.upload(b.bits), c = bench.output<float>(area(m, n));
      bench.launch(kernel, {blocksFor(n, 32), blocksFor(m, 32)}, {128}, 0, da, db, c, m, n, k);
      Product p = multiply(a.values, b.values, m, n, k, true, f32Accumulation);
      bench.expectNear(kernel, bench.read(c), p.want, p.bound);
    }
}

/// Sums of 32 products, each kept in 32 bits or clamped to them.
std::vector<int> byteProduct(const std::vector<unsigned char> &a, const std::vector<unsigned char> &b,
                             const std::vector<int> &c, int m, int n, int k, bool signedA, bool signedB,
                             bool saturate) {
  auto value = [](unsigned char x, bool isSigned) { return isSigned ? int((signed char)x) : int(x); };
  std::vector<int> d(c.size());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      std::int64_t sum = c[area(i, n) + std::size_t(j)];
      for (int k0 = 0; k0 < k; k0 += 32) {
        for (int x = k0; x < k0 + 32; ++x)
          sum += value(a[std::size_t(i * k + x)], signedA) * value(b[std::size_t(j * k + x)], signedB);
        sum = saturate ? std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX) : std::int64_t(int(unsigned(sum)));
      }
      d[area(i, n) + std::size_t(j)] = int(sum);
    }
  return d;
}

template <typename T> std::vector<T> randomBytes(Bench &bench, std::size_t count) {
  std::vector<T> bytes(count);
  for (T &v : bytes)
    v = T(bench.rng()() >> 20);
  return bytes;
}

void mmaInt8(Bench &bench) {
  struct Form {
    const char *kernel;
    bool signedA, signedB, saturate;
  };
  int m = 64, n = 128, k = 320;
  for (const Form &f : {Form{"mmaS8S8", true, true, false},
                        {"mmaS8U8", true, false, false},
                        {"mmaU8S8", false, true, false},
                        {"mmaU8U8", false, false, false},
                        {"mmaS8Saturating", true, true, true}}) {
    auto a = randomBytes<unsigned char>(bench, area(m, k)), b = randomBytes<unsigned char>(bench, area(n, k));
    std::vector<int> c = randomInts(bench, area(m, n));
    for (int &v : c)
      v = v & 1 ? v : v & 2 ? INT32_MAX - (v & 0xffff) : INT32_MIN + (v & 0xffff); // near both ends, too
    auto da = bench.upload(a), db = bench.upload(b);
    auto dc = bench.upload(c), d = bench.output<int>(c.size());
    bench.launch(f.kernel, {unsigned(n / 64), unsigned(m / 64)}, {128}, 0, da, db, dc, d, n, k);
    bench.expectEqual(f.kernel, bench.read(d), byteProduct(a, b, c, m, n, k, f.signedA, f.signedB, f.saturate));
  }
}

void wmmaGemm(Bench &bench) {
  {
    int m = 64, n = 32, k = 96;
    auto a = randomHalves(bench, sf::half, area(m, k), 2), b = randomHalves(bench, sf::half, area(n, k), 2);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.output<float>(area(m, n));
    bench.launch("wmmaHalf", {unsigned(n / 32), unsigned(m / 32)}, {128}, 0, da, db, c, n, k, 0.5f); // exact factor
    Product p = multiply(a.values, b.values, m, n, k, true, f32Accumulation);
    for (std::size_t i = 0; i < p.want.size(); ++i)
      p.want[i] *= 0.5, p.bound[i] *= 0.5;
    bench.expectNear("wmmaHalf", bench.read(c), p.want, p.bound);
  }
  {
    int m = 64, n = 24, k = 48; // n: rows of matrices start at multiples of 16 bytes
    auto a = randomHalves(bench, sf::bfloat, area(m, k), 2), b = randomHalves(bench, sf::bfloat, area(k, n), 2);
    std::vector<float> start = randomFloats(bench, area(m, n), -4, 4);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.upload(start);
    bench.launch("wmmaBfloat", {unsigned(n / 8), unsigned(m / 32)}, {32}, 0, da, db, c, n, k);
    // C is one more term of each sum.
    Product p = multiply(a.values, b.values, m, n, k, false, f32Accumulation);
    for (std::size_t i = 0; i < p.want.size(); ++i) {
      p.bound[i] *= 1 + std::abs(double(start[i])) / p.magnitude[i];
      p.want[i] += double(start[i]);
    }
    bench.expectNear("wmmaBfloat", bench.read(c), p.want, p.bound);
  }
  {
    int m = 32, n = 48, k = 40;
    auto a = randomTf32(bench, area(m, k), 2), b = randomTf32(bench, area(k, n), 2);
    std::vector<float> byColumns(a.bits.size());
    for (int i = 0; i < m; ++i)
      for (int x = 0; x < k; ++x)
        byColumns[std::size_t(x * m + i)] = a.bits[std::size_t(i * k + x)];
    auto da = bench.upload(byColumns), db = bench.upload(b.bits), c = bench.output<float>(area(m, n));
    bench.launch("wmmaTf32", {unsigned(n / 16), unsigned(m / 16)}, {32}, 0, da, db, c, m, n, k);
    Product p = multiply(a.values, b.values, m, n, k, false, f32Accumulation);
    std::vector<float> got = bench.read(c), rows(got.size());
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        rows[std::size_t(i * n + j)] = got[std::size_t(j * m + i)];
    bench.expectNear("wmmaTf32", rows, p.want, p.bound);
  }
  {
    int m = 24, n = 64, k = 80;
    auto a = randomBytes<signed char>(bench, area(m, k)), b = randomBytes<signed char>(bench, area(n, k));
    std::vector<int> want;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int sum = 0;
        for (int x = 0; x < k; ++x)
          sum += a[std::size_t(i * k + x)] * b[std::size_t(j * k + x)];
        want.push_back(sum);
      }
    auto da = bench.upload(a), db = bench.upload(b);
    auto c = bench.output<int>(area(m, n));
    bench.launch("wmmaBytes", {unsigned(n / 32), unsigned(m / 8)}, {32}, 0, da, db, c, n, k);
    bench.expectEqual("wmmaBytes", bench.read(c), want);
  }
}

void splitK(Bench &bench) {
  for (auto [m, n, k, parts] : {std::tuple{32, 64, 256, 4}, {32, 32, 32, 1}}) {
    auto a = randomHalves(bench, sf::half, area(m, k), 2), b = randomHalves(bench, sf::half, area(k, n), 2);
    auto da = bench.upload(a.bits), db = bench.upload(b.bits);
    auto c = bench.output<float>(area(m, n)), work = bench.output<float>(area(m, n) * std::size_t(parts));
    auto tickets = bench.upload(std::vector<unsigned>(area(m / 32, n / 32), 0));
    bench.launch("splitK", {unsigned(n / 32), unsigned(m / 32), unsigned(parts)}, {128}, 0, da, db, c, work, tickets, m,
                 n, k);
    Product p = multiply(a.values, b.values, m, n, k, false, f32Accumulation);
    for (std::size_t i = 0; i < p.bound.size(); ++i)
      p.bound[i] += parts * 0x1p-24 * p.magnitude[i]; // the final additions
    bench.expectNear("c", bench.read(c), p.want, p.bound);
  }
}

constexpr NvccCase cases[] = {
    {"mmaF16", "mmaf16", mmaF16},    {"mmaBf16", "mmabf16", mmaBf16},    {"mmaTf32", "mmatf32", mmaTf32},
    {"mmaInt8", "mmaint8", mmaInt8}, {"wmmaGemm", "wmmagemm", wmmaGemm}, {"splitK", "splitk", splitK},
};

} // namespace

std::span<const NvccCase> matrixCases() {
  return cases;
}

} // namespace kiln::test
