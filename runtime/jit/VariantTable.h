//===- VariantTable.h - Class of arguments -> loaded function -------------===//
//
// The first level of the cache: one table a kernel, read without a lock.  Open addressing over atomic pointers: a
// reader that finds nothing asks the slow path, which inserts under a mutex.  Entries never change and never go; a
// table that fills up is replaced by one of twice the size, and the old ones are kept for readers that are still in
// them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_VARIANTTABLE_H
#define KILN_RUNTIME_JIT_VARIANTTABLE_H

#include "runtime/jit/ArgumentClass.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln {

class VariantTable {
public:
  VariantTable() { grow(8); }

  const LoadedKernel *find(const ClassKey &key) const {
    const Table *table = current.load(std::memory_order_acquire);
    for (std::size_t i = key.hash() & table->mask;; i = (i + 1) & table->mask) {
      const Variant *v = table->slots[i].load(std::memory_order_acquire);
      if (!v)
        return nullptr;
      if (v->key == key)
        return v->loaded;
    }
  }

  /// `loaded` must outlive the table.  A key that is there already keeps what it has.
  void insert(const ClassKey &key, const LoadedKernel *loaded) {
    const std::lock_guard lock(mutex);
    if (find(key))
      return;
    if (2 * (variants.size() + 1) > tables.back()->mask + 1)
      grow(2 * (tables.back()->mask + 1));
    variants.push_back(std::make_unique<Variant>(Variant{key, loaded}));
    place(*tables.back(), variants.back().get());
  }

private:
  struct Variant {
    ClassKey key;
    const LoadedKernel *loaded;
  };
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), slots(new std::atomic<const Variant *>[size]()) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<const Variant *>[]> slots;
  };

  static void place(Table &table, const Variant *variant) {
    std::size_t i = variant->key.hash() & table.mask;
    while (table.slots[i].load(std::memory_order_relaxed))
      i = (i + 1) & table.mask;
    table.slots[i].store(variant, std::memory_order_release);
  }
  void grow(std::size_t size) {
    tables.push_back(std::make_unique<Table>(size));
    for (const auto &v : variants)
      place(*tables.back(), v.get());
    current.store(tables.back().get(), std::memory_order_release);
  }

  std::atomic<const Table *> current{nullptr};
  std::mutex mutex;
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<std::unique_ptr<const Variant>> variants;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_VARIANTTABLE_H
