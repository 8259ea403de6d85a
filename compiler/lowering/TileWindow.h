//===- TileWindow.h - One tile of a view, as a thread sees it --------------===//
//
// A view is these scalars: the base; the first valid coordinate of each dimension; one past the last one; the strides.
// All but the base are i64.  Valid coordinates are never negative, whatever numbers a kernel gives, so that the
// differences below cannot wrap into the valid range.
//
// A tile's access compares, in 32 bits, the coordinate inside the tile with the part of the tile that is valid.  If the
// facts allow wider accesses wholly inside than at the edges (an access must lie inside or outside as a whole), a
// uniform branch tells the two apart.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_TILEWINDOW_H
#define KILN_LOWERING_TILEWINDOW_H

#include "compiler/lowering/Emit.h"

#include <map>

namespace kiln::lowering {

struct ViewScalars {
  mlir::Value base;
  mlir::ValueRange first, end, strides;
  explicit ViewScalars(mlir::ValueRange all);
};

/// Signed.
mlir::Value atLeast(const Emit &e, mlir::Value x, mlir::Value bound);
mlir::Value atMost(const Emit &e, mlir::Value x, mlir::Value bound);

/// Where the registers of one tile of a view lie in memory, and which of them are inside.
class TileWindow {
public:
  TileWindow(const LoweringContext &context, const Emit &e, const layout::TileLayout &layout, tile::ViewType type,
             mlir::ValueRange scalars, llvm::ArrayRef<mlir::ValueRange> coords);

  /// Every element of the tile is valid.
  mlir::Value whole(const Emit &e) const;
  /// The element of a register is valid.
  mlir::Value inside(const Emit &e, unsigned reg);
  /// How many of `count` neighbours along the unit dimension, from the register's element on, are valid (i32); 0 if the
  /// first is not, so only where no valid one can follow an invalid one: in views whose first valid coordinate is 0
  /// there.
  mlir::Value validRun(const Emit &e, unsigned reg, unsigned count);
  mlir::Value address(const Emit &e, unsigned reg);

  /// Forgets values made inside a branch.
  void leaveBranch() {
    insides.clear();
    rows.clear();
    lastPointer = {};
  }

private:
  bool isUnit(unsigned d) const { return static_cast<int64_t>(d) == unit; }
  mlir::Value offset(const Emit &e, unsigned d, mlir::Value coordinate) const;
  /// Coordinate d of a register's element less the first valid one of the tile.
  mlir::Value fromFirst(const Emit &e, unsigned d, unsigned reg);
  /// Coordinate d of a register's element is valid.
  mlir::Value insideAlong(const Emit &e, unsigned d, unsigned reg);

  const LoweringContext &context;
  const layout::TileLayout &layout;
  const ViewScalars view;
  const mlir::Type stored;
  const int64_t unit;
  mlir::Value origin, threadOrigin;
  Scalars first, end, length;
  std::map<std::pair<unsigned, LoweringContext::RegisterPart>, mlir::Value> insides;
  std::map<std::vector<unsigned>, mlir::Value> rows; ///< pointers, by what the register adds in the other dimensions
  std::vector<unsigned> lastRow;
  mlir::Value lastPointer;
};

} // namespace kiln::lowering

#endif // KILN_LOWERING_TILEWINDOW_H
