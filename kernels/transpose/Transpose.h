//===- Transpose.h - out[j, i] = x[i, j] ---------------------------------------===//
#ifndef KILN_KERNELS_TRANSPOSE_TRANSPOSE_H
#define KILN_KERNELS_TRANSPOSE_TRANSPOSE_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// transpose(x, out): x is rows x columns, out columns x rows; grid [ceil(rows / tileRows) * ceil(columns /
/// tileColumns)].
struct TransposeConfig {
  int tileRows = 64, tileColumns = 64;
  int warps = 8;
  int xUnit = 1, outUnit = 1;
  bool operator==(const TransposeConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("tileRows", &TransposeConfig::tileRows, powersOfTwo(1, 1024).tuned(), "rows of x that a program has");
    v("tileColumns", &TransposeConfig::tileColumns, powersOfTwo(1, 1024).tuned(), "columns of x that it has");
    v("warps", &TransposeConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("xUnit", &TransposeConfig::xUnit, between(-1, 1), "the dimension of x whose stride is 1; -1: none is known");
    v("outUnit", &TransposeConfig::outUnit, between(-1, 1), "the same of out");
  }
};

/// f32, f16, bf16, f64, i8, i16, i32, i64.
language::Kernel transpose(DType element, const TransposeConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_TRANSPOSE_TRANSPOSE_H
