//===- KernelSlots.h - The recorded variants of one operation ----------------===//
//
// An operation that chooses among a few configurations records each at its first use and keeps the JIT's object.  Found
// by a small number (dtype and choices packed by the caller); lookups take no lock after the first.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_KERNELSLOTS_H
#define KILN_KERNELS_SUPPORT_KERNELSLOTS_H

#include "kernels/support/Family.h"

#include <array>
#include <atomic>

namespace kiln::kernels {

template <std::size_t N> class KernelSlots {
public:
  template <typename Record> Result<JitKernel *> get(Jit &jit, std::size_t index, Record record) {
    if (JitKernel *known = slots[index].load(std::memory_order_acquire))
      return known;
    KILN_ASSIGN(const KernelSource source, sourceOf(record()));
    // Equal sources give the same object, whichever thread comes first.
    KILN_ASSIGN(JitKernel * kernel, jit.kernel(source));
    slots[index].store(kernel, std::memory_order_release);
    return kernel;
  }

private:
  std::array<std::atomic<JitKernel *>, N> slots{};
};

/// 0, 1, 2 for f32, f16, bf16.
inline unsigned floatIndex(DType t) {
  return t == DType::F32 ? 0 : t == DType::F16 ? 1 : 2;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_KERNELSLOTS_H
