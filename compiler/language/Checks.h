//===- Checks.h - Facts, checks and output -----------------------------------===//
#ifndef KILN_LANGUAGE_CHECKS_H
#define KILN_LANGUAGE_CHECKS_H

#include "Value.h"

#include <algorithm>
#include <string_view>

namespace kiln::language {

namespace detail {
/// A message that remembers where it was written: a parameter pack leaves no room for a defaulted location after it, so
/// the location comes with a parameter before it.
struct Message {
  template <typename S>
    requires std::convertible_to<const S &, std::string_view>
  Message(const S &text, Location loc = Location::current()) : text(text), location(loc) {}
  std::string_view text;
  Location location;
};
} // namespace detail

/// A fact that the compiler may use.  If it does not hold, results are undefined and nothing reports it: deviceAssert
/// checks.  `assume(n % 16 == 0)` and `assume(n >= 0)` make accesses wide if they stand where n is made (an argument:
/// at the top of the kernel).
inline void assume(const Scalar<i1> &condition, Location loc = Location::current()) {
  detail::assume(detail::operandOf(condition, loc), loc);
}

/// x, known to be a multiple of `divisor`; of a tile the first element of each run that counts up, each element where
/// nothing does.  Undefined if it is not.
template <IndexElement T>
Scalar<T> multipleOf(const Scalar<T> &x, std::int64_t divisor, Location loc = Location::current()) {
  return Scalar<T>(detail::multipleOf(detail::operandOf(x, loc), divisor, loc));
}
template <IndexElement T>
Tile<T> multipleOf(const Tile<T> &x, std::int64_t divisor, Location loc = Location::current()) {
  return Tile<T>(detail::multipleOf(detail::operandOf(x, loc), divisor, loc));
}

/// x, whose elements are known to count up by 1 in aligned runs of `elements`, a power of two, along its last dimension
/// or another.  Undefined if they do not.  `load(p + multipleOf(maxContiguous(i, 8), 8))` reads 8 elements at once.
template <IndexElement T>
Tile<T> maxContiguous(const Tile<T> &x, std::int64_t elements, Location loc = Location::current()) {
  return Tile<T>(detail::maxContiguous(detail::operandOf(x, loc), elements, -1, loc));
}
template <IndexElement T>
Tile<T> maxContiguous(const Tile<T> &x, std::int64_t elements, Along along, Location loc = Location::current()) {
  return Tile<T>(detail::maxContiguous(detail::operandOf(x, loc), elements, std::max(along.dim, 0), loc));
}

/// Stops the kernel with a message if the condition fails (anywhere in the tile).
inline void deviceAssert(const Scalar<i1> &condition, std::string_view message, Location loc = Location::current()) {
  detail::deviceAssert(detail::operandOf(condition, loc), message, loc);
}
inline void deviceAssert(const Tile<i1> &condition, std::string_view message, Location loc = Location::current()) {
  detail::deviceAssert(detail::operandOf(condition, loc), message, loc);
}

/// Prints values from the device, one line an element: `devicePrint("x = ", x)`.
template <detail::Numeric... Vs> void devicePrint(detail::Message prefix, const Vs &...values) {
  const detail::Operand operands[] = {detail::operandOf(values, prefix.location)..., detail::Operand()};
  detail::devicePrint(prefix.text, {operands, sizeof...(Vs)}, prefix.location);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_CHECKS_H
