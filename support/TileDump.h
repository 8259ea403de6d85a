//===- TileDump.h - How a kernel prints a whole tile ----------------------===//
//
// A dumped tile is a print whose prefix says what it is, and whose values are the bits of the elements: "kiln.tile NAME
// TYPE EXTENTS ", as in "kiln.tile scores f32 64x32 ".  The front end writes it (dumpTile), the emulator reads it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_TILEDUMP_H
#define KILN_SUPPORT_TILEDUMP_H

#include <string_view>

namespace kiln {

inline constexpr std::string_view tileDumpMark = "kiln.tile ";

/// Letters, digits, '_' and '-': it becomes part of a file's name.
constexpr bool isTileDumpName(std::string_view name) {
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  return !name.empty() && name.size() <= 64;
}

} // namespace kiln

#endif // KILN_SUPPORT_TILEDUMP_H
