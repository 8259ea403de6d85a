//===- OwnedTensor.h - A tensor with its memory ---------------------------===//
//
//   KILN_ASSIGN(OwnedTensor q, device->tensor({batch, rows, heads, dim}, DType::BF16, values)); // rounded from float
//   KILN_ASSIGN(OwnedTensor o, device->empty({batch, rows, heads, dim}, DType::BF16));
//   KILN_TRY(attention.run({.q = q, .k = k, .v = v, .o = o}));
//   KILN_ASSIGN(std::vector<float> result, o.toHost<float>());
//
// Dense, last dimension fastest.  It frees its memory when it dies, so it outlives what uses it, and its Device
// outlives it.  It moves and does not copy; it converts to the `Tensor` that operations and launches take, which owns
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_OWNEDTENSOR_H
#define KILN_OWNEDTENSOR_H

#include "kiln/HostTypes.h"
#include "kiln/Tensor.h"

#include <ranges>
#include <utility>
#include <vector>

namespace kiln {

class OwnedTensor {
public:
  /// No memory and no dimensions: the view of none.
  OwnedTensor() = default;
  OwnedTensor(OwnedTensor &&other) noexcept
      : memory(std::move(other.memory)), window(std::exchange(other.window, Tensor())) {}
  OwnedTensor &operator=(OwnedTensor &&other) noexcept {
    memory = std::move(other.memory);
    window = std::exchange(other.window, Tensor());
    return *this;
  }

  /// What nobody has written; the emulator reports reads of it.
  static Result<OwnedTensor> empty(Device &device, std::span<const std::int64_t> shape, DType dtype,
                                   std::string_view label);
  /// `data`: the elements of type `from` in C order, rounded to `dtype` if that is another float.
  static Result<OwnedTensor> from(Device &device, std::span<const std::int64_t> shape, DType dtype,
                                  std::span<const std::byte> data, DType from, std::string_view label);

  const Tensor &view() const { return window; }
  operator const Tensor &() const { return window; }
  DType dtype() const { return window.dtype; }
  std::int64_t elements() const { return memory ? window.elements() : 0; }
  /// The memory that holds it; nullptr of none.
  Buffer *buffer() const { return memory.get(); }

  /// The elements in C order.  T is the tensor's element type, or a wider float: float for bf16, f16 and the 8-bit
  /// floats, double for all.  Waits for the work given to `stream` so far (nullptr: the default stream, which on a GPU
  /// also waits for the streams that Kiln made).
  template <HostElement T> Result<std::vector<T>> toHost(Stream *stream = nullptr) const {
    std::vector<T> out(static_cast<std::size_t>(elements()));
    KILN_TRY(read(std::as_writable_bytes(std::span(out)), dtypeOf<T>, stream));
    return out;
  }
  /// As many elements as the tensor has, of its element type, or floats to be rounded.
  template <std::ranges::contiguous_range R>
    requires HostElement<std::ranges::range_value_t<R>>
  Status copyFromHost(const R &data) {
    return write(std::as_bytes(std::span(data)), dtypeOf<std::ranges::range_value_t<R>>);
  }

private:
  Status read(std::span<std::byte> to, DType as, Stream *stream) const;
  Status write(std::span<const std::byte> data, DType from);
  std::unique_ptr<Buffer> memory;
  Tensor window;
};

template <> struct ArgumentTraits<OwnedTensor> : ArgumentTraits<Tensor> {};

template <typename Range>
Result<OwnedTensor> Device::tensor(Extents shape, DType dtype, const Range &data, std::string_view label) {
  static_assert(std::ranges::contiguous_range<Range>, "data is a vector, an array or a span");
  using Element = std::ranges::range_value_t<Range>;
  static_assert(HostElement<Element>, "elements are integers, float, double or one of kiln/HostTypes.h (no bool)");
  return OwnedTensor::from(*this, shape.list(), dtype, std::as_bytes(std::span(data)), dtypeOf<Element>, label);
}
template <typename Range> Result<OwnedTensor> Device::tensor(Extents shape, const Range &data, std::string_view label) {
  return tensor(shape, dtypeOf<std::ranges::range_value_t<Range>>, data, label);
}

} // namespace kiln

#endif // KILN_OWNEDTENSOR_H
