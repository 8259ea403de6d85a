//===- WarpgroupCases.cpp - wgmma: every type, swizzle, order; roles; multicast -------===//
//
// Each product runs twice: with small integers, whose sums every accumulator holds exactly, and with random elements
// within the derived bound.
//
//===----------------------------------------------------------------------===//
#include "tests/nvcc/MatrixReference.h"

#include <bit>
#include <tuple>

namespace kiln::test {

namespace {

namespace sf = softfloat;

enum class Type : unsigned char { F16, Bf16, Tf32, E4m3, E5m2, S8, U8 };

unsigned bytesOf(Type type) {
  return type <= Type::Bf16 ? 2 : type == Type::Tf32 ? 4 : 1;
}
TensorMapType mapType(Type type) {
  return type == Type::F16    ? TensorMapType::F16
         : type == Type::Bf16 ? TensorMapType::Bf16
         : type == Type::Tf32 ? TensorMapType::F32
                              : TensorMapType::U8;
}

/// A matrix as the kernel reads it; `values` by rows.
struct Matrix {
  Type type;
  int rows, cols;
  bool transposed; ///< in memory
  std::vector<double> values;
  Array<std::uint8_t> array;
};

double random(Bench &bench, Type type, bool integers) {
  double x = double(bench.rng()() >> 11) * 0x1p-53 * 4 - 2;
  if (type == Type::S8)
    return integers ? std::rint(x) : std::rint(x * 63);
  if (type == Type::U8)
    return integers ? std::rint(x + 2) : std::rint((x + 2) * 63);
  return integers ? std::rint(x) : x;
}

/// The bits of `x` in the type; `x` becomes their value.
std::uint32_t encode(Type type, double &x) {
  if (type >= Type::S8)
    return std::uint32_t(std::int32_t(x)) & 0xff;
  if (type == Type::Tf32) { // 11 bits of precision: rounded here, so that no low bits matter
    x = x == 0 ? 0 : std::ldexp(std::rint(std::ldexp(x, 10 - std::ilogb(x))), std::ilogb(x) - 10);
    return std::bit_cast<std::uint32_t>(float(x));
  }
  const sf::Format &format = type == Type::F16    ? sf::half
                             : type == Type::Bf16 ? sf::bfloat
                             : type == Type::E4m3 ? sf::e4m3
                                                  : sf::e5m2;
  auto value = sf::unpack(sf::real, std::bit_cast<std::uint64_t>(x));
  auto bits = sf::pack(format, value, sf::Rounding::NearestEven);
  x = sf::toDouble(format, bits);
  return std::uint32_t(bits);
}

Matrix randomMatrix(Bench &bench, Type type, int rows, int cols, bool transposed, bool integers) {
  Matrix matrix{type, rows, cols, transposed, {}, {}};
  unsigned size = bytesOf(type);
  std::vector<std::uint8_t> bytes(std::size_t(rows * cols) * size);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      double x = random(bench, type, integers);
      std::uint32_t bits = encode(type, x);
      matrix.values.push_back(x);
      std::memcpy(bytes.data() + std::size_t(transposed ? c * rows + r : r * cols + c) * size, &bits, size);
    }
  matrix.array = bench.upload(bytes);
  return matrix;
}

TensorMap mapOf(Bench &bench, const Matrix &m, unsigned boxWidth, unsigned boxHeight, unsigned swizzle) {
  auto width = std::uint64_t(m.transposed ? m.rows : m.cols), height = std::uint64_t(m.transposed ? m.cols : m.rows);
  return bench.tensorMap(m.array, mapType(m.type), {width, height}, {boxWidth, boxHeight}, swizzle);
}

const Accumulation &accumulationOf(Type type) {
  return type == Type::E4m3 || type == Type::E5m2 ? fp8Accumulation : f32Accumulation;
}

void expectProduct(Bench &bench, const char *kernel, std::vector<float> got, Product product, double sign,
                   bool integers) {
  for (double &v : product.want)
    v *= sign;
  if (integers)
    product.bound.assign(product.bound.size(), 0);
  bench.expectNear(kernel, got, product.want, product.bound);
}

struct Form {
  const char *kernel;
  Type a, b;
  unsigned swizzle;
  bool acrossA = false, acrossB = false;
  double sign = 1;
};

/// Kernels of `product` in Warpgroup.cuh: 64 x 64 a block, slabs of 64 rows.
template <typename Result> void sharedProduct(Bench &bench, const Form &form, const Accumulation &accumulation) {
  for (bool integers : {true, false})
    for (auto [m, n, k] : {std::tuple{64, 128, 160}, {72, 48, 32}}) {
      if (integers && m == 72)
        continue;
      Matrix a = randomMatrix(bench, form.a, m, k, form.acrossA, integers);
      Matrix b = randomMatrix(bench, form.b, n, k, form.acrossB, integers);
      unsigned slab = (form.swizzle ? form.swizzle : 16) / bytesOf(form.a);
      auto c = bench.output<Result>(std::size_t(m * n));
      bench.launch(form.kernel, {blocksFor(n, 64), blocksFor(m, 64)}, {128}, 0, mapOf(bench, a, slab, 64, form.swizzle),
                   mapOf(bench, b, slab, 64, form.swizzle), c, m, n, k);
      Product p = multiply(a.values, b.values, m, n, k, true, accumulation);
      std::vector<Result> raw = bench.read(c);
      if constexpr (sizeof(Result) == 2)
        expectProduct(bench, form.kernel, toFloats(sf::half, raw), p, form.sign, integers);
      else if constexpr (std::is_same_v<Result, int>)
        bench.expectEqual(form.kernel, raw, std::vector<int>(p.want.begin(), p.want.end()));
      else
        expectProduct(bench, form.kernel, raw, p, form.sign, integers);
    }
}

void wgmmaHalf(Bench &bench) {
  for (const Form &form : {Form{"wgmmaBf16Swizzle128", Type::Bf16, Type::Bf16, 128},
                           {"wgmmaF16Swizzle64", Type::F16, Type::F16, 64, false, false, -1},
                           {"wgmmaBf16Swizzle32", Type::Bf16, Type::Bf16, 32, false, false, -1},
                           {"wgmmaF16Plain", Type::F16, Type::F16, 0},
                           {"wgmmaBf16AcrossB128", Type::Bf16, Type::Bf16, 128, false, true},
                           {"wgmmaF16AcrossB64", Type::F16, Type::F16, 64, false, true},
                           {"wgmmaBf16AcrossBoth32", Type::Bf16, Type::Bf16, 32, true, true},
                           {"wgmmaF16AcrossBothPlain", Type::F16, Type::F16, 0, true, true}})
    sharedProduct<float>(bench, form, f32Accumulation);
  sharedProduct<std::uint16_t>(bench, {"wgmmaF16Half", Type::F16, Type::F16, 128, true, false}, f16Accumulation);
}

void wgmmaTypes(Bench &bench) {
  for (const Form &form : {Form{"wgmmaTf32", Type::Tf32, Type::Tf32, 128},
                           {"wgmmaE4m3", Type::E4m3, Type::E4m3, 64},
                           {"wgmmaE5m2", Type::E5m2, Type::E5m2, 128},
                           {"wgmmaE4m3E5m2", Type::E4m3, Type::E5m2, 32}})
    sharedProduct<float>(bench, form, accumulationOf(form.a));
  for (const Form &form : {Form{"wgmmaS8", Type::S8, Type::S8, 128}, {"wgmmaU8S8", Type::U8, Type::S8, 0}})
    sharedProduct<int>(bench, form, f32Accumulation);
}

void wgmmaRegisters(Bench &bench) {
  struct RegisterForm {
    const char *kernel;
    Type type;
  };
  for (const RegisterForm &form : {RegisterForm{"registersF16", Type::F16},
                                   {"registersBf16", Type::Bf16},
                                   {"registersTf32", Type::Tf32},
                                   {"registersE5m2", Type::E5m2},
                                   {"registersS8", Type::S8}})
    for (bool integers : {true, false}) {
      int m = 64, n = 72, k = 3 * 128 / int(bytesOf(form.type));
      Matrix a = randomMatrix(bench, form.type, m, k, false, integers);
      Matrix b = randomMatrix(bench, form.type, n, k, false, integers);
      auto c = bench.output<float>(std::size_t(m * n));
      bench.launch(form.kernel, {blocksFor(n, 64), unsigned(m / 64)}, {128}, 0, a.array,
                   mapOf(bench, b, 128 / bytesOf(form.type), 64, 128), c, m, n, k);
      Product p = multiply(a.values, b.values, m, n, k, true, accumulationOf(form.type));
      std::vector<float> got = bench.read(c);
      if (form.type == Type::S8) { // int results
        for (float &x : got)
          x = float(std::bit_cast<int>(x)); // below 2^24
        integers = true;
      }
      expectProduct(bench, form.kernel, got, p, 1, integers);
      if (form.type == Type::S8)
        break;
    }
}

void warpRoles(Bench &bench) {
  constexpr unsigned sharedBytes = 3 * 2 * 128 * 128 + 2 * 2 * 64 * 128 + 6 * 8;
  for (auto [m, n, k, blocks] : {std::tuple{200, 264, 320, 2}, {64, 16, 64, 1}}) {
    Matrix a = randomMatrix(bench, Type::Bf16, m, k, false, false);
    Matrix b = randomMatrix(bench, Type::Bf16, n, k, false, false);
    auto c = bench.output<std::uint16_t>(std::size_t(m * n));
    auto mapC = bench.tensorMap(c, TensorMapType::Bf16, {std::uint64_t(n), std::uint64_t(m)}, {64, 64}, 128);
    bench.launch("warpRoles", {unsigned(blocks)}, {384}, (sharedBytes + 1023) / 1024 * 1024,
                 mapOf(bench, a, 64, 128, 128), mapOf(bench, b, 64, 128, 128), mapC, int(blocksFor(m, 128)),
                 int(blocksFor(n, 128)), k / 64);
    Product p = multiply(a.values, b.values, m, n, k, true, f32Accumulation);
    roundedTo(p, 8);
    bench.expectNear("c", toFloats(sf::bfloat, bench.read(c)), p.want, p.bound);
  }
}

void multicast(Bench &bench) {
  for (auto [m, n, k] : {std::tuple{128, 64, 320}, {100, 72, 64}}) {
    Matrix a = randomMatrix(bench, Type::F16, m, k, false, false);
    Matrix b = randomMatrix(bench, Type::F16, n, k, false, false);
    auto c = bench.output<float>(std::size_t(m * n));
    bench.launch("multicast", {blocksFor(n, 64), 2 * blocksFor(m, 128)}, {160}, 0, mapOf(bench, a, 64, 64, 128),
                 mapOf(bench, b, 64, 32, 128), c, m, n, k / 64);
    Product p = multiply(a.values, b.values, m, n, k, true, f32Accumulation);
    bench.expectNear("c", bench.read(c), p.want, p.bound);
  }
}

constexpr NvccCase cases[] = {
    {"wgmmaHalf", "wgmmahalf", wgmmaHalf, Builds::HopperOptimized},
    {"wgmmaTypes", "wgmmatypes", wgmmaTypes, Builds::Hopper},
    {"wgmmaRegisters", "wgmmaregisters", wgmmaRegisters, Builds::HopperOptimized},
    {"warpRoles", "warproles", warpRoles, Builds::HopperOptimized},
    {"multicast", "multicast", multicast, Builds::Hopper},
};

} // namespace

std::span<const NvccCase> warpgroupCases() {
  return cases;
}

} // namespace kiln::test
