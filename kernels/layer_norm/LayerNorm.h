//===- LayerNorm.h - out = (x - mean) / sqrt(variance + eps) * weight + bias -------===//
#ifndef KILN_KERNELS_LAYER_NORM_LAYERNORM_H
#define KILN_KERNELS_LAYER_NORM_LAYERNORM_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// layer_norm(x, weight, bias, out, eps) over the rows of matrices of one shape; weight and bias have an element a
/// column, adjacent, and are missing from the arguments if `affine` is false.  Grid [ceil(rows / rowsPerProgram)].
struct LayerNormConfig {
  int block = 1024;
  int rowsPerProgram = 1;
  int warps = 4;
  bool looping = false;
  bool adjacent = true;
  bool affine = true;
  bool operator==(const LayerNormConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &LayerNormConfig::block, powersOfTwo(1, 1 << 16).tuned(), "columns of a tile");
    v("rowsPerProgram", &LayerNormConfig::rowsPerProgram, powersOfTwo(1, 1 << 10).tuned(), "rows of a program");
    v("warps", &LayerNormConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("looping", &LayerNormConfig::looping, anyValue,
      "rows of any length, read twice; else a row fits one tile and is read once");
    v("adjacent", &LayerNormConfig::adjacent, anyValue, "both column strides are 1, and not used");
    v("affine", &LayerNormConfig::affine, anyValue, "weight and bias are arguments");
  }
};

/// f32, f16, bf16 (weight and bias too), computed in fp32.
language::Kernel layerNorm(DType element, const LayerNormConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_LAYER_NORM_LAYERNORM_H
