//===- Tensor.h - A typed, strided window on device memory ----------------===//
//
// A Tensor owns nothing: it says where elements lie, of which type, on which device.  Strides count elements, may be in
// any order, and are never inferred by a kernel.  `checkTensor(name, tensor)` is how operations refuse what they cannot
// take: the first rule that does not hold becomes a status that names the argument, its value, the limit and a remedy.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TENSOR_H
#define KILN_TENSOR_H

#include "kiln/LaunchArguments.h"
#include "runtime/io/DType.h"

#include <initializer_list>
#include <span>

namespace kiln {

struct Tensor {
  static constexpr unsigned maxRank = 8;

  DeviceAddress address = 0;
  DType dtype = DType::F32;
  unsigned rank = 0;
  std::array<std::int64_t, maxRank> shape{};
  std::array<std::int64_t, maxRank> strides{}; ///< elements
  const Device *device = nullptr;

  /// Dense, last dimension fastest.  A failure names the extent or the size of the buffer that is too small.
  static Result<Tensor> dense(const Device &device, const Buffer &buffer, DType dtype,
                              std::span<const std::int64_t> shape, std::size_t byteOffset = 0);
  static Result<Tensor> dense(const Device &device, const Buffer &buffer, DType dtype,
                              std::initializer_list<std::int64_t> shape, std::size_t byteOffset = 0) {
    return dense(device, buffer, dtype, std::span(shape.begin(), shape.size()), byteOffset);
  }
  /// Any strides; every element must lie inside the buffer.
  static Result<Tensor> strided(const Device &device, const Buffer &buffer, DType dtype,
                                std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                                std::size_t byteOffset = 0);

  std::int64_t elements() const; ///< 1 for rank 0
  bool isDense() const;
  /// Dimensions `a` and `b` exchanged; the memory stays.  Both must be below `rank`.
  Tensor transposed(unsigned a, unsigned b) const;
  /// "f32[16, 100] strides [100, 1] at 0x7f0000000000".
  std::string toString() const;
};

template <> struct ArgumentTraits<Tensor> {
  static constexpr ArgumentType type = ArgumentType::Pointer;
  using Stored = DeviceAddress;
  static DeviceAddress bits(const Tensor &tensor) { return tensor.address; }
  static DType element(const Tensor &tensor) { return tensor.dtype; }
};

/// Rules are checked in the order written; after one failed, the rest do nothing.  `status()` gives the verdict.
/// Extents below 0, a null pointer of a tensor with elements, an address that is no multiple of the element's size, and
/// a span that does not fit 63 bits are always refused.
class TensorCheck {
public:
  TensorCheck(std::string_view name, const Tensor &tensor);

  TensorCheck &on(const Device &device);
  TensorCheck &dtype(std::initializer_list<DType> allowed);
  /// The same type as another argument.
  TensorCheck &dtypeOf(std::string_view otherName, const Tensor &other);
  TensorCheck &rank(unsigned wanted);
  TensorCheck &rankBetween(unsigned least, unsigned most);
  TensorCheck &extent(unsigned dimension, std::int64_t wanted, std::string_view why = {});
  TensorCheck &extentAtMost(unsigned dimension, std::int64_t limit, std::string_view why = {});
  TensorCheck &shape(std::initializer_list<std::int64_t> wanted);
  TensorCheck &shapeOf(std::string_view otherName, const Tensor &other);
  TensorCheck &stride(unsigned dimension, std::int64_t wanted);
  TensorCheck &aligned(unsigned bytes);
  TensorCheck &dense();
  /// A kernel writes it: strides of 0, and others by which two elements may share an address, are refused.
  TensorCheck &writable();
  /// None of its bytes is one of the other tensor's, unless both are the same window.  Strides decide: tensors cut from
  /// one buffer may lie between each other's rows.
  TensorCheck &notOverlapping(std::string_view otherName, const Tensor &other) {
    return overlap(otherName, other, true);
  }
  /// The same, and the same window is refused too: for an output that is written while the other is still read, or if
  /// the other is an output as well.
  TensorCheck &apartFrom(std::string_view otherName, const Tensor &other) { return overlap(otherName, other, false); }

  Status status() const { return verdict; }

private:
  bool done() const { return !verdict.ok(); }
  TensorCheck &overlap(std::string_view otherName, const Tensor &other, bool sameWindow);
  TensorCheck &refuse(const std::string &what, std::string remedy);
  std::string_view name;
  const Tensor &tensor;
  Status verdict;
};

inline TensorCheck checkTensor(std::string_view name, const Tensor &tensor) {
  return TensorCheck(name, tensor);
}

} // namespace kiln

#endif // KILN_TENSOR_H
