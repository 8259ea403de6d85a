//===- AnyElement.h - Kernels that move values without computing --------------===//
//
// Copy and transpose move bits: tensors of one element size share a kernel, whatever the type.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_ANYELEMENT_H
#define KILN_KERNELS_SUPPORT_ANYELEMENT_H

#include "compiler/language/Types.h"
#include "kiln/Tensor.h"
#include "runtime/io/DType.h"

#include <bit>

namespace kiln::kernels {

/// The integer type of that size: 1, 2, 4, 8 bytes are slots 0 to 3.
inline unsigned sizeIndex(DType t) {
  return static_cast<unsigned>(std::countr_zero(dtypeBytes(t)));
}
inline DType bitsType(DType t) {
  constexpr DType types[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  return types[sizeIndex(t)];
}
/// The tensor as that kernel takes it.
inline Tensor asBits(Tensor t) {
  t.dtype = bitsType(t.dtype);
  return t;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ANYELEMENT_H
