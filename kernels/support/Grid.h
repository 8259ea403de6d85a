//===- Grid.h - Sizes of grids, checked ---------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_GRID_H
#define KILN_KERNELS_SUPPORT_GRID_H

#include "kiln/Device.h"
#include "kiln/Tensor.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {

inline std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A grid of one dimension; more than 2^31 - 1 programs are refused by name.
inline Result<Dim3> gridOf(std::string_view operation, std::int64_t programs) {
  if (programs > 0x7FFFFFFF)
    return Status::invalid(format("%s: %lld programs are more than a grid's 2147483647", std::string(operation).c_str(),
                                  static_cast<long long>(programs)),
                           "split the call");
  return Dim3{static_cast<std::uint32_t>(programs), 1, 1};
}

/// The tensor with one more dimension, before dimension `at`; of rank 7 at most.
inline Tensor withDim(Tensor t, unsigned at, std::int64_t extent, std::int64_t stride) {
  std::copy_backward(t.shape.begin() + at, t.shape.begin() + t.rank, t.shape.begin() + t.rank + 1);
  std::copy_backward(t.strides.begin() + at, t.strides.begin() + t.rank, t.strides.begin() + t.rank + 1);
  t.shape[at] = extent, t.strides[at] = stride;
  ++t.rank;
  return t;
}

/// With dimensions of extent 1 and stride 0 in front, four in all.
inline Tensor inFourDims(Tensor t) {
  while (t.rank < 4)
    t = withDim(t, 0, 1, 0);
  return t;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_GRID_H
