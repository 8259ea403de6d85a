// Verifier of RoleOps.td.
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln::tile_gpu {

LogicalResult RolesOp::verify() {
  auto kernel = dyn_cast<func::FuncOp>((*this)->getParentOp());
  if (!kernel || !tile::isKernel(kernel))
    return emitOpError("is for the body of a kernel: nothing is around it");
  if (!tile::numCopyWarps(kernel))
    return emitOpError() << "in a kernel without copying warps: say how many in " << tile::copyWarpsAttr;
  return success();
}

} // namespace kiln::tile_gpu
