//===- AxisTransfer.h - Axis facts of one operation's results --------------===//
//
// The rules of the layouts specification, section 4.1, for each operation of `tile` and `arith`; what has no rule gives
// facts about nothing.  Pure functions of the operation and its operands' facts.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_AXISTRANSFER_H
#define KILN_ANALYSIS_AXISTRANSFER_H

#include "compiler/layout/AxisInfo.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace kiln::analysis {

/// The shape that facts of a value have: [1] for a scalar.  Nothing for other types and for what no layout can hold.
std::optional<layout::Coords> factShape(mlir::Type type);

/// Operands without facts (views, tokens) are null.
using OperandFacts = llvm::ArrayRef<const layout::AxisInfo *>;

/// Facts of the result `index`, whose type has a factShape.
layout::AxisInfo transfer(mlir::Operation *op, OperandFacts operands, unsigned index);

/// Facts of a value that no operation computes: a kernel's argument, a multiple of `known` too (bytes of a pointer).
layout::AxisInfo entryFacts(mlir::Value value, const layout::Coords &shape, std::uint64_t known = 1);

/// What the kernel assumes of a scalar integer (tile.assume) in the block that defines it, so wherever it has a value.
struct Assumptions {
  std::uint32_t divisor = 1; ///< a power of two
  std::optional<std::int64_t> least, most;
};
Assumptions assumptionsOf(mlir::Value value);

/// An upper bound of an integer value that is proved or assumed to be non-negative, by looking at its definition.
std::optional<std::int64_t> nonNegativeBound(mlir::Value value, unsigned depth = 8);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_AXISTRANSFER_H
