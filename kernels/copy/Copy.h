//===- Copy.h - out = x -------------------------------------------------------===//
#ifndef KILN_KERNELS_COPY_COPY_H
#define KILN_KERNELS_COPY_COPY_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

struct CopyConfig {
  int block = 0; ///< elements of a program; 0: 4096 bytes of them, 16 bytes a thread
  int warps = 8;
  /// false: copy(x, out, n), both contiguous; grid [ceil(n / block)].
  /// true: copy_strided over four dimensions (those that are missing have the extent 1) of any strides, in elements:
  /// copy_strided(x, out), tensors of one shape e; grid [e0 * e1 * e2 * ceil(e3 / block)].
  bool strided = false;

  /// Elements of a program for elements of so many bytes.
  int blockFor(unsigned elementBytes) const { return block ? block : static_cast<int>(4096 / elementBytes); }
};

/// f32, f16, bf16, f64, i8, i16, i32, i64.
language::Kernel copy(DType element, const CopyConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_COPY_COPY_H
