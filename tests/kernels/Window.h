//===- Window.h - Tensors cut from larger buffers -----------------------------===//
//
// A Window says where the elements of a tensor lie in a buffer that is larger than it: base, strides, margins on both
// sides.  Tests put values in through it, and look at every byte that it does not cover.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_WINDOW_H
#define KILN_TESTS_KERNELS_WINDOW_H

#include "kernels/support/Runner.h"

namespace kiln::test {

enum class Place : std::uint8_t {
  Dense,    ///< base a multiple of 256 bytes
  Offset,   ///< dense, one element past such a base
  Padded,   ///< rows 5 elements apart; of rank 1: Offset by 3
  Steps,    ///< every third element of the last dimension
  Swapped,  ///< the last two dimensions exchanged in memory
  Reversed, ///< last dimension backwards
  Repeated, ///< stride 0 in the first dimension: inputs only
};
const char *placeName(Place place);

class Window {
public:
  Window(Place place, DType dtype, const Shape &shape);

  std::size_t bytes() const { return static_cast<std::size_t>(total) * width; }
  bool isDense() const { return dense; }
  Result<Tensor> tensor(const Device &device, const Buffer &buffer) const;

  /// Copies the elements of `array` to their places in `image`, which has bytes() bytes.  With a stride of 0 the last
  /// one of several stays.
  void scatter(const Array &array, std::span<std::byte> image) const;
  Array gather(std::span<const std::byte> image) const;
  /// Index of the first byte outside the window that is not `value`; -1: there is none.
  std::int64_t strayByte(std::span<const std::byte> image, std::byte value) const;
  /// Byte range that a dense window covers.
  std::size_t firstByte() const { return static_cast<std::size_t>(first) * width; }

private:
  template <typename F> void eachElement(F body) const;
  DType dtype;
  unsigned width;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t first = 0, total = 0; ///< elements
  bool dense = false;
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_WINDOW_H
