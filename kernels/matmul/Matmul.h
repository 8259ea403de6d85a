//===- Matmul.h - out = activation(scale * a x b + bias) ------------------------===//
#ifndef KILN_KERNELS_MATMUL_MATMUL_H
#define KILN_KERNELS_MATMUL_MATMUL_H

#include "compiler/language/Dot.h"
#include "compiler/language/Kernel.h"

namespace kiln::kernels {

enum class Activation : std::uint8_t { None, Relu, Gelu, Silu };

/// matmul(a, a_batch_stride, a_row_stride, a_column_stride, b, .., out, .., bias, bias_stride, scale, m, n, k), strides
/// in elements; grid [ceil(m / blockM) * ceil(n / blockN) * batch].
struct MatmulConfig {
  int blockM = 128, blockN = 128, blockK = 32; ///< the tile of a program, and what it adds at a time
  int warps = 8;
  /// Tiles of so many rows of tiles are visited column by column, so that programs beside each other share what they
  /// read in the L2 cache.
  int groupM = 8;
  /// The dimension whose stride is 1, of the last two: 0 rows, 1 columns, -1 neither.
  int aUnit = 1, bUnit = 1, outUnit = 1;
  bool bias = false; ///< adds bias[column]; else `bias` is not read
  bool scaled = false;
  Activation activation = Activation::None;
  language::Precision precision = language::Precision::Ieee; ///< of f32
};

/// a and b: f16, bf16, f8e4m3, f8e5m2, i8, f32; out: `out`, one of f32, f16, bf16 (i8: i32, without an epilogue).
/// Everything after the product is computed in fp32 and rounded once.  bias has out's type.
language::Kernel matmul(language::ElementType element, language::ElementType out, const MatmulConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_MATMUL_MATMUL_H
