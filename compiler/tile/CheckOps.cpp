// Verifiers of CheckOps.td.
#include "compiler/tile/Tile.h"

using namespace mlir;

namespace kiln::tile {

LogicalResult MaxContiguousOp::verify() {
  const int64_t rank = getType().getRank();
  if (getAxis() >= rank)
    return emitOpError() << "axis " << getAxis() << " of " << getType() << ": the last dimension is " << rank - 1;
  if (!llvm::isPowerOf2_32(getElements()))
    return emitOpError() << "runs of " << getElements() << " elements: give a power of two";
  return success();
}

} // namespace kiln::tile
