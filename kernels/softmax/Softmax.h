//===- Softmax.h - out[r, :] = exp(x[r, :] - max) / sum ------------------------===//
#ifndef KILN_KERNELS_SOFTMAX_SOFTMAX_H
#define KILN_KERNELS_SOFTMAX_SOFTMAX_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

/// softmax(x, out), matrices of one shape; grid [ceil(rows / rowsPerProgram)].
struct SoftmaxConfig {
  int block = 1024; ///< columns of a tile
  int rowsPerProgram = 1;
  int warps = 4;
  /// false: a row fits one tile (columns <= block) and is read once.  true: rows of any length, read twice.
  bool looping = false;
  /// Both column strides are 1 (and not used).
  bool adjacent = true;
};

/// f32, f16, bf16, computed in fp32.
language::Kernel softmax(DType element, const SoftmaxConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_SOFTMAX_SOFTMAX_H
