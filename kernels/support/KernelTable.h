//===- KernelTable.h - The recorded variants of an operation ------------------===//
//
// An operation records the kernel of each configuration that its calls need at its first use, and keeps the JIT's
// object.  Found by element types and configuration: lookups take no lock and allocate nothing; entries are only added.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_KERNELTABLE_H
#define KILN_KERNELS_SUPPORT_KERNELTABLE_H

#include "kernels/support/AddOnlyList.h"
#include "kernels/support/Configuration.h"
#include "kiln/Language.h"
#include "kiln/Operation.h"
#include "kiln/Tensor.h"
#include "runtime/io/DType.h"

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

  /// The kernel for these; `record` is called if they were not asked for before.  A failure is not kept.
  template <typename Record> Result<JitKernel *> get(Jit &jit, const Types &types, const C &config, Record record) {
    const std::size_t hash = hashOf(config);
    const auto is = [&](const Entry &e) { return e.hash == hash && e.types == types && e.config == config; };
    if (const Entry *known = entries.find(is))
      return known->kernel;
    KILN_ASSIGN(const KernelSource source, sourceOf(record()));
    KILN_ASSIGN(JitKernel * kernel, jit.kernel(source));
    return entries.add({hash, types, config, kernel}, is).kernel;
  }

private:
  struct Entry {
    std::size_t hash;
    Types types;
    C config;
    JitKernel *kernel;
  };
  AddOnlyList<Entry> entries;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_KERNELTABLE_H
