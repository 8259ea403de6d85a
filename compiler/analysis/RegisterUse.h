//===- RegisterUse.h - How many registers tiles take -------------------------===//
//
// An estimate, from the tiles that are alive between operations: what the assembler needs on top (addresses, counters,
// what an operation computes on the way) is not in it, nor what it saves by mixing operations.  Tiles that only rename
// another's registers and tiles of one value count nothing.  An operand that is read from shared memory for one product
// alone counts as much as the matrix unit takes of it at a time: lowering reads it piece by piece (SinkLoads.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_REGISTERUSE_H
#define KILN_ANALYSIS_REGISTERUSE_H

#include "compiler/tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <compare>

namespace kiln::analysis {

/// What a thread needs in addition to tiles: addresses, counters, and the pieces of other operands that the matrix unit
/// is about to read.
constexpr unsigned registersBesideTiles = 56;

/// An operation that reads of shared memory are not sunk past.
bool holdsSharedReads(mlir::Operation *op);

/// Words of 32 bits of a thread's tiles.  They are ordered by how much the assembler has to spill.
struct TileWords {
  uint64_t beyond = 0; ///< those above the room, summed up over all operations
  uint64_t most = 0;   ///< at once
  auto operator<=>(const TileWords &) const = default;
};
TileWords tileWords(mlir::func::FuncOp function, uint64_t room);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_REGISTERUSE_H
