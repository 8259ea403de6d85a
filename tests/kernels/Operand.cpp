#include "tests/kernels/Operand.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::test {
namespace {

/// Stores `value`; gives what the element holds then.
double storeElement(std::byte *to, double value, DType type) {
  const auto put = [&](auto bits) { std::memcpy(to, &bits, dtypeBytes(type)); };
  if (const FloatFormat *format = dtypeFloatFormat(type))
    put(encodeFloat(value, *format));
  else if (type == DType::F32)
    put(static_cast<float>(value));
  else
    put(static_cast<std::int64_t>(value));
  return loadElement(to, type);
}

std::size_t elementsOf(const std::vector<std::int64_t> &shape) {
  std::size_t n = 1;
  for (const std::int64_t extent : shape)
    n *= static_cast<std::size_t>(extent);
  return n;
}

/// Offset of element i of the C order, in elements.
std::size_t offsetOf(std::size_t i, const Tensor &t) {
  std::int64_t at = 0;
  for (unsigned d = t.rank; d-- > 0; i /= static_cast<std::size_t>(t.shape[d]))
    at += static_cast<std::int64_t>(i % static_cast<std::size_t>(t.shape[d])) * t.strides[d];
  return static_cast<std::size_t>(at);
}

/// f(i, offset of element i) for every element, in C order.
template <typename F> void forEachElement(const Tensor &t, F f) {
  const auto elements = static_cast<std::size_t>(t.elements());
  const std::size_t columns = t.rank ? static_cast<std::size_t>(t.shape[t.rank - 1]) : 1,
                    stride = t.rank ? static_cast<std::size_t>(t.strides[t.rank - 1]) : 0;
  for (std::size_t first = 0; first < elements; first += columns) {
    const std::size_t row = offsetOf(first, t);
    for (std::size_t j = 0; j < columns; ++j)
      f(first + j, row + j * stride);
  }
}

Operand placed(Device &device, DType type, const std::vector<std::int64_t> &shape, const MemoryOrder &order) {
  std::vector<unsigned> dims = order.dims;
  for (unsigned d = 0; order.dims.empty() && d < shape.size(); ++d)
    dims.push_back(d);
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t n = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[dims[i]] = n;
    n *= shape[dims[i]] + (i + 1 == dims.size() ? order.pad : 0);
  }
  const std::size_t bytes = dtypeBytes(type), around = static_cast<std::size_t>(order.around) * bytes;
  Operand out;
  auto made = device.allocate(std::max<std::size_t>(static_cast<std::size_t>(n) * bytes + 2 * around, 16));
  EXPECT_TRUE(made.ok()) << made.status().toString();
  if (!made)
    return out;
  out.buffer = std::move(*made);
  auto tensor = Tensor::strided(device, *out.buffer, type, shape, strides, around);
  EXPECT_TRUE(tensor.ok()) << tensor.status().toString();
  if (tensor)
    out.tensor = *tensor;
  return out;
}

} // namespace

double rounded(double value, DType type) {
  // Tests round millions of numbers: those that are normal in the type, and f16's smaller ones, without encoding.
  if (type == DType::F16 || type == DType::BF16) {
    const int drop = type == DType::F16 ? 42 : 45, most = type == DType::F16 ? 15 : 127;
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
    if (exponent > -most && exponent < most) {
      const std::uint64_t one = std::uint64_t(1) << drop;
      return std::bit_cast<double>((bits + (one / 2 - 1) + (bits >> drop & 1)) & ~(one - 1));
    }
    if (type == DType::F16 && exponent <= -most) // multiples of 2^-24, as those of a double from 2^28 to 2^29
      return std::copysign((value + 0x1.8p28) - 0x1.8p28, value);
  }
  std::byte element[8];
  return storeElement(element, value, type);
}

Operand upload(Device &device, DType type, const std::vector<std::int64_t> &shape, const std::vector<double> &values,
               const MemoryOrder &order) {
  Operand out = placed(device, type, shape, order);
  EXPECT_EQ(values.size(), elementsOf(shape));
  if (!out.buffer)
    return out;
  std::vector<std::byte> data(out.buffer->size(), besideInputs);
  std::byte *first = data.data() + (out.tensor.address - out.buffer->address());
  out.values.resize(values.size());
  forEachElement(out.tensor, [&](std::size_t i, std::size_t at) {
    out.values[i] = storeElement(first + at * dtypeBytes(type), values[i], type);
  });
  EXPECT_TRUE(out.buffer->copyFromHost(0, data).ok());
  return out;
}

Operand allocateOutput(Device &device, DType type, const std::vector<std::int64_t> &shape, const MemoryOrder &order) {
  Operand out = placed(device, type, shape, order);
  if (out.buffer)
    EXPECT_TRUE(out.buffer->poison(outputPoison).ok());
  return out;
}

std::vector<double> download(const Operand &output) {
  std::vector<std::byte> bytes(output.buffer->size());
  EXPECT_TRUE(output.buffer->copyToHost(0, bytes).ok());
  std::vector<bool> isElement(bytes.size());
  const Tensor &t = output.tensor;
  const std::size_t size = dtypeBytes(t.dtype), first = t.address - output.buffer->address();
  std::vector<double> values(static_cast<std::size_t>(t.elements()));
  forEachElement(t, [&](std::size_t i, std::size_t offset) {
    const std::size_t at = first + offset * size;
    std::fill_n(isElement.begin() + static_cast<std::ptrdiff_t>(at), size, true);
    values[i] = loadElement(&bytes[at], t.dtype);
  });
  std::size_t stray = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    stray += !isElement[i] && bytes[i] != outputPoison;
  EXPECT_EQ(stray, 0u) << "bytes outside of the output were written";
  return values;
}

bool isUntouched(double value, DType type) {
  std::byte element[8];
  std::fill(std::begin(element), std::end(element), outputPoison);
  return value == loadElement(element, type);
}

} // namespace kiln::test
