#include "tests/kernels/Operand.h"

#include <gtest/gtest.h>

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
  for (std::size_t i = 0; i < values.size(); ++i)
    out.values.push_back(storeElement(first + offsetOf(i, out.tensor) * dtypeBytes(type), values[i], type));
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
  std::vector<double> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.elements()); ++i) {
    const std::size_t at = first + offsetOf(i, t) * size;
    std::fill_n(isElement.begin() + static_cast<std::ptrdiff_t>(at), size, true);
    values.push_back(loadElement(&bytes[at], t.dtype));
  }
  std::size_t stray = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    stray += !isElement[i] && bytes[i] != outputPoison;
  EXPECT_EQ(stray, 0u) << "bytes beside the output were written";
  return values;
}

bool isUntouched(double value, DType type) {
  std::byte element[8];
  std::fill(std::begin(element), std::end(element), outputPoison);
  return value == loadElement(element, type);
}

} // namespace kiln::test
