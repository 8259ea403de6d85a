//===- MatmulTest.cpp - Matrix products of any size, stride and type ------------===//
//
// Against float64.  |error| <= half a unit of out's type at the result + (K + 1) 2^-22 sum |a b|, where the sum's
// bound is 2^-13 for 8-bit floats (their matrix instructions keep 14 bits) and 2^-9 for tf32's operands.
//
//===----------------------------------------------------------------------===//
#include "kernels/matmul/MatmulOperation.h"
#include "kernels/support/Rounding.h"
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <cstring>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;

/// A tensor of random numbers with given strides, in a buffer of its own, and its values in C order.
struct Operand {
  std::unique_ptr<Buffer> buffer;
  Tensor tensor;
  std::vector<double> values;
};

class Matmul : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
  }

  /// order: dimensions from the outermost in memory on; pad: elements beside each row.
  Operand operand(DType type, const std::vector<std::int64_t> &shape, std::vector<unsigned> order, std::int64_t pad) {
    Operand out;
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t n = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = n;
      n *= shape[order[i]] + (i + 1 == order.size() ? pad : 0);
    }
    const unsigned bytes = dtypeBytes(type);
    std::vector<std::byte> data(static_cast<std::size_t>(n) * bytes, std::byte(0x7f)); // not to be read: large or NaN
    std::normal_distribution<double> normal;
    std::int64_t count = 1;
    for (const std::int64_t e : shape)
      count *= e;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t at = 0, rest = i;
      for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
        at += rest % shape[d] * strides[d];
      double v = type == DType::I8 ? static_cast<double>(static_cast<std::int8_t>(random())) : normal(random);
      std::byte *p = &data[static_cast<std::size_t>(at) * bytes];
      if (const FloatFormat *f = dtypeFloatFormat(type)) {
        const std::uint32_t code = encodeFloat(v, *f);
        v = decodeFloat(code, *f);
        std::memcpy(p, &code, bytes);
      } else if (type == DType::I8) {
        *p = static_cast<std::byte>(static_cast<std::int8_t>(v));
      } else {
        const auto single = static_cast<float>(v);
        v = single;
        std::memcpy(p, &single, 4);
      }
      out.values.push_back(v);
    }
    auto made = on->device->allocate(data.size());
    EXPECT_TRUE(made.ok());
    out.buffer = std::move(*made);
    EXPECT_TRUE(out.buffer->copyFromHost(0, data).ok());
    auto tensor = Tensor::strided(*on->device, *out.buffer, type, shape, strides);
    EXPECT_TRUE(tensor.ok()) << tensor.status().toString();
    out.tensor = *tensor;
    return out;
  }

  /// out's elements; everything between them must be as it was.
  std::vector<double> read(const Operand &out, std::byte poison) {
    std::vector<std::byte> bytes(out.buffer->size());
    EXPECT_TRUE(out.buffer->copyToHost(0, bytes).ok());
    std::vector<bool> written(bytes.size());
    const Tensor &t = out.tensor;
    const unsigned size = dtypeBytes(t.dtype);
    std::vector<double> values;
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      std::int64_t at = 0, rest = i;
      for (unsigned d = t.rank; d-- > 0; rest /= t.shape[d])
        at += rest % t.shape[d] * t.strides[d];
      const std::byte *p = &bytes[static_cast<std::size_t>(at) * size];
      std::fill_n(written.begin() + at * size, size, true);
      std::uint32_t code = 0;
      std::memcpy(&code, p, size);
      float single;
      std::memcpy(&single, &code, 4);
      const FloatFormat *f = dtypeFloatFormat(t.dtype);
      values.push_back(f                       ? decodeFloat(code, *f)
                       : t.dtype == DType::I32 ? static_cast<double>(static_cast<std::int32_t>(code))
                                               : static_cast<double>(single));
    }
    for (std::size_t i = 0; i < bytes.size(); ++i)
      EXPECT_TRUE(written[i] || bytes[i] == poison) << "byte " << i << " beside out was written";
    return values;
  }

  struct Problem {
    DType type, out;
    std::int64_t batch, m, n, k; ///< batch 0: no such dimension
    bool aColumns = false, bColumns = false, outColumns = false;
    std::int64_t pad = 0;
    bool bias = false;
    float scale = 1;
    Activation activation = Activation::None;
    language::Precision precision = language::Precision::Ieee;
    std::string text() const {
      return std::string(dtypeName(type)) + " to " + std::string(dtypeName(out)) + " " + std::to_string(batch) + " x " +
             std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
             (aColumns ? ", a by columns" : "") + (bColumns ? ", b by columns" : "") +
             (outColumns ? ", out by columns" : "") + ", pad " + std::to_string(pad);
    }
  };

  void check(const Problem &p) {
    SCOPED_TRACE(deviceNames()[GetParam()] + ": " + p.text());
    const auto matrix = [&](DType type, std::int64_t rows, std::int64_t columns, bool byColumns) {
      std::vector<std::int64_t> shape = {rows, columns};
      std::vector<unsigned> order = byColumns ? std::vector<unsigned>{1, 0} : std::vector<unsigned>{0, 1};
      if (p.batch) {
        shape.insert(shape.begin(), p.batch);
        for (unsigned &d : order)
          ++d;
        order.insert(order.begin(), 0);
      }
      return operand(type, shape, order, p.pad);
    };
    const Operand a = matrix(p.type, p.m, p.k, p.aColumns), b = matrix(p.type, p.k, p.n, p.bColumns);
    Operand out = matrix(p.out, p.m, p.n, p.outColumns);
    const std::byte poison{0xCD};
    ASSERT_TRUE(out.buffer->poison(poison).ok());
    MatmulArguments arguments{a.tensor, b.tensor, out.tensor, {}, p.scale, p.activation, p.precision};
    Operand bias;
    if (p.bias) {
      bias = operand(p.out, {p.n}, {0}, 0);
      arguments.bias = bias.tensor;
    }
    MatmulOperation operation(*on->jit);
    const Status s = operation.run(arguments);
    ASSERT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.message;
    const std::vector<double> got = read(out, poison);
    const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t rows, std::int64_t columns) {
      return static_cast<std::size_t>((i * rows + j) * columns + k);
    };
    const bool eighth = p.type == DType::E4m3 || p.type == DType::E5m2;
    const double product = p.precision == language::Precision::Tf32     ? std::ldexp(1, -9)
                           : p.precision == language::Precision::Tf32x3 ? std::ldexp(1, -19)
                                                                        : 0;
    for (std::int64_t g = 0; g < std::max<std::int64_t>(1, p.batch); ++g)
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          double want = 0, size = 0;
          for (std::int64_t k = 0; k < p.k; ++k) {
            const double v = a.values[at(g, i, k, p.m, p.k)] * b.values[at(g, k, j, p.k, p.n)];
            want += v;
            size += std::abs(v);
          }
          double bound = (static_cast<double>(p.k + 1) * std::ldexp(1, eighth ? -13 : -22) + product) * size;
          if (p.out == DType::I32)
            bound = 0;
          want *= p.scale;
          bound *= std::abs(p.scale);
          if (p.bias)
            want += bias.values[static_cast<std::size_t>(j)];
          // The activations are steep at most 1.13; their own error is some units of fp32.
          const double x = want;
          if (p.activation == Activation::Relu)
            want = std::max(want, 0.0);
          else if (p.activation == Activation::Gelu)
            want = x * 0.5 * (1 + std::erf(x * std::sqrt(0.5)));
          else if (p.activation == Activation::Silu)
            want = x / (1 + std::exp(-x));
          if (p.activation != Activation::None)
            bound = 1.13 * bound + 8 * std::ldexp(1, -23) * std::abs(x);
          if (p.out != DType::I32) // rounded once; bias and scale are applied in fp32
            bound += halfUlp(std::abs(want) + bound, p.out) + 4 * std::ldexp(1, -24) * std::abs(x);
          ASSERT_NEAR(got[at(g, i, j, p.m, p.n)], want, bound) << g << ", " << i << ", " << j;
        }
  }

  Opened *on = nullptr;
  std::mt19937_64 random{31};
};

