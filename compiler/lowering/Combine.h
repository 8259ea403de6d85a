//===- Combine.h - The region of a reduction or scan, on scalars ------------===//
//
// Values of n operands travel together: a Column holds one scalar of each.  A Combiner copies the region's body for
// every combination, since the operations in it are already scalar.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_COMBINE_H
#define KILN_LOWERING_COMBINE_H

#include "compiler/layout/Reduction.h"
#include "compiler/lowering/Emit.h"

namespace kiln::lowering {

/// One scalar of each operand.
using Column = llvm::SmallVector<mlir::Value, 2>;
/// The columns of a thread's registers.
using RegisterFile = std::vector<Column>;

class Combiner {
public:
  Combiner(Emit &emit, mlir::Region &region) : emit(emit), body(region.front()) {}

  /// left o right
  Column operator()(const Column &left, const Column &right) const;
  Column select(mlir::Value condition, const Column &yes, const Column &no) const;
  Column shuffle(mlir::NVVM::ShflKind kind, const Column &values, mlir::Value offset) const;
  mlir::Block &block() const { return body; }

private:
  Emit &emit;
  mlir::Block &body;
};

/// Operand lists, register by register.
RegisterFile filesOf(llvm::ArrayRef<mlir::ValueRange> operands);
/// The inverse: one list of scalars for each of `operands` columns.
llvm::SmallVector<Scalars> listsOf(const RegisterFile &file, unsigned operands);

/// The layout by which a lowered operation numbers registers: that core, and `count` repetitions of the last dimension
/// (0: none are asked for).  Anything else is reported at `op`.
mlir::LogicalResult expectLayout(mlir::Operation *op, const layout::TileLayout &is, const layout::LinearLayout &core,
                                 unsigned count);

void populateScanPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateGatherPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);

} // namespace kiln::lowering

#endif // KILN_LOWERING_COMBINE_H
