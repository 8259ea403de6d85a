//===- Cumsum.h - out[r, j] = x[r, 0] + .. + x[r, j] ----------------------------===//
#ifndef KILN_KERNELS_CUMSUM_CUMSUM_H
#define KILN_KERNELS_CUMSUM_CUMSUM_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

/// cumsum(x, out), matrices of one shape; rows of any length; grid [ceil(rows / rowsPerProgram)].
struct CumsumConfig {
  int block = 1024; ///< columns of a tile
  int rowsPerProgram = 1;
  int warps = 4;
  /// Both column strides are 1 (and not used).
  bool adjacent = true;
};

/// f32, f16, bf16, summed in fp32.
language::Kernel cumsum(DType element, const CumsumConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_CUMSUM_CUMSUM_H
