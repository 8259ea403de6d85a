//===- ReservedWords.h - Words that a C or C++ program cannot use as names ----===//
//
// Those of C and C++, and the types and macros that every program has.  What makes C of names that come from elsewhere
// asks here.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_RESERVEDWORDS_H
#define KILN_SUPPORT_RESERVEDWORDS_H

#include "support/Text.h"

#include <algorithm>
#include <string_view>

namespace kiln {

/// Apart by spaces.
constexpr std::string_view reservedWords =
    "alignas alignof and asm auto bool break case catch char class const continue default delete do "
    "double else enum explicit export extern false float for friend goto if inline "
    "int int16_t int32_t int64_t int8_t long mutable new not operator or private "
    "protected public register restrict return short signed sizeof static struct switch template this throw "
    "true try typedef typename uint16_t uint64_t uint8_t union unsigned using virtual void volatile "
    "while xor uint32_t nullptr linux unix constexpr namespace requires concept "
    "decltype noexcept typeid wchar_t char8_t char16_t char32_t bitand bitor compl and_eq or_eq xor_eq "
    "not_eq typeof static_assert thread_local co_await co_return co_yield consteval constinit const_cast "
    "dynamic_cast reinterpret_cast static_cast NULL size_t";

inline bool isReservedWord(std::string_view word) {
  const auto words = split(reservedWords, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

} // namespace kiln

#endif // KILN_SUPPORT_RESERVEDWORDS_H
