//===- LargeTest.cpp - More than 2^31 elements ---------------------------------===//
//
// On a GPU only: on the emulator a case would take many minutes and gigabytes of host memory.  Two-byte elements; the
// inputs are functions of the index, so that neither they nor the outputs need to be on the host whole.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/Bench.h"

#include <algorithm>
#include <cstring>

namespace kiln::test {
namespace {

using namespace kernels;
using Halves = std::vector<std::uint16_t>;

constexpr std::uint64_t chunk = 1 << 25; // elements moved at a time
constexpr std::uint64_t twoTo31 = std::uint64_t(1) << 31;

/// Any bits, different around every power of two.
std::uint16_t bitsAt(std::uint64_t i) {
  return static_cast<std::uint16_t>((i ^ (i >> 15)) * 40503u + (i >> 31));
}
std::uint16_t halfOf(double value) {
  const Array a = arrayOf(DType::F16, {1}, {value});
  std::uint16_t out = 0;
  std::memcpy(&out, a.data.data(), 2);
  return out;
}

class Large : public testing::Test {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames().front());
    ASSERT_TRUE(on);
    if (on->emulated())
      GTEST_SKIP() << "more than 2^31 elements run on a GPU only: --device cuda:0";
  }
  void TearDown() override { buffers.clear(); }