TEST_P(Matmul, AnySize) {
  for (const auto &[m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {1, 64, 31},
                                {65, 33, 7},
                                {128, 128, 128},
                                {129, 130, 65},
                                {17, 257, 40},
                                {5, 3, 0}})
    check({DType::Bf16, DType::Bf16, 0, m, n, k});
}

TEST_P(Matmul, EveryType) {
  using language::Precision;
  check({DType::F16, DType::F16, 0, 70, 100, 50});
  check({DType::F16, DType::F32, 0, 70, 100, 50});
  check({DType::Bf16, DType::F32, 0, 70, 100, 50});
  check({DType::E4m3, DType::Bf16, 0, 70, 100, 90});
  check({DType::E5m2, DType::F32, 0, 70, 100, 90});
  check({DType::I8, DType::I32, 0, 70, 100, 90});
  check({DType::F32, DType::F32, 0, 70, 100, 50});
  Problem tf32{DType::F32, DType::F32, 0, 70, 100, 50};
  tf32.precision = Precision::Tf32;
  check(tf32);
  tf32.precision = Precision::Tf32x3;
  check(tf32);
}

TEST_P(Matmul, AnyStrides) {
  for (unsigned mask = 0; mask < 8; ++mask) {
    Problem p{DType::F16, DType::F16, 2, 40, 72, 24};
    p.aColumns = mask & 1, p.bColumns = mask & 2, p.outColumns = mask & 4;
    p.pad = mask % 3 * 4;
    check(p);
  }
}

