//===- LayoutText.h - Layouts as text -------------------------------------===//
//
// The form that `kiln explain --layout` reads and that messages print:
//
//   blocked<sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]> : 64x64
//   dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2]>> : 64x32xf16
//   slice<dim=1, parent=transposed<perm=[1,0], parent=mma<version=3, warpsPerCTA=[4,1], instrN=32>>> : 96
//   linear<register=[[0,1],[0,2]], lane=[j4, j8, i1, i2, i4]> : 8x16
//   tma<swizzle=128> : 64x64xf16         swizzled<vec=8, perPhase=1, maxPhase=8> : 64x64xf16
//
// An encoding is `kind<field=value, ..>`; the kinds and their fields are those of Encodings.h and SharedEncodings.h.
// A basis of `linear` is a coordinate ([0,4]) or its short form (j4, i1+j8, 0).  After ':' comes the shape (extents
// m * 2^k, or the word `scalar`) and, where bytes matter, an element type.  White space is free.
//
// print() gives one canonical spelling: fields in the order of declaration, optional ones only where they differ from
// their default, coordinates in full.  parse(print(x)) == x for every x that parse() gives.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_LAYOUTTEXT_H
#define KILN_LAYOUT_LAYOUTTEXT_H

#include "compiler/layout/TileLayout.h"

#include <string>
#include <variant>

namespace kiln::layout {

/// Longer texts are refused.
constexpr std::size_t maxLayoutText = 64 * 1024;

struct LayoutText {
  std::variant<Encoding, SharedEncoding> encoding;
  std::optional<Sizes> shape; ///< an empty list is a scalar
  std::string elementType;    ///< "f16"; empty if none was given

  bool isShared() const { return encoding.index() == 1; }
  bool operator==(const LayoutText &) const = default;
};

/// Errors name line and column, what was found and what was expected, and the nearest known word.
Result<LayoutText> parseLayout(std::string_view text);

std::string print(const LayoutText &text);
std::string print(const Encoding &encoding);
std::string print(const SharedEncoding &encoding);

/// Bits of an element type's name: "f16" is 16.  The failure lists the types.
Result<unsigned> elementTypeBits(std::string_view name);

/// The layout that a text describes.  Fails with a plain message where shape or element type is missing, else with the
/// diagnostics of lowering.
Result<TileLayout> lowerDistributed(const LayoutText &text);
Result<SharedTile> lowerShared(const LayoutText &text);

} // namespace kiln::layout

#endif // KILN_LAYOUT_LAYOUTTEXT_H
