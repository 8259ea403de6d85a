//===- DoorTensor.h - Tensors of callers -------------------------------------===//
//
// What a DLTensor says, checked, and its elements copied from and to the host's memory by its strides.
//
// Invariant: a tensor that readWindow accepts has a known type, at most Tensor::maxRank dimensions, no extent or
// stride below 0, and memory if it has elements.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORTENSOR_H
#define KILN_RUNTIME_DOOR_DOORTENSOR_H

#include "kernels/support/Callable.h"
#include "runtime/door/TvmFfi.h"

namespace kiln::door {

/// The tensor as operations take it, where it lies; its device is not set.  A failure goes on from the argument's name:
/// "has .."; but for one nothing is allocated.
Status readWindow(const FfiTensor &tensor, Tensor &window);

/// DLPack's code and bits of a type that has them: every one but raw bits.
struct DlType {
  std::uint8_t code, bits;
};
DlType dlTypeOf(DType type);

kernels::TensorType typeOf(const Tensor &window);

/// The elements in C order.
Array copyIn(const FfiTensor &tensor, const kernels::TensorType &type);
/// Writes each element where it belongs, and nothing between them.
void copyOut(const Array &array, const FfiTensor &tensor);

/// A failure that names both if an element of one may lie in the memory of the other.  Strides decide roughly: tensors
/// of the host whose spans overlap are compared element by element.
Status checkApart(const std::string &where, const FfiTensor &tensor, const std::string &other, const FfiTensor &with);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORTENSOR_H
