//===- KernelTable.h - The recorded variants of an operation with many choices ===//
//
// As KernelSlots.h, for operations whose choices are too many to number: found by a choice that compares, such as a
// configuration with a defaulted operator==.  Lookups take no lock and allocate nothing; entries are only ever added.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_KERNELTABLE_H
#define KILN_KERNELS_SUPPORT_KERNELTABLE_H

#include "kernels/support/Family.h"

#include <atomic>
#include <concepts>

namespace kiln::kernels {

template <std::equality_comparable Choice> class KernelTable {
public:
  KernelTable() = default;
  KernelTable(const KernelTable &) = delete;
  KernelTable &operator=(const KernelTable &) = delete;
  ~KernelTable() {
    for (const Entry *e = newest.load(); e;)
      delete std::exchange(e, e->older);
  }

  /// The kernel of these choices; `record` is called if they were not asked for before.  A failure is not kept.
  template <typename Record> Result<JitKernel *> get(Jit &jit, const Choice &choice, Record record) {
    for (const Entry *e = newest.load(std::memory_order_acquire); e; e = e->older)
      if (e->choice == choice)
        return e->kernel;
    KILN_ASSIGN(const KernelSource source, sourceOf(record()));
    KILN_ASSIGN(JitKernel * kernel, jit.kernel(source));
    // Equal sources give the same object: if another thread adds it too, nothing is wrong.
    auto *const entry = new Entry{choice, kernel, newest.load()};
    while (!newest.compare_exchange_weak(entry->older, entry, std::memory_order_acq_rel))
      ;
    return kernel;
  }

private:
  struct Entry {
    Choice choice;
    JitKernel *kernel;
    const Entry *older;
  };
  std::atomic<const Entry *> newest{nullptr};
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_KERNELTABLE_H
