//===- AxisAnalysis.h - Contiguity, divisibility, constancy of every value ---===//
//
// layout::AxisInfo for each scalar and tile of a function, by sparse forward data flow.  A scalar has the facts of a
// tile of shape [1].  Pointers count in elements of what they point to: divisibility 4 of a !tile.ptr<f32> is 16 bytes.
//
// What is assumed: global pointers are aligned to their element (the launcher checks it); a kernel argument is a
// multiple of its tile.divisibility (a guard); what the kernel assumes holds (tile.assume in the block of the value,
// tile.multiple_of, tile.max_contiguous).  Nothing is assumed of overflow: integers wrap, and a fact (contiguity
// c, divisibility v) is proved for aligned blocks of min(c, v) elements; such a block never crosses the point where
// numbers wrap, so it survives sign extension.  Contiguity beyond divisibility is a hint, good for choosing the order
// of a layout; every width takes the smaller of the two.
//
// The analysis describes the IR as it was when it ran: make it before rewriting.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_AXISANALYSIS_H
#define KILN_ANALYSIS_AXISANALYSIS_H

#include "compiler/layout/AxisInfo.h"
#include "compiler/layout/TileLayout.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace kiln::analysis {

/// What is known of the addresses of one memory operation, dimension by dimension of its tile.
struct AccessFacts {
  layout::AxisInfo address; ///< in elements
  layout::AxisInfo mask;    ///< its constancy: how far elements are in bounds, or not, together
};

/// One access of a thread moves `elements` neighbours along `dim`.
struct VectorAccess {
  unsigned dim = 0;
  unsigned elements = 1;
};

class AxisAnalysis {
public:
  /// Of every function below `root`, or of `root` itself.
  explicit AxisAnalysis(mlir::Operation *root);
  /// As if these arguments were multiples of 16, pointers of 16 bytes.
  AxisAnalysis(mlir::Operation *root, llvm::ArrayRef<mlir::Value> multiples);

  /// Nothing is known (all facts 1) of a value that was not there, or in code that is never reached.  Nothing is
  /// returned for values that are no number, pointer or tile of them, and for ranks and extents that no layout has.
  std::optional<layout::AxisInfo> facts(mlir::Value value) const;
  /// The power of two that divides a scalar.
  std::uint32_t divisibility(mlir::Value scalar) const;

  /// Of a load, store, atomic, load_view, store_view or asynchronous copy of a tile; nothing for other operations.
  std::optional<AccessFacts> access(mlir::Operation *memoryOp) const;

  /// The same for choosing layouts by: of the tiles of a product's operands and results nearly all lie wholly inside
  /// their views, so that nothing is masked.
  std::optional<AccessFacts> usualAccess(mlir::Operation *memoryOp) const;

  /// The widest access that facts, mask and the layout of the operation's tile allow, at most `maxBytes` wide.  One
  /// element for scalars, volatile accesses, tiles without a layout and atomics, but for sums of f32 whose old values
  /// nobody asks for.
  VectorAccess vectorAccess(mlir::Operation *memoryOp, unsigned maxBytes = 16) const;
  unsigned accessElements(mlir::Operation *memoryOp, unsigned maxBytes = 16) const {
    return vectorAccess(memoryOp, maxBytes).elements;
  }

private:
  llvm::DenseMap<mlir::Value, layout::AxisInfo> table;
};

/// The tile that a memory operation moves (the pointers' type if it has any, the value's else); null for scalars and
/// other operations.
mlir::Type accessedTile(mlir::Operation *memoryOp);

/// AxisAnalysis::vectorAccess with the facts at hand, in another layout than the operation's own.
VectorAccess vectorAccess(mlir::Operation *memoryOp, const AccessFacts &facts, const layout::TileLayout &layout,
                          unsigned maxBytes = 16);

/// The same where no element is masked out: what a view's access may do wholly inside.  Other operations: vectorAccess.
VectorAccess unmaskedAccess(mlir::Operation *memoryOp, const AccessFacts &facts, const layout::TileLayout &layout);

/// The first valid coordinate of the view's unit dimension is 0, so that elements before a valid one are valid: an
/// asynchronous copy can leave out the end of a run of bytes, but not its beginning.
bool beginsAtZero(mlir::Value view);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_AXISANALYSIS_H
