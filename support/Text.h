//===- Text.h - Small text helpers that the standard library lacks --------===//
#ifndef KILN_SUPPORT_TEXT_H
#define KILN_SUPPORT_TEXT_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// Pieces of `text` between separators; empty pieces are kept.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The candidates within a small edit distance of `word`, nearest first, at most three: for "did you mean".
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// printf into a std::string.
std::string format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

} // namespace kiln

#endif // KILN_SUPPORT_TEXT_H
