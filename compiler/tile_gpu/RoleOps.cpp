// Verifier of RoleOps.td.
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln::tile_gpu {

/// Both or neither, as setmaxnreg takes them, in whole warpgroups, and no more than the block has.
static LogicalResult verifyRegisters(RolesOp op, func::FuncOp kernel) {
  const std::optional<uint32_t> copies = op.getCopyRegisters(), computes = op.getComputeRegisters();
  if (!copies && !computes)
    return success();
  if (!copies || !computes)
    return op.emitOpError("says how many registers one role has and not the other: both or neither");
  const unsigned copyWarps = tile::numCopyWarps(kernel), warps = tile::numWarps(kernel);
  if (copyWarps % warpsOfGroup || warps % warpsOfGroup)
    return op.emitOpError() << "moves registers between " << copyWarps << " and " << warps
                            << " warps: whole warpgroups of " << warpsOfGroup << " give and take them";
  constexpr unsigned least = 24, most = 256, unit = 8;
  for (const uint32_t n : {*copies, *computes})
    if (n < least || n > most || n % unit)
      return op.emitOpError() << "registers " << static_cast<int32_t>(n) << ": a multiple of " << unit << " from "
                              << least << " to " << most;
  const Result<const Target *> target = targetOf(op);
  if (!target)
    return success(); // whoever lowers it says so
  const unsigned each = (*target)->registersPerSm / threadsOf(kernel) / unit * unit;
  const unsigned wanted = layout::warpSize * (copyWarps * *copies + warps * *computes);
  if (wanted > each * threadsOf(kernel))
    return op.emitOpError() << "takes " << wanted << " registers for a block that begins with "
                            << each * threadsOf(kernel) << " (" << each << " a thread): give one role fewer";
  return success();
}

LogicalResult RolesOp::verify() {
  auto kernel = dyn_cast<func::FuncOp>((*this)->getParentOp());
  if (!kernel || !tile::isKernel(kernel))
    return emitOpError("is for the body of a kernel: nothing is around it");
  if (!tile::numCopyWarps(kernel))
    return emitOpError() << "in a kernel without copying warps: say how many in " << tile::copyWarpsAttr;
  return verifyRegisters(*this, kernel);
}

} // namespace kiln::tile_gpu
