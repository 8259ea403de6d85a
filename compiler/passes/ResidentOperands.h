//===- ResidentOperands.h - Operands of products that wait in shared memory --===//
//
// For pipeline-loops.  A product in a loop may have an operand from outside: attention's queries.  In registers it is
// there all the time; where the loop's other tiles leave no room, it lies in shared memory and each round reads it
// again, piece by piece, as the matrix unit takes it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_RESIDENTOPERANDS_H
#define KILN_PASSES_RESIDENTOPERANDS_H

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln {

class ResidentOperands {
public:
  explicit ResidentOperands(const Target &target) : target(target) {}

  /// Moves operands of this loop's products to shared memory until what is alive in the loop leaves room in a thread's
  /// registers, the largest first.  An operand of several loops lies there once.  The loop must hold a barrier: without
  /// one the reads would be moved out of it again.
  void relieve(mlir::scf::ForOp loop);

private:
  /// A buffer that holds `stored`, made where that is, for readers that want it as this tile.
  mlir::Value bufferOf(mlir::Value stored, mlir::RankedTensorType tile);

  const Target &target;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> buffers;
};

} // namespace kiln

#endif // KILN_PASSES_RESIDENTOPERANDS_H
