//===- Add.h - out = x + y ----------------------------------------------------===//
#ifndef KILN_KERNELS_ADD_ADD_H
#define KILN_KERNELS_ADD_ADD_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// Contiguous: add(x, y, out, n); grid [ceil(n / block)].
/// `strided`: add_strided(x, y, out), tensors of four dimensions (those that are missing have the extent 1), of one
/// shape e and any strides; a stride of 0 repeats an operand; grid [e0 * e1 * e2 * ceil(e3 / block)].
struct AddConfig {
  int block = 1024;
  int warps = 4;
  bool strided = false;
  bool operator==(const AddConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &AddConfig::block, between(1, 1 << 20).tuned(), "elements of a program");
    v("warps", &AddConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("strided", &AddConfig::strided, anyValue, "tensors of four dimensions with any strides, not contiguous ones");
  }
};

/// f32, f16, bf16.  Sums are rounded once.
language::Kernel add(DType element, const AddConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ADD_ADD_H
