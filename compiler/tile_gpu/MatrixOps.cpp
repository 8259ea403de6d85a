// Verifier and accesses of MatrixOps.td.
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/SharedAccesses.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

/// What a descriptor cannot say: `k` is the operand's dimension along K; an instruction reads `least` elements along
/// the other one at a time, a power of two that divides the extent, as the elements of K that it reads are: it stays in
/// one of the repetitions of a tile.
LogicalResult verifyOperand(WarpgroupDotOp op, const char *which, BufferType buffer, unsigned k, int64_t least) {
  const auto *tma = std::get_if<layout::Tma>(&cast<SharedLayoutAttr>(buffer.getLayout()).encoding().kind);
  if (!tma || tma->swizzle == 0)
    return op.emitOpError() << "reads its " << which << " from " << buffer << ": it needs a tma layout with a swizzle";
  const Result<layout::SharedTile> lowered = buffer.lowered();
  if (!lowered)
    return report(op, lowered.status());
  if (buffer.getCount() != 1)
    return op.emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
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

/// Operand A of wgmma in registers: elements of 16 or 8 bits, in the layout of an operand of the result.
LogicalResult verifyRegisters(WarpgroupDotOp op) {
  const auto a = cast<RankedTensorType>(op.getLhs().getType());
  if (!fitsRegisters(a, layoutAttrOf(op.tile())))
    return op.emitOpError() << "reads its lhs from " << a << ": elements of 16 or 8 bits in the layout of operand 0 of "
                            << op.tile();
  return success();
}

/// The registers of pending sums are there once: two users would have to copy them while they are written.
LogicalResult verifyUsedOnce(Operation *op, Value sums) {
  const auto mayUse = [&](Operation *user) { return user == op || insideMutuallyExclusiveRegions(user, op); };
  if (!isa<PendingType>(sums.getType()) || llvm::all_of(sums.getUsers(), mayUse))
    return success();
  return op->emitOpError() << "takes pending sums that " << std::distance(sums.use_begin(), sums.use_end())
                           << " operations use: each is used once";
}

} // namespace

tile::MemoryAccesses WarpgroupDotOp::accesses() {
  tile::MemoryAccesses out{sharedRead(getRhs())};
  if (!readsRegisters())
    out.insert(out.begin(), sharedRead(getLhs()));
  for (tile::MemoryAccess &access : out) {
    access.agent = tile::Agent::MatrixUnit;
    access.inFlight = goesOn();
  }
  return out;
}

void WarpgroupDotOp::getEffects(llvm::SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand *operand : {&getLhsMutable(), &getRhsMutable()})
    if (isa<BufferType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand, SharedMemory::get());
}

tile::MemoryOrdering WarpgroupDotOp::ordering() {
  tile::MemoryOrdering out;
  if (goesOn())
    out.closes = tile::Agent::MatrixUnit;
  return out;
}

/// Products end in their order: adds those before `product` that no earlier wait was for.  Of its block and, out of the
/// branches of conditionals, of those around it; one that a loop's round before began is not named.
static void addOlder(Operation *product, WarpgroupWaitOp wait, llvm::SmallVectorImpl<Operation *> &out) {
  llvm::SmallPtrSet<Operation *, 4> over;
  bool isOlder = false;
  for (Operation *at = product->getBlock()->findAncestorOpInBlock(*wait); at; at = at->getParentOp()) {
    for (Operation *op = at->getPrevNode(); op; op = op->getPrevNode()) {
      if (over.contains(op))
        return;
      auto earlier = dyn_cast<WarpgroupWaitOp>(op);
      if (earlier && !isa<PendingType>(earlier.getType()))
        over.insert(earlier.getSums().getDefiningOp());
      else if (isOlder && isa<WarpgroupDotOp>(op) && !llvm::is_contained(out, op))
        out.push_back(op);
      isOlder |= op == product;
    }
    if (!isa<scf::IfOp>(at->getParentOp()))
      return;
  }
}

/// The products that are over here, where sums become a tile; none (any may be) where a loop carries them.
static llvm::SmallVector<Operation *, 1> productsOf(WarpgroupWaitOp wait) {
  llvm::SmallVector<Operation *, 1> out;
  if (isa<PendingType>(wait.getResult().getType()))
    return out;
  Value sums = wait.getSums();
  while (auto product = sums.getDefiningOp<WarpgroupDotOp>()) {
    out.push_back(product);
    sums = product.getAccumulator();
  }
  if (!sums.getDefiningOp<WarpgroupBeginOp>())
    out.clear();
  if (!out.empty())
    addOlder(out.front(), wait, out);
  return out;
}