TEST_P(Matmul, BatchesAndABatchForAll) {
  check({DType::Bf16, DType::F32, 3, 33, 65, 40});
  // One b for every batch, through a stride of 0 and without the dimension.
  const Operand a = operand(DType::F16, {3, 16, 32}, {0, 1, 2}, 0), b = operand(DType::F16, {32, 8}, {0, 1}, 0);
  Operand one = operand(DType::F32, {3, 16, 8}, {0, 1, 2}, 0), two = operand(DType::F32, {3, 16, 8}, {0, 1, 2}, 0);
  Tensor spread = b.tensor;
  spread.rank = 3;
  spread.shape = {3, 32, 8};
  spread.strides = {0, 8, 1};
  MatmulOperation operation(*on->jit);
  Status s = operation.run({a.tensor, b.tensor, one.tensor});
  ASSERT_TRUE(s.ok()) << s.toString();
  s = operation.run({a.tensor, spread, two.tensor});
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(read(one, std::byte(0)), read(two, std::byte(0)));
}

TEST_P(Matmul, Epilogue) {
  for (const Activation activation : {Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu}) {
    Problem p{DType::F16, DType::F16, 0, 33, 70, 40};
    p.bias = true;
    p.scale = 0.25f;
    p.activation = activation;
    check(p);
  }
}

/// Wrong arguments: named, with a remedy, and nothing is compiled.
TEST_P(Matmul, WrongArgumentsAreRefused) {
  const Operand a = operand(DType::F16, {16, 32}, {0, 1}, 0), b = operand(DType::F16, {32, 8}, {0, 1}, 0),
                out = operand(DType::F16, {16, 8}, {0, 1}, 0), single = operand(DType::F32, {32, 8}, {0, 1}, 0);
  const auto before = on->jit->counters().compiles;
  const auto refused = [&](const MatmulArguments &arguments, std::initializer_list<const char *> parts) {
    MatmulOperation operation(*on->jit);
    const Status s = operation.run(arguments);
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument) << s.toString();
    EXPECT_FALSE(s.remedy().empty()) << s.toString();
    for (const char *part : parts)
      EXPECT_NE(s.message().find(part), std::string::npos) << part << " is not in: " << s.toString();
  };
  const Tensor x = a.tensor, y = b.tensor, z = out.tensor;
  refused({x, single.tensor, z}, {"'b'", "f32", "f16"});
  refused({x, x, z}, {"'b'", "16", "32"});
  refused({x, y, x}, {"'out'"});
  refused({x, y, single.tensor}, {"'out'"});
  Tensor three = z;
  three.rank = 3;
  refused({x, y, three}, {"'out'", "rank"});
  MatmulArguments scaled{x, y, z};
  scaled.scale = INFINITY;
  refused(scaled, {"scale", "inf"});
  MatmulArguments precise{x, y, z};
  precise.precision = language::Precision::Tf32;
  refused(precise, {"precision", "f16"});
  MatmulArguments biased{x, y, z};
  biased.bias = z;
  refused(biased, {"'bias'"});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// Sizes and strides of one class share the code.
TEST_P(Matmul, OneCompileForManySizes) {
  std::unique_ptr<Opened> fresh = freshDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(fresh);
  on = fresh.get();
  MatmulOperation operation(*on->jit);
  for (std::int64_t size : {80, 96, 144, 160}) {
    const Operand a = operand(DType::F16, {size, 64}, {0, 1}, 0), b = operand(DType::F16, {64, size}, {0, 1}, 0);
    Operand out = operand(DType::F16, {size, size}, {0, 1}, 0);
    ASSERT_TRUE(operation.run({a.tensor, b.tensor, out.tensor}).ok());
  }
  EXPECT_EQ(on->jit->counters().compiles, 1u);
}

/// The bits of the usual order under seeds of every schedule; no findings.
TEST_P(Matmul, SeedsOfEverySchedule) {
  const std::string name = deviceNames()[GetParam()];
  if (!on->emulated())
    GTEST_SKIP() << name << " is no emulator: nobody can choose its schedule";
  const TemporaryDirectory folder;
  std::vector<double> usual;
  for (std::uint64_t seed = 0; seed <= 2 * pick(1u, 20u); ++seed) {
    Opening how{{}, folder.path() + "/kernels", ""};
    if (seed) { // 0: in order
      how.emulator.schedule = seed % 2 ? Schedule::Random : Schedule::Adversarial;
      how.emulator.seed = seed + GetParam();
    }
    const std::unique_ptr<Opened> other = openWith(name, how);
    ASSERT_TRUE(other);
    on = other.get();
    random.seed(5);
    const Operand a = operand(DType::Bf16, {150, 70}, {0, 1}, 2), b = operand(DType::Bf16, {70, 140}, {1, 0}, 0);
    Operand out = operand(DType::F32, {150, 140}, {0, 1}, 0);
    MatmulOperation operation(*on->jit);
    const Status s = operation.run({a.tensor, b.tensor, out.tensor});
    ASSERT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << "seed " << seed << ": " << f.message;
    const std::vector<double> got = read(out, std::byte(0));
    if (seed == 0)
      usual = got;
    ASSERT_EQ(got, usual) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Matmul, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
