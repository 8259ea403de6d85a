//===- LayoutPicture.h - Pictures and tables of layouts -------------------===//
//
// svg() draws the tensor as a grid of cells.  Distributed layouts: the colour is the warp, the shade the lane, the
// label lane:register; the cells of the first thread are framed; hovering names element and place and counts copies.
// Shared layouts: the colour is the bank, the label the offset in elements; hovering names byte address and bank.
//
// table() writes the same as text: one entry an element, warp:lane:register.
//
// Both show the owner of a replicated element, and both are bounded: what is left out is said in the output.  Leading
// dimensions of tensors of rank 3 and more are stacked as rows; a vector is wrapped.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_LAYOUTPICTURE_H
#define KILN_LAYOUT_LAYOUTPICTURE_H

#include "compiler/layout/TileLayout.h"

#include <string>
#include <string_view>

namespace kiln::layout {

struct PictureLimits {
  std::uint32_t rows, columns;
};
constexpr PictureLimits svgLimits = {64, 64};
constexpr PictureLimits tableLimits = {32, 16};

/// A complete SVG document.
std::string svg(const TileLayout &layout, std::string_view title, PictureLimits limits = svgLimits);
std::string svg(const SharedTile &layout, std::string_view title, PictureLimits limits = svgLimits);
/// A layout with offset bases is drawn as one of shared memory, with elements of `bits`.
std::string svg(const LinearLayout &layout, std::string_view title, unsigned bits = 32,
                PictureLimits limits = svgLimits);

std::string table(const TileLayout &layout, PictureLimits limits = tableLimits);
/// Entries are element offsets.
std::string table(const SharedTile &layout, PictureLimits limits = tableLimits);

} // namespace kiln::layout

#endif // KILN_LAYOUT_LAYOUTPICTURE_H