tile::MemoryOrdering WarpgroupWaitOp::ordering() {
  tile::MemoryOrdering out;
  out.awaits = tile::Agent::MatrixUnit;
  out.inFlight = getLeave();
  out.awaited = productsOf(*this);
  return out;
}

const MatrixInstruction *WarpgroupDotOp::instructionOf(Type element) {
  const std::optional<MatrixElements> elements = matrixElementsOf(element, tile::Precision::Tf32);
  return elements ? loweredInstruction(MatrixUnit::Wgmma, *elements) : nullptr;
}

LogicalResult WarpgroupDotOp::verify() {
  const BufferType b = getRhs().getType();
  const Type a = getLhs().getType();
  const auto inBuffer = dyn_cast<BufferType>(a);
  const llvm::ArrayRef<int64_t> shapeA = inBuffer ? inBuffer.getShape() : cast<RankedTensorType>(a).getShape();
  const RankedTensorType c = tile();
  if (!isOfWarpgroups(layoutAttrOf(c)) || c.getRank() != 2)
    return emitOpError() << "gives " << c << ": a tile of rank 2 in an mma layout of version 3";
  const auto &mma = std::get<layout::Mma>(layoutAttrOf(c).encoding().kind);
  if (shapeA.size() != 2 || b.getShape().size() != 2 || shapeA[1] != b.getShape()[0] || shapeA[0] != c.getShape()[0] ||
      b.getShape()[1] != c.getShape()[1])
    return emitOpError() << "multiplies " << a << " by " << b << " into " << c
                         << ": MxK by KxN gives MxN, and the extents differ";
  const Type element = inBuffer ? inBuffer.getElementType() : cast<RankedTensorType>(a).getElementType();
  const MatrixInstruction *one = instructionOf(element);
  const bool mixes = tile::storageBits(element) == 8; // e4m3 and e5m2
  if (!one || (mixes ? instructionOf(b.getElementType()) != one : element != b.getElementType()))
    return emitOpError() << "multiplies " << element << " by " << b.getElementType()
                         << ": f16, bf16, f32 as tf32, f8E4M3FN and f8E5M2 (these two mix)";
  if (!c.getElementType().isF32())
    return emitOpError() << "adds to " << c.getElementType() << ": the accumulator is f32";
  if (c.getShape()[0] % one->m || c.getShape()[1] % mma.instrN || shapeA[1] % one->k)
    return emitOpError() << "of " << c << " with K = " << shapeA[1] << ": an instruction takes " << one->m << " x "
                         << mma.instrN << " and " << one->k * one->bits() / 8 << " bytes of K";
  return success(
      succeeded(verifyUsedOnce(*this, getAccumulator())) &&
      succeeded(readsRegisters() ? verifyRegisters(*this) : verifyOperand(*this, "lhs", inBuffer, 1, one->m)) &&
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

bool isReadByHardware(BufferType buffer) {
  return std::holds_alternative<layout::Tma>(cast<SharedLayoutAttr>(buffer.getLayout()).encoding().kind);
}

Type pendingOf(Type sums) {
  // Parsers ask for that of any type: what has none is refused where its value is used.
  if (auto tile = dyn_cast<RankedTensorType>(sums); tile && isOfWarpgroups(layoutAttrOf(tile)))
    return PendingType::get(tile);
  return sums;
}

/// So many products, at least, were begun after the one that gave these sums, on every path to the wait.
static uint32_t begunSince(WarpgroupWaitOp wait) {
  uint32_t out = 0;
  Operation *product = wait.getSums().getDefiningOp<WarpgroupDotOp>();
  for (Operation *at = wait; product && at; at = at->getParentOp()) {
    for (Operation *op = at->getPrevNode(); op; op = op->getPrevNode()) {
      if (op == product)
        return out;
      if (auto other = dyn_cast<WarpgroupDotOp>(op))
        out += other.goesOn();
    }
    if (!isa<scf::IfOp>(at->getParentOp()))
      break;
  }
  return 0;
}

LogicalResult WarpgroupWaitOp::verify() {
  constexpr uint32_t mostGroups = 7; // what wgmma.wait_group takes
  if (getLeave() > mostGroups)
    return emitOpError() << "leaves " << static_cast<int32_t>(getLeave()) << " products in flight: 0 to " << mostGroups;
  if (failed(verifyUsedOnce(*this, getSums())))
    return failure();
  if (const uint32_t since = begunSince(*this); !isa<PendingType>(getType()) && getLeave() > since)
    return emitOpError() << "leaves " << getLeave() << " products in flight, " << since
                         << " of which begin after those of its sums: these are still " << getSums().getType()
                         << ", or leave " << since;
  return success();
}

} // namespace kiln::tile_gpu
