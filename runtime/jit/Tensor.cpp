#include "kiln/Tensor.h"

#include "support/Text.h"

namespace kiln {

namespace {

std::string list(std::span<const std::int64_t> values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    out += (i ? ", " : "") + std::to_string(values[i]);
  return out + "]";
}

} // namespace

Result<Tensor> Tensor::dense(const Device &device, const Buffer &buffer, DType dtype,
                             std::span<const std::int64_t> shape, std::size_t byteOffset) {
  std::array<std::int64_t, maxRank> strides{};
  std::int64_t next = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i < maxRank)
      strides[i] = next;
    if (__builtin_mul_overflow(next, std::max<std::int64_t>(shape[i], 1), &next))
      return Status::invalid("a tensor of shape " + list(shape) + " has more than 2^63 elements",
                             "use smaller extents");
  }
  return strided(device, buffer, dtype, shape, std::span(strides).first(std::min<std::size_t>(shape.size(), maxRank)),
                 byteOffset);
}

Result<Tensor> Tensor::strided(const Device &device, const Buffer &buffer, DType dtype,
                               std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                               std::size_t byteOffset) {
  if (shape.size() > maxRank)
    return Status::invalid("a tensor of rank " + std::to_string(shape.size()) + ": the limit is " +
                               std::to_string(maxRank),
                           "join dimensions");
  if (shape.size() != strides.size())
    return Status::invalid("a tensor with " + std::to_string(shape.size()) + " extents and " +
                               std::to_string(strides.size()) + " strides",
                           "give one stride a dimension");
  Tensor out;
  out.dtype = dtype;
  out.rank = static_cast<unsigned>(shape.size());
  out.device = &device;
  bool empty = false, overflow = false;
  std::int64_t low = 0, high = 0; // elements from the base to the first and the last
  for (unsigned i = 0; i < out.rank; ++i) {
    out.shape[i] = shape[i];
    out.strides[i] = strides[i];
    if (shape[i] < 0)
      return Status::invalid("extent " + std::to_string(shape[i]) + " of dimension " + std::to_string(i) +
                                 " in shape " + list(shape) + " is negative",
                             "extents are 0 or more");
    empty |= shape[i] == 0;
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(std::max<std::int64_t>(shape[i] - 1, 0), strides[i], &reach);
    std::int64_t &end = reach < 0 ? low : high;
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  const auto width = static_cast<std::int64_t>(dtypeBytes(dtype));
  std::int64_t first = 0, last = 0, past = 0;
  overflow |= __builtin_mul_overflow(low, width, &first) || __builtin_mul_overflow(high, width, &last) ||
              byteOffset > static_cast<std::uint64_t>(INT64_MAX) ||
              __builtin_add_overflow(first, static_cast<std::int64_t>(byteOffset), &first) ||
              __builtin_add_overflow(last, static_cast<std::int64_t>(byteOffset), &last) ||
              __builtin_add_overflow(last, width, &past);
  const std::string what = std::string(dtypeName(dtype)) + list(shape) + " with strides " + list(strides);
  if (overflow)
    return Status::invalid("a tensor " + what + " spans more than 2^63 bytes", "use smaller extents or strides");
  if (!empty && (first < 0 || static_cast<std::uint64_t>(past) > buffer.size()))
    return Status::invalid("a tensor " + what + " at byte " + std::to_string(byteOffset) + " takes bytes " +
                               std::to_string(first) + " to " + std::to_string(past) + " of a buffer of " +
                               std::to_string(buffer.size()),
                           "allocate a larger buffer or use a smaller tensor");
  out.address = buffer.address() + byteOffset;
  return out;
}

std::int64_t Tensor::elements() const {
  std::uint64_t n = 1; // wraps where checkTensor would refuse
  for (unsigned i = 0; i < rank; ++i)
    n *= static_cast<std::uint64_t>(shape[i]);
  return static_cast<std::int64_t>(n);
}

bool Tensor::isDense() const {
  std::uint64_t next = 1;
  for (unsigned i = rank; i-- > 0;) {
    if (shape[i] != 1 && static_cast<std::uint64_t>(strides[i]) != next)
      return elements() == 0;
    next *= static_cast<std::uint64_t>(shape[i]);
  }
  return true;
}

Tensor Tensor::transposed(unsigned a, unsigned b) const {
  Tensor out = *this;
  if (a < rank && b < rank) {
    std::swap(out.shape[a], out.shape[b]);
    std::swap(out.strides[a], out.strides[b]);
  }
  return out;
}

std::string Tensor::toString() const {
  const unsigned n = std::min(rank, maxRank);
  return std::string(dtypeName(dtype)) + list(std::span(shape).first(n)) + " strides " +
         list(std::span(strides).first(n)) + format(" at 0x%llx", static_cast<unsigned long long>(address));
}

} // namespace kiln
