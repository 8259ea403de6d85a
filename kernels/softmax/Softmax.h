//===- Softmax.h - out[r, :] = exp(x[r, :] - max) / sum ------------------------===//
#ifndef KILN_KERNELS_SOFTMAX_SOFTMAX_H
#define KILN_KERNELS_SOFTMAX_SOFTMAX_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// softmax(x, out), matrices of one shape; grid [ceil(rows / rowsPerProgram)].
struct SoftmaxConfig {
  int block = 1024;
  int rowsPerProgram = 1;
  int warps = 4;
  bool looping = false;
  bool adjacent = true;
  bool operator==(const SoftmaxConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &SoftmaxConfig::block, powersOfTwo(1, 1 << 16).tuned(), "columns of a tile");
    v("rowsPerProgram", &SoftmaxConfig::rowsPerProgram, powersOfTwo(1, 1 << 10).tuned(), "rows of a program");
    v("warps", &SoftmaxConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("looping", &SoftmaxConfig::looping, anyValue,
      "rows of any length, read twice; else a row fits one tile and is read once");
    v("adjacent", &SoftmaxConfig::adjacent, anyValue, "both column strides are 1, and not used");
  }
};

/// f32, f16, bf16, computed in fp32.
language::Kernel softmax(DType element, const SoftmaxConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_SOFTMAX_SOFTMAX_H
