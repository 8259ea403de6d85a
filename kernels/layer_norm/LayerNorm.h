//===- LayerNorm.h - out = (x - mean) / sqrt(variance + eps) * weight + bias -------===//
#ifndef KILN_KERNELS_LAYER_NORM_LAYERNORM_H
#define KILN_KERNELS_LAYER_NORM_LAYERNORM_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

/// layer_norm(x, weight, bias, out, eps) over the rows of matrices of one shape; weight and bias have an element a
/// column, adjacent, and are missing from the arguments if `affine` is false.  Grid [ceil(rows / rowsPerProgram)].
struct LayerNormConfig {
  int block = 1024; ///< columns of a tile
  int rowsPerProgram = 1;
  int warps = 4;
  /// false: a row fits one tile (columns <= block) and is read once.  true: rows of any length, read twice.
  bool looping = false;
  /// Both column strides are 1 (and not used).
  bool adjacent = true;
  bool affine = true;
};

/// f32, f16, bf16 (weight and bias too), computed in fp32.
language::Kernel layerNorm(DType element, const LayerNormConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_LAYER_NORM_LAYERNORM_H
