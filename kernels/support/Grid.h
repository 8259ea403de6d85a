//===- Grid.h - Sizes of grids, checked ---------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_GRID_H
#define KILN_KERNELS_SUPPORT_GRID_H

#include "kiln/Device.h"
#include "kiln/Tensor.h"
#include "support/Text.h"

#include <array>

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

/// A tensor's extents and strides as four dimensions, missing ones in front with extent 1 and stride 0.
struct FourDims {
  std::array<std::int64_t, 4> extents{1, 1, 1, 1};
  explicit FourDims(const Tensor &t) {
    for (unsigned d = 0; d < t.rank; ++d)
      extents[4 - t.rank + d] = t.shape[d];
  }
  static std::array<std::int64_t, 4> strides(const Tensor &t) {
    std::array<std::int64_t, 4> out{0, 0, 0, 0};
    for (unsigned d = 0; d < t.rank; ++d)
      out[4 - t.rank + d] = t.strides[d];
    return out;
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_GRID_H
