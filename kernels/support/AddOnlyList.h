//===- AddOnlyList.h - What is remembered for as long as an operation lives -------===//
//
// Values that are only added.  Finding one takes no lock and allocates nothing; the newest is looked at first.  Of
// threads that add the same value the first one's stays: whoever found it keeps the same answer.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_ADDONLYLIST_H
#define KILN_KERNELS_SUPPORT_ADDONLYLIST_H

#include <atomic>
#include <memory>
#include <utility>

namespace kiln::kernels {

template <typename Value> class AddOnlyList {
public:
  AddOnlyList() = default;
  AddOnlyList(const AddOnlyList &) = delete;
  AddOnlyList &operator=(const AddOnlyList &) = delete;
  ~AddOnlyList() {
    for (const Entry *e = newest.load(); e;)
      delete std::exchange(e, e->older);
  }

  /// Null: there is none.
  template <typename Is> const Value *find(Is is) const { return find(newest.load(std::memory_order_acquire), is); }

  /// The value, or the one that is the same already.
  template <typename Is> const Value &add(Value value, Is is) {
    auto entry = std::make_unique<Entry>(std::move(value), newest.load(std::memory_order_acquire));
    do {
      if (const Value *known = find(entry->older, is))
        return *known;
    } while (!newest.compare_exchange_weak(entry->older, entry.get(), std::memory_order_acq_rel));
    return entry.release()->value;
  }

private:
  struct Entry {
    Entry(Value value, const Entry *older) : value(std::move(value)), older(older) {}
    Value value;
    const Entry *older;
  };
  template <typename Is> static const Value *find(const Entry *from, Is is) {
    while (from && !is(from->value))
      from = from->older;
    return from ? &from->value : nullptr;
  }
  std::atomic<const Entry *> newest{nullptr};
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ADDONLYLIST_H
