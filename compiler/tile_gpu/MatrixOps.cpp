// Verifier and accesses of MatrixOps.td.
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/SharedAccesses.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

/// What a descriptor cannot say: `k` is the operand's dimension along K; an instruction reads `least` elements along
/// the other one at a time.
LogicalResult verifyOperand(WarpgroupDotOp op, const char *which, BufferType buffer, unsigned k, int64_t least) {
  const auto *tma = std::get_if<layout::Tma>(&cast<SharedLayoutAttr>(buffer.getLayout()).encoding().kind);
  if (!tma || tma->swizzle == 0)
    return op.emitOpError() << "reads its " << which << " from " << buffer << ": it needs a tma layout with a swizzle";
  const Result<layout::SharedTile> lowered = buffer.lowered();
  if (!lowered)
    return report(op, lowered.status());
  if (buffer.getCount() != 1)
    return op.emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  if (lowered->tile().repetitions() != 1)
    return op.emitOpError() << "reads its " << which << " from " << buffer << ": extents are powers of two";
  const auto inner = static_cast<unsigned>(tma->order.empty() ? 1 : tma->order[0]);
  const int64_t bytes = buffer.getElementType().getIntOrFloatBitWidth() / 8;
  if (inner != k && bytes != 2)
    return op.emitOpError() << "reads its " << which << " from " << buffer << ": elements of " << 8 * bytes
                            << " bits lie with K contiguous";
  if (inner != k && tma->swizzle / bytes > least)
    return op.emitOpError() << "reads " << least << " elements of its " << which
                            << " at a time, with K not contiguous: " << buffer << " has them in groups of "
                            << tma->swizzle / bytes;
  return success();
}

/// The registers of pending sums are there once: two users would have to copy them while they are written.
LogicalResult verifyUsedOnce(Operation *op, Value sums) {
  if (!isa<PendingType>(sums.getType()) || sums.hasOneUse())
    return success();
  return op->emitOpError() << "takes pending sums that " << std::distance(sums.use_begin(), sums.use_end())
                           << " operations use: each is used once";
}

} // namespace

tile::MemoryAccesses WarpgroupDotOp::accesses() {
  tile::MemoryAccesses out{sharedRead(getLhs()), sharedRead(getRhs())};
  for (tile::MemoryAccess &access : out) {
    access.agent = tile::Agent::MatrixUnit;
    access.inFlight = goesOn();
  }
  return out;
}

tile::MemoryOrdering WarpgroupDotOp::ordering() {
  tile::MemoryOrdering out;
  if (goesOn())
    out.closes = tile::Agent::MatrixUnit;
  return out;
}

tile::MemoryOrdering WarpgroupWaitOp::ordering() {
  tile::MemoryOrdering out;
  out.awaits = tile::Agent::MatrixUnit;
  out.inFlight = getLeave();
  return out;
}

const MatrixInstruction *WarpgroupDotOp::instructionOf(Type element) {
  const std::optional<MatrixElements> elements = matrixElementsOf(element, tile::Precision::Tf32);
  return elements ? loweredInstruction(MatrixUnit::Wgmma, *elements) : nullptr;
}

LogicalResult WarpgroupDotOp::verify() {
  const BufferType a = getLhs().getType(), b = getRhs().getType();
  const RankedTensorType c = tile();
  if (!isOfWarpgroups(layoutAttrOf(c)) || c.getRank() != 2)
    return emitOpError() << "gives " << c << ": a tile of rank 2 in an mma layout of version 3";
  const auto &mma = std::get<layout::Mma>(layoutAttrOf(c).encoding().kind);
  if (a.getShape().size() != 2 || b.getShape().size() != 2 || a.getShape()[1] != b.getShape()[0] ||
      a.getShape()[0] != c.getShape()[0] || b.getShape()[1] != c.getShape()[1])
    return emitOpError() << "multiplies " << a << " by " << b << " into " << c
                         << ": MxK by KxN gives MxN, and the extents differ";
  const Type element = a.getElementType();
  const MatrixInstruction *one = instructionOf(element);
  if (element != b.getElementType() || !one)
    return emitOpError() << "multiplies " << element << " by " << b.getElementType() << ": f16, bf16, or f32 as tf32";
  if (!c.getElementType().isF32())
    return emitOpError() << "adds to " << c.getElementType() << ": the accumulator is f32";
  if (c.getShape()[0] % one->m || c.getShape()[1] % mma.instrN || a.getShape()[1] % one->k)
    return emitOpError() << "of " << c << " with K = " << a.getShape()[1] << ": an instruction takes " << one->m
                         << " x " << mma.instrN << " and " << one->k * one->bits() / 8 << " bytes of K";
  return success(succeeded(verifyUsedOnce(*this, getAccumulator())) &&
                 succeeded(verifyOperand(*this, "lhs", a, 1, one->m)) &&
                 succeeded(verifyOperand(*this, "rhs", b, 0, mma.instrN)));
}

LogicalResult PendingType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, RankedTensorType tile) {
  if (!isOfWarpgroups(layoutAttrOf(tile)))
    return emitError() << "pending sums of " << tile << ": they are a tile in an mma layout of version 3";
  return success();
}

RankedTensorType tileOf(Type sums) {
  if (auto pending = dyn_cast<PendingType>(sums))
    return pending.getTile();
  return cast<RankedTensorType>(sums);
}

Type pendingOf(Type sums) {
  if (auto tile = dyn_cast<RankedTensorType>(sums))
    return PendingType::get(tile);
  return sums;
}

LogicalResult WarpgroupWaitOp::verify() {
  constexpr uint32_t mostGroups = 7; // what wgmma.wait_group takes
  if (getLeave() > mostGroups)
    return emitOpError() << "leaves " << static_cast<int32_t>(getLeave()) << " products in flight: 0 to " << mostGroups;
  if (failed(verifyUsedOnce(*this, getSums())))
    return failure();
  const Type wanted = getLeave() ? Type(getSums().getType()) : Type(getSums().getType().getTile());
  if (getType() != wanted)
    return emitOpError() << "leaves " << getLeave() << " products in flight and gives " << getType() << ", not "
                         << wanted;
  return success();
}

} // namespace kiln::tile_gpu
