//===- PrintSlice.h - Which elements of its tiles a print prints ------------===//
//
// tile.print {tile.slice = array<i64: 0, 4, 8, 16>}: begin and end of each dimension of its tiles, 0 <= begin < end <=
// extent (the dialect verifies it); without it all elements.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_PRINTSLICE_H
#define KILN_TILE_PRINTSLICE_H

#include "llvm/ADT/StringRef.h"

namespace kiln::tile {
constexpr llvm::StringLiteral printSliceAttr = "tile.slice";
} // namespace kiln::tile

#endif // KILN_TILE_PRINTSLICE_H
