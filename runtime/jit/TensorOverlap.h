//===- TensorOverlap.h - Whether strided tensors share bytes --------------------===//
//
// Tensors cut from one buffer lie between each other's rows: the ranges of their bytes overlap, their bytes do not.
// Strides decide.  A tensor lies in windows of a period P if each stride is a multiple of P or one inside of a window;
// tensors whose windows have the same period share bytes only if they share some inside of one.  That finds every
// tensor cut from another one's dimension; what it cannot tell apart counts as shared.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_TENSOROVERLAP_H
#define KILN_RUNTIME_JIT_TENSOROVERLAP_H

#include "kiln/Tensor.h"

namespace kiln {

/// False only if no byte belongs to both.  Of tensors with elements, whose spans fit 63 bits.
bool mayShareBytes(const Tensor &a, const Tensor &b);

/// The first dimension whose steps are shorter than what the dimensions of shorter steps reach over, so that two
/// elements may share an address; the rank if there is none.  A stride of 0 is one.
unsigned dimensionInsideOthers(const Tensor &t);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_TENSOROVERLAP_H
