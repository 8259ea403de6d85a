//===- KernelVariants.h - The recorded variants of an operation with many choices ===//
//
// As KernelSlots.h, for operations whose choices are too many to number: found by the list of them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_KERNELVARIANTS_H
#define KILN_KERNELS_SUPPORT_KERNELVARIANTS_H

#include "kernels/support/Family.h"

#include <map>
#include <mutex>
#include <vector>

namespace kiln::kernels {

class KernelVariants {
public:
  /// The kernel of these choices; `record` is called if it is the first to ask.  A failure is not kept.
  template <typename Record> Result<JitKernel *> get(Jit &jit, const std::vector<int> &choices, Record record) {
    const std::lock_guard lock(mutex);
    JitKernel *&known = kernels[choices];
    if (!known) {
      KILN_ASSIGN(const KernelSource source, sourceOf(record()));
      KILN_ASSIGN(known, jit.kernel(source));
    }
    return known;
  }

private:
  std::mutex mutex;
  std::map<std::vector<int>, JitKernel *> kernels;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_KERNELVARIANTS_H
