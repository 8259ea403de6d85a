//===- ParseNumber.h - A text that is a number as a whole ----------------===//
#ifndef KILN_SUPPORT_PARSENUMBER_H
#define KILN_SUPPORT_PARSENUMBER_H

#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>

namespace kiln {

/// The number that all of `text` is: no spaces, no plus sign, no prefix such as 0x.  Nothing where it is no number, has
/// more after it, or does not fit T.  `base` is of whole numbers.
template <typename T> std::optional<T> parseNumber(std::string_view text, [[maybe_unused]] int base = 10) {
  T value{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>)
    read = std::from_chars(text.data(), text.data() + text.size(), value);
  else
    read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

} // namespace kiln

#endif // KILN_SUPPORT_PARSENUMBER_H
