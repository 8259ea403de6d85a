//===- KernelTable.h - The recorded variants of an operation ------------------===//
//
// An operation records the kernel of each configuration that its calls need at its first use, and keeps the JIT's
// object.  Found by element types and configuration: lookups take no lock and allocate nothing; entries are only added.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_KERNELTABLE_H
#define KILN_KERNELS_SUPPORT_KERNELTABLE_H

#include "kernels/support/Configuration.h"
#include "kiln/Language.h"
#include "kiln/Operation.h"
#include "kiln/Tensor.h"
#include "runtime/io/DType.h"

#include <atomic>

namespace kiln::kernels {

/// Of a kernel that has none.
struct NoConfig {
  bool operator==(const NoConfig &) const = default;
  template <typename Visitor> static constexpr void fields(Visitor &&) {}
};

template <Configuration C> class KernelTable {
public:
  /// The types that a kernel is recorded for; of many kernels `out` follows from `element`.
  struct Types {
    DType element, out = element;
    bool operator==(const Types &) const = default;
  };

  KernelTable() = default;
  KernelTable(const KernelTable &) = delete;
  KernelTable &operator=(const KernelTable &) = delete;
  ~KernelTable() {
    for (const Entry *e = newest.load(); e;)
      delete std::exchange(e, e->older);
  }

  /// The kernel for these; `record` is called if they were not asked for before.  A failure is not kept.
  template <typename Record> Result<JitKernel *> get(Jit &jit, const Types &types, const C &config, Record record) {
    const std::size_t hash = hashOf(config);
    for (const Entry *e = newest.load(std::memory_order_acquire); e; e = e->older)
      if (e->hash == hash && e->types == types && e->config == config)
        return e->kernel;
    KILN_ASSIGN(const KernelSource source, sourceOf(record()));
    KILN_ASSIGN(JitKernel * kernel, jit.kernel(source));
    // Equal sources give the same object: if another thread adds it too, nothing is wrong.
    auto *const entry = new Entry{hash, types, config, kernel, newest.load()};
    while (!newest.compare_exchange_weak(entry->older, entry, std::memory_order_acq_rel))
      ;
    return kernel;
  }

private:
  struct Entry {
    std::size_t hash;
    Types types;
    C config;
    JitKernel *kernel;
    const Entry *older;
  };
  std::atomic<const Entry *> newest{nullptr};
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_KERNELTABLE_H
