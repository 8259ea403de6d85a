#include "kiln/OwnedTensor.h"

#include "support/Text.h"

#include <cstring>

namespace kiln {

namespace {

/// Whether every value of `from` is one of `to`, both floats.
bool holds(DType to, DType from) {
  return to == from || to == DType::F64 || (to == DType::F32 && from != DType::F64);
}

/// One float, rounded once.
void storeFloat(std::byte *to, DType type, double value) {
  const auto put = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  if (type == DType::F64)
    return put(value);
  if (type == DType::F32)
    return put(static_cast<float>(value));
  const std::uint32_t code = encodeFloat(value, *dtypeFloatFormat(type));
  if (dtypeBytes(type) == 2)
    return put(static_cast<std::uint16_t>(code));
  put(static_cast<std::uint8_t>(code));
}

std::string shapeText(const Tensor &t) {
  std::string out = std::string(dtypeName(t.dtype)) + "[";
  for (unsigned i = 0; i < t.rank; ++i)
    out += (i ? ", " : "") + std::to_string(t.shape[i]);
  return out + "]";
}

std::string named(std::string_view label) {
  return label.empty() ? "a tensor" : "the tensor '" + std::string(label) + "'";
}

void convert(std::span<const std::byte> from, DType fromType, std::span<std::byte> to, DType toType) {
  const std::size_t a = dtypeBytes(fromType), b = dtypeBytes(toType), n = to.size() / b;
  for (std::size_t i = 0; i < n; ++i)
    storeFloat(&to[i * b], toType, loadElement(&from[i * a], fromType));
}

} // namespace

Result<OwnedTensor> Device::empty(Extents shape, DType dtype, std::string_view label) {
  return OwnedTensor::empty(*this, shape.list(), dtype, label);
}

Result<OwnedTensor> Device::zeros(Extents shape, DType dtype, std::string_view label) {
  KILN_ASSIGN(OwnedTensor out, empty(shape, dtype, label));
  KILN_TRY(out.buffer()->fill(std::byte{0}));
  return out;
}

Result<OwnedTensor> OwnedTensor::empty(Device &device, std::span<const std::int64_t> shape, DType dtype,
                                       std::string_view label) {
  // Asked of an endless buffer: an extent that no tensor has is refused before memory is asked for.
  std::int64_t bytes = dtypeBytes(dtype);
  bool overflow = false, none = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      return Status::invalid(named(label) + " has the extent " + std::to_string(extent), "extents are 0 or more");
    none |= extent == 0;
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (overflow && !none)
    return Status::invalid(named(label) + " has more than 2^63 bytes", "use smaller extents");
  OwnedTensor out;
  KILN_ASSIGN(out.memory, device.allocate(none ? 0 : static_cast<std::size_t>(bytes), label));
  KILN_ASSIGN(out.window, Tensor::dense(device, *out.memory, dtype, shape));
  return out;
}

Result<OwnedTensor> OwnedTensor::from(Device &device, std::span<const std::int64_t> shape, DType dtype,
                                      std::span<const std::byte> data, DType from, std::string_view label) {
  KILN_ASSIGN(OwnedTensor out, empty(device, shape, dtype, label));
  Status written = out.write(data, from);
  if (!written.ok())
    return std::move(written).withContext(named(label));
  return out;
}

Status OwnedTensor::write(std::span<const std::byte> data, DType from) {
  if (const auto given = static_cast<std::int64_t>(data.size() / dtypeBytes(from)); given != elements())
    return Status::invalid(std::to_string(given) + " elements for " + shapeText(window) + ", which has " +
                               std::to_string(elements()),
                           "give one element for each");
  if (data.empty())
    return {};
  if (from == window.dtype)
    return memory->copyFromHost(0, data);
  if (!isFloat(from) || !isFloat(window.dtype))
    return Status::invalid("elements of " + std::string(dtypeName(from)) + " for " + shapeText(window),
                           "give " + std::string(dtypeName(window.dtype)) +
                               "; only floats are rounded to other floats");
  std::vector<std::byte> rounded(memory->size());
  convert(data, from, rounded, window.dtype);
  return memory->copyFromHost(0, rounded);
}

Status OwnedTensor::read(std::span<std::byte> to, DType as, Stream *stream) const {
  if (as != window.dtype && !(isFloat(as) && isFloat(window.dtype) && holds(as, window.dtype)))
    return Status::invalid(
        "toHost: " + shapeText(window) + " does not become elements of " + std::string(dtypeName(as)),
        "ask for its own type" + std::string(isFloat(window.dtype) ? ", or a wider float, and convert that" : ""));
  if (to.empty())
    return {};
  if (stream)
    KILN_TRY(stream->synchronize());
  if (as == window.dtype)
    return memory->copyToHost(0, to);
  std::vector<std::byte> own(memory->size());
  KILN_TRY(memory->copyToHost(0, own));
  convert(own, window.dtype, to, as);
  return {};
}

} // namespace kiln
