//===- SlotTensors.h - Tensors of chunks in one piece of memory ---------------===//
//
// A call has several tensors with rows for every slot (Chunks.h), [heads, slots * rows, columns], one after the other
// in a piece of memory.  A list of their shapes says how many bytes that takes, and where each lies.
//
// Invariant: each begins at a multiple of Plan::alignment if the piece does.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_SLOTTENSORS_H
#define KILN_KERNELS_DPLR_SLOTTENSORS_H

#include "kernels/dplr/DplrInputs.h"

#include <span>

namespace kiln::kernels {

struct SlotShape {
  Tensor *tensor;
  bool needed; ///< others take no memory and stay as they are
  DType dtype;
  std::int64_t rows, columns; ///< of a slot
};

inline std::size_t bytesOfSlots(const SlotShape &shape, std::int64_t heads, std::int64_t slots) {
  const std::int64_t elements = shape.needed ? heads * slots * shape.rows * shape.columns : 0;
  return Plan::rounded(static_cast<std::size_t>(elements) * dtypeBytes(shape.dtype));
}

inline std::size_t bytesOfSlots(std::span<const SlotShape> shapes, std::int64_t heads, std::int64_t slots) {
  std::size_t sum = 0;
  for (const SlotShape &shape : shapes)
    sum += bytesOfSlots(shape, heads, slots);
  return sum;
}

inline void placeSlots(std::span<const SlotShape> shapes, std::int64_t heads, std::int64_t slots, DeviceAddress at) {
  for (const SlotShape &shape : shapes) {
    if (shape.needed)
      *shape.tensor = workspaceTensor(at, shape.dtype, heads, slots * shape.rows, shape.columns);
    at += bytesOfSlots(shape, heads, slots);
  }
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_SLOTTENSORS_H
