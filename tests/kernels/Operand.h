//===- Operand.h - Tensors of chosen values and strides, in buffers of their own ===//
//
// Memory that belongs to no element holds `besideInputs` in inputs, a NaN in every floating-point type, and
// `outputPoison` in outputs, where it must stay.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_OPERAND_H
#define KILN_TESTS_KERNELS_OPERAND_H

#include "kiln/Tensor.h"

#include <memory>
#include <vector>

namespace kiln::test {

inline constexpr std::byte besideInputs{0xFF}, outputPoison{0xCD};

struct Operand {
  std::unique_ptr<Buffer> buffer;
  Tensor tensor;
  std::vector<double> values; ///< of inputs: in C order, as they are stored
};

/// Where the elements lie in their buffer.
struct MemoryOrder {
  std::vector<unsigned> dims = {}; ///< from the outermost on; empty: as they come
  std::int64_t pad = 0;            ///< elements after each row
  std::int64_t around = 0;         ///< elements before and after the tensor
};

/// `value` as the type holds it.
double rounded(double value, DType type);

Operand upload(Device &device, DType type, const std::vector<std::int64_t> &shape, const std::vector<double> &values,
               const MemoryOrder &order = {});
/// Nothing in it is written; the bytes are `outputPoison`.
Operand allocateOutput(Device &device, DType type, const std::vector<std::int64_t> &shape,
                       const MemoryOrder &order = {});

/// The elements in C order.  Expects that the bytes around them are still `outputPoison`.
std::vector<double> download(const Operand &output);
/// Whether a value of `download` is an element that nobody wrote.
bool isUntouched(double value, DType type);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_OPERAND_H
