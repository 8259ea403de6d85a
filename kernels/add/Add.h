//===- Add.h - out = x + y ----------------------------------------------------===//
#ifndef KILN_KERNELS_ADD_ADD_H
#define KILN_KERNELS_ADD_ADD_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

struct AddConfig {
  int block = 1024; ///< elements of a program
  int warps = 4;
  /// false: add(x, y, out, n), all contiguous; grid [ceil(n / block)].
  /// true: add_strided(x, y, out), tensors of four dimensions (those that are missing have the extent 1), of one shape
  /// e and any strides; a stride of 0 repeats an operand; grid [e0 * e1 * e2 * ceil(e3 / block)].
  bool strided = false;
};

/// f32, f16, bf16.  Sums are rounded once.
language::Kernel add(DType element, const AddConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ADD_ADD_H