  Buffer &allocate(const std::string &name, std::uint64_t elements) {
    auto made = on->device->allocate(2 * elements, name);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    if (made.ok())
      EXPECT_TRUE((*made)->poison(std::byte(0xCD)).ok());
    return *buffers.emplace_back(made.ok() ? std::move(*made) : nullptr);
  }
  template <typename F> void fill(Buffer &buffer, std::uint64_t elements, F value) {
    Halves part(chunk);
    for (std::uint64_t at = 0; at < elements; at += chunk) {
      const std::uint64_t n = std::min(chunk, elements - at);
      for (std::uint64_t i = 0; i < n; ++i)
        part[i] = value(at + i);
      const Status s = buffer.copyFromHost(2 * at, std::as_bytes(std::span(part).first(n)));
      ASSERT_TRUE(s.ok()) << s.toString();
    }
  }
  Halves read(const Buffer &buffer, std::uint64_t first, std::uint64_t elements) {
    Halves out(elements);
    const Status s = buffer.copyToHost(2 * first, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(s.ok()) << s.toString();
    return out;
  }
  /// Every element.
  template <typename F> void expectAll(const Buffer &buffer, std::uint64_t elements, F value) {
    for (std::uint64_t at = 0; at < elements; at += chunk) {
      const Halves part = read(buffer, at, std::min(chunk, elements - at));
      for (std::uint64_t i = 0; i < part.size(); ++i)
        if (part[i] != value(at + i)) {
          FAIL() << "element " << at + i << " is " << part[i] << ", expected " << value(at + i) << " (bits)";
        }
    }
  }
  Tensor tensor(const Buffer &buffer, std::initializer_list<std::int64_t> shape, DType dtype = DType::F16) {
    auto made = Tensor::dense(*on->device, buffer, dtype, shape);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : Tensor{};
  }
  void run(std::string_view family, std::map<std::string, Tensor, std::less<>> tensors) {
    Status s = familyOf(family).callable->run(*on->jit, {std::move(tensors), {}}, {});
    ASSERT_TRUE(s.ok()) << s.toString();
    s = on->device->defaultStream().synchronize();
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  Opened *on = nullptr;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

TEST_F(Large, Copy) {
  constexpr std::uint64_t n = twoTo31 + 4099;
  Buffer &x = allocate("x", n), &out = allocate("out", n);
  if (HasFailure())
    return;
  fill(x, n, bitsAt);
  run("copy", {{"x", tensor(x, {n})}, {"out", tensor(out, {n})}});
  expectAll(out, n, bitsAt);
}

TEST_F(Large, CopyStrided) {
  // Offsets past 2^31 elements in both tensors, through a stride: the rows of x lie in the reverse order.
  constexpr std::uint64_t rows = 65, columns = (twoTo31 >> 6) + 5, n = rows * columns;
  static_assert(n > twoTo31);
  Buffer &x = allocate("x", n), &out = allocate("out", n);
  if (HasFailure())
    return;
  fill(x, n, bitsAt);
  Tensor backwards = tensor(x, {rows, columns});
  backwards.address += 2 * (rows - 1) * columns;
  backwards.strides[0] = -static_cast<std::int64_t>(columns);
  run("copy", {{"x", backwards}, {"out", tensor(out, {rows, columns})}});
  expectAll(out, n, [&](std::uint64_t i) { return bitsAt((rows - 1 - i / columns) * columns + i % columns); });
}

TEST_F(Large, Add) {
  constexpr std::uint64_t n = twoTo31 + 2051;
  Buffer &x = allocate("x", n), &y = allocate("y", n), &out = allocate("out", n);
  if (HasFailure())
    return;
  // Small whole numbers: every sum is exact.
  Halves whole;
  for (int v = -256; v <= 256; ++v)
    whole.push_back(halfOf(v));
  const auto a = [](std::uint64_t i) { return static_cast<int>((i + (i >> 31)) % 97) - 48; };
  const auto b = [](std::uint64_t i) { return static_cast<int>((i ^ (i >> 16)) % 128) - 64; };
  fill(x, n, [&](std::uint64_t i) { return whole[static_cast<unsigned>(a(i) + 256)]; });
  fill(y, n, [&](std::uint64_t i) { return whole[static_cast<unsigned>(b(i) + 256)]; });
  run("add", {{"x", tensor(x, {n})}, {"y", tensor(y, {n})}, {"out", tensor(out, {n})}});
  // -1 + 1 and 0 + 0 are +0.
  expectAll(out, n, [&](std::uint64_t i) { return whole[static_cast<unsigned>(a(i) + b(i) + 256)]; });
}

TEST_F(Large, Transpose) {
  constexpr std::uint64_t rows = 65603, columns = 32771, n = rows * columns;
  static_assert(n > twoTo31);
  Buffer &x = allocate("x", n), &out = allocate("out", n);
  if (HasFailure())
    return;
  fill(x, n, bitsAt);
  run("transpose", {{"x", tensor(x, {rows, columns})}, {"out", tensor(out, {columns, rows})}});
  expectAll(out, n, [&](std::uint64_t i) { return bitsAt(i % rows * columns + i / rows); });
}

TEST_F(Large, ReduceSum) {
  constexpr std::uint64_t n = twoTo31 + 4099;
  Buffer &x = allocate("x", n), &out = allocate("out", 1);
  if (HasFailure())
    return;
  // Zeros, and different powers of two at the places that matter: the sum tells which were read, once each.
  const std::map<std::uint64_t, double> ones = {{0, 1.0 / 32},
                                                {twoTo31 / 2, 1.0 / 16},
                                                {twoTo31 - 1, 1.0 / 8},
                                                {twoTo31, 1.0 / 4},
                                                {twoTo31 + 1, 1.0 / 2},
                                                {twoTo31 + 2048, 1.0},
                                                {n - 4, 2.0},
                                                {n - 2, 4.0},
                                                {n - 1, 8.0}};
  double sum = 0;
  std::map<std::uint64_t, std::uint16_t> bits;
  for (const auto &[at, value] : ones) {
    sum += value;
    bits[at] = halfOf(value);
  }
  fill(x, n, [&](std::uint64_t i) {
    if (i != 0 && i != twoTo31 / 2 && i < twoTo31 - 1)
      return std::uint16_t(0);
    const auto found = bits.find(i);
    return found == bits.end() ? std::uint16_t(0) : found->second;
  });
  run("reduce_sum", {{"x", tensor(x, {n})}, {"out", tensor(out, {1})}});
  EXPECT_EQ(read(out, 0, 1)[0], halfOf(sum));
}

/// Kernels that work row by row: rows before and behind the 2^31st element, and some at random.
class LargeRows : public Large, public testing::WithParamInterface<const char *> {
protected:
  void check(std::uint64_t rows, std::uint64_t columns, const std::vector<std::uint64_t> &looked) {
    ASSERT_GT(rows * columns, twoTo31);
    Buffer &x = allocate("x", rows * columns), &out = allocate("out", rows * columns);
    if (HasFailure())
      return;
    const Array values = randomArray({DType::F16, {8192}}, 11);
    Halves table(8192);
    std::memcpy(table.data(), values.data.data(), 2 * table.size());
    const auto at = [&](std::uint64_t i) { return table[(i + (i >> 13) * 977 + (i >> 31)) & 8191]; };
    fill(x, rows * columns, at);
    run(GetParam(), {{"x", tensor(x, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)})},
                     {"out", tensor(out, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)})}});
    for (std::uint64_t row : looked) {
      SCOPED_TRACE("row " + std::to_string(row));
      const Halves got = read(out, row * columns, columns);
      Array in{DType::F16, {1, columns}, std::vector<std::byte>(2 * columns)}, result = in;
      Halves source(columns);
      for (std::uint64_t j = 0; j < columns; ++j)
        source[j] = at(row * columns + j);
      std::memcpy(in.data.data(), source.data(), in.data.size());
      std::memcpy(result.data.data(), got.data(), result.data.size());
      auto comparison = compareWithReference(familyOf(GetParam()), {{"x", in}}, {}, {{"out", result}});
      ASSERT_TRUE(comparison.ok()) << comparison.status().toString();
      EXPECT_TRUE(comparison->good()) << comparison->toString();
    }
  }
};

TEST_P(LargeRows, ManyRows) {
  constexpr std::uint64_t rows = 131101, columns = 16384; // row 131072 begins at element 2^31
  std::vector<std::uint64_t> looked = {0, 1, 65535, 65536, 131071, 131072, 131073, rows - 2, rows - 1};
  for (std::uint64_t i = 0; i < 40; ++i)
    looked.push_back(i * 48271 % rows);
  check(rows, columns, looked);
}

TEST_P(LargeRows, LongRows) {
  constexpr std::uint64_t rows = 2149, columns = 1000003; // looping; row 2147 holds element 2^31
  check(rows, columns, {0, 1, 1073, 2146, 2147, 2148});
}

INSTANTIATE_TEST_SUITE_P(Kernels, LargeRows, testing::Values("softmax", "layer_norm", "cumsum"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace kiln::test
