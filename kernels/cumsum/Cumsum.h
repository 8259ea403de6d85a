//===- Cumsum.h - out[r, j] = x[r, 0] + .. + x[r, j] ----------------------------===//
#ifndef KILN_KERNELS_CUMSUM_CUMSUM_H
#define KILN_KERNELS_CUMSUM_CUMSUM_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// cumsum(x, out), matrices of one shape; rows of any length; grid [ceil(rows / rowsPerProgram)].
struct CumsumConfig {
  int block = 1024;
  int rowsPerProgram = 1;
  int warps = 4;
  bool adjacent = true;
  bool operator==(const CumsumConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &CumsumConfig::block, powersOfTwo(1, 1 << 16).tuned(), "columns of a tile");
    v("rowsPerProgram", &CumsumConfig::rowsPerProgram, powersOfTwo(1, 1 << 10).tuned(), "rows of a program");
    v("warps", &CumsumConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("adjacent", &CumsumConfig::adjacent, anyValue, "both column strides are 1, and not used");
  }
};

/// f32, f16, bf16, summed in fp32.
language::Kernel cumsum(DType element, const CumsumConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_CUMSUM_CUMSUM_H
