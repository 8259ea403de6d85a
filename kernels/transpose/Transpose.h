//===- Transpose.h - out[j, i] = x[i, j] ---------------------------------------===//
#ifndef KILN_KERNELS_TRANSPOSE_TRANSPOSE_H
#define KILN_KERNELS_TRANSPOSE_TRANSPOSE_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

/// transpose(x, out): x is rows x columns, out columns x rows; grid [ceil(rows / tileRows) * ceil(columns /
/// tileColumns)].
struct TransposeConfig {
  int tileRows = 64, tileColumns = 64; ///< of x
  int warps = 8;
  /// The dimension whose stride is 1, or -1: no such dimension is known.
  int xUnit = 1, outUnit = 1;
};

/// f32, f16, bf16, f64, i8, i16, i32, i64.
language::Kernel transpose(DType element, const TransposeConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_TRANSPOSE_TRANSPOSE_H
