//===- Checks.h - Facts, checks and output -----------------------------------===//
#ifndef KILN_LANGUAGE_CHECKS_H
#define KILN_LANGUAGE_CHECKS_H

#include "Value.h"

#include <string_view>

namespace kiln::language {

namespace detail {
/// A message that remembers where it was written: the way to a location in front of a parameter pack.
struct Message {
  template <typename S>
    requires std::convertible_to<const S &, std::string_view>
  Message(const S &text, Location loc = Location::current()) : text(text), location(loc) {}
  std::string_view text;
  Location location;
};
} // namespace detail

/// A fact that the compiler may use; `kiln check` reports it if it does not hold.
inline void assume(const Scalar<i1> &condition, Location loc = Location::current()) {
  detail::assume(detail::operandOf(condition, loc), loc);
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
