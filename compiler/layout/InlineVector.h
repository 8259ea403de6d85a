//===- InlineVector.h - A vector with a fixed capacity and no heap --------===//
//
// Layout algebra handles lists of at most a few dozen integers, thousands of times a plan; they live on the stack.
// Elements past size() are uninitialised, and copies copy only what is in use.  Callers keep within the capacity: the
// limits that users can reach are checked where user input enters (LinearLayout::create, encodings), with a diagnostic.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_INLINEVECTOR_H
#define KILN_LAYOUT_INLINEVECTOR_H

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace kiln::layout {

template <typename T, unsigned Capacity> class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  using value_type = T;

  InlineVector() {} // not defaulted: leaves the storage uninitialised on purpose
  explicit InlineVector(unsigned size, T value) { resize(size, value); }
  InlineVector(std::initializer_list<T> list) { append(std::span(list.begin(), list.size())); }
  explicit InlineVector(std::span<const T> values) { append(values); }
  InlineVector(const InlineVector &other) : count(other.count) { std::copy_n(other.items, count, items); }
  InlineVector &operator=(const InlineVector &other) {
    if (this != &other) {
      count = other.count;
      std::copy_n(other.items, count, items);
    }
    return *this;
  }

  static constexpr unsigned capacity() { return Capacity; }
  unsigned size() const { return count; }
  bool empty() const { return count == 0; }

  T &operator[](std::size_t i) {
    assert(i < count);
    return items[i];
  }
  const T &operator[](std::size_t i) const {
    assert(i < count);
    return items[i];
  }
  T &back() { return (*this)[count - 1]; }
  const T &back() const { return (*this)[count - 1]; }
  T *data() { return items; }
  const T *data() const { return items; }
  T *begin() { return items; }
  T *end() { return items + count; }
  const T *begin() const { return items; }
  const T *end() const { return items + count; }

  void push_back(T value) {
    assert(count < Capacity);
    items[count++] = value;
  }
  void pop_back() {
    assert(count > 0);
    --count;
  }
  void append(std::span<const T> values) {
    assert(count + values.size() <= Capacity);
    std::copy_n(values.data(), values.size(), items + count);
    count += static_cast<unsigned>(values.size());
  }
  void resize(unsigned size, T value = T()) {
    assert(size <= Capacity);
    for (unsigned i = count; i < size; ++i)
      items[i] = value;
    count = size;
  }
  void clear() { count = 0; }

  friend bool operator==(const InlineVector &a, const InlineVector &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

private:
  unsigned count = 0;
  T items[Capacity];
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_INLINEVECTOR_H
