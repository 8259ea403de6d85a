//===- Copy.h - out = x -------------------------------------------------------===//
#ifndef KILN_KERNELS_COPY_COPY_H
#define KILN_KERNELS_COPY_COPY_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// Contiguous: copy(x, out, n); grid [ceil(n / block)].
/// `strided`: copy_strided(x, out), tensors of one shape e of four dimensions (those that are missing have the extent
/// 1) and any strides; grid [e0 * e1 * e2 * ceil(e3 / block)].
struct CopyConfig {
  int block = 0;
  int warps = 8;
  bool strided = false;
  bool operator==(const CopyConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &CopyConfig::block, between(0, 1 << 20).tuned(),
      "elements of a program; 0: 4096 bytes of them, 16 bytes a thread");
    v("warps", &CopyConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("strided", &CopyConfig::strided, anyValue, "tensors of four dimensions with any strides, not contiguous ones");
  }

  /// Elements of a program for elements of so many bytes.
  int blockFor(unsigned elementBytes) const { return block ? block : static_cast<int>(4096 / elementBytes); }
};

/// f32, f16, bf16, f64, i8, i16, i32, i64.
language::Kernel copy(DType element, const CopyConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_COPY_COPY_H
