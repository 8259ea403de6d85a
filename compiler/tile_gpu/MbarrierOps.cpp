// Verifiers, accesses and orderings of MbarrierOps.td.
#include "compiler/tile_gpu/SharedAccesses.h"
#include "compiler/tile_gpu/TensorMaps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile_gpu {

LogicalResult MbarriersType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t count) {
  constexpr int64_t most = 1024;
  if (count < 1 || count > most)
    return emitError() << count << " mbarriers: 1 to " << most;
  return success();
}

bool isElected(Operation *op) {
  return op->getParentOfType<ElectedOp>() != nullptr;
}

namespace {

LogicalResult verifyElected(Operation *op) {
  if (isElected(op))
    return success();
  return op->emitOpError("is what one thread does: put it into a tile_gpu.elected");
}

/// It computes scalars and does nothing else: of tiles each thread has a part.
bool onlyComputes(Operation *op) {
  const auto isTile = [](Type type) { return isa<ShapedType>(type); };
  return !op->getNumRegions() && !op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op) &&
         llvm::none_of(op->getOperandTypes(), isTile) && llvm::none_of(op->getResultTypes(), isTile);
}

tile::MemoryOrdering handoffOf(Value barriers, Value number, Value phase) {
  tile::MemoryOrdering out;
  out.handoff = {barriers, number, phase};
  return out;
}

} // namespace

LogicalResult ElectedOp::canonicalize(ElectedOp op, PatternRewriter &rewriter) {
  // A conditional that is for the one thread alone.
  auto branch = dyn_cast<scf::IfOp>(op->getParentOp());
  const auto isOther = [&](Operation &other) { return &other != op && !onlyComputes(&other); };
  if (branch && !branch.elseBlock() && !branch.getNumResults() && !isElected(branch) &&
      llvm::none_of(branch.thenBlock()->without_terminator(), isOther)) {
    rewriter.setInsertionPoint(branch);
    auto outer = ElectedOp::create(rewriter, op.getLoc());
    rewriter.inlineBlockBefore(&op.getBody().front(), op);
    rewriter.eraseOp(op);
    rewriter.createBlock(&outer.getBody());
    rewriter.moveOpBefore(branch, &outer.getBody().front(), outer.getBody().front().end());
    return success();
  }
  // What comes next is the one thread's, too.
  Operation *next = op->getNextNode();
  while (next && onlyComputes(next))
    next = next->getNextNode();
  auto other = dyn_cast_or_null<ElectedOp>(next);
  if (!other)
    return failure();
  rewriter.inlineBlockBefore(&op.getBody().front(), &other.getBody().front(), other.getBody().front().begin());
  rewriter.eraseOp(op);
  return success();
}

LogicalResult ElectedOp::verify() {
  if (getBody().getNumArguments())
    return emitOpError("has a block with arguments: it takes values from outside as they are");
  const WalkResult walked = getBody().walk([&](Operation *op) {
    if (isa<TensorCopyOp, MbarrierInitOp, MbarrierInvalidateOp, MbarrierArriveOp, MbarrierWaitOp, CountOp>(op) ||
        onlyComputes(op) || (isa<scf::IfOp>(op) && !op->getNumResults()) || isa<scf::YieldOp>(op))
      return WalkResult::advance();
    op->emitOpError("in a tile_gpu.elected: one thread arrives, waits, counts and copies by tensor maps there");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

tile::MemoryAccesses MbarrierInitOp::accesses() {
  return {sharedWrite(getBarriers())};
}

LogicalResult MbarrierInitOp::verify() {
  constexpr uint32_t most = 1024; // threads of a block
  if (getArrivals() < 1 || getArrivals() > most)
    return emitOpError() << "of " << static_cast<int32_t>(getArrivals()) << " arrivals: 1 to " << most;
  return verifyElected(*this);
}

tile::MemoryAccesses MbarrierInvalidateOp::accesses() {
  return {sharedWrite(getBarriers())};
}

LogicalResult MbarrierInvalidateOp::verify() {
  return verifyElected(*this);
}

tile::MemoryAccesses MbarrierArriveOp::accesses() {
  return {sharedRead(getBarriers())};
}

tile::MemoryOrdering MbarrierArriveOp::ordering() {
  tile::MemoryOrdering out = handoffOf(getBarriers(), getNumber(), getPhase());
  out.arrives = true;
  return out;
}

tile::MemoryAccesses MbarrierWaitOp::accesses() {
  return {sharedRead(getBarriers())};
}

tile::MemoryOrdering MbarrierWaitOp::ordering() {
  tile::MemoryOrdering out = handoffOf(getBarriers(), getNumber(), getPhase());
  out.waits = true;
  out.ready = getReady();
  return out;
}

LogicalResult MbarrierWaitOp::verify() {
  for (Value buffer : getReady())
    if (const auto type = cast<BufferType>(buffer.getType()); type.getCount() != 1)
      return emitOpError() << "names all of " << type << ": take a tile_gpu.local_subview";
  return success();
}

//===----------------------------------------------------------------------===//
// tensor_copy
//===----------------------------------------------------------------------===//

TensorMapRecipeAttr TensorCopyOp::recipe() {
  const auto argument = dyn_cast<BlockArgument>(getMap());
  if (!argument || !argument.getOwner()->isEntryBlock())
    return {};
  auto kernel = dyn_cast_if_present<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return kernel ? recipeOf(kernel, argument.getArgNumber()) : TensorMapRecipeAttr();
}

/// The pointer that the map is made of; null if the map has no recipe.
static BlockArgument tensorOf(TensorCopyOp op) {
  const TensorMapRecipeAttr recipe = op.recipe();
  if (!recipe)
    return {};
  Block *entry = cast<BlockArgument>(op.getMap()).getOwner();
  return recipe.getAddress() < entry->getNumArguments() ? entry->getArgument(recipe.getAddress()) : BlockArgument();
}

tile::MemoryAccesses TensorCopyOp::accesses() {
  tile::MemoryAccess from;
  from.resource = tile::GlobalMemory::get();
  from.memory = tensorOf(*this);
  from.reads = true;
  tile::MemoryAccesses out{from, sharedWrite(getBuffer())};
  for (tile::MemoryAccess &access : out) {
    access.agent = tile::Agent::BulkCopy;
    access.inFlight = true;
  }
  if (getBarriers())
    out.push_back(sharedRead(getBarriers()));
  return out;
}

void TensorCopyOp::getEffects(llvm::SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (const BlockArgument tensor = tensorOf(*this))
    effects.emplace_back(MemoryEffects::Read::get(), tensor, tile::GlobalMemory::get());
  else
    effects.emplace_back(MemoryEffects::Read::get(), tile::GlobalMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), &getBufferMutable(), SharedMemory::get());
  for (OpOperand &barriers : getBarriersMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &barriers, SharedMemory::get());
}

LogicalResult TensorCopyOp::verify() {
  const TensorMapRecipeAttr recipe = this->recipe();
  if (!recipe)
    return emitOpError("copies by a map that is no argument of its kernel with a recipe");
  if (bool(getBarriers()) != bool(getNumber()))
    return emitOpError("counts to an mbarrier: both which and of which");
  if (getBarriers() && failed(verifyElected(*this)))
    return failure();
  if (!getBarriers() && isElected(*this))
    return emitOpError("in a tile_gpu.elected: say which mbarrier it `counts` to");
  const BufferType buffer = getBuffer().getType();
  if (buffer.getCount() != 1)
    return emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  const Result<kiln::TensorMapRecipe> form = recipe.form();
  if (!form)
    return report(*this, form.status());
  if (getCoords().size() != form->rank)
    return emitOpError() << "gives " << getCoords().size() << " coordinates in a tensor of rank " << form->rank;
  const auto *tma = std::get_if<layout::Tma>(&cast<SharedLayoutAttr>(buffer.getLayout()).encoding().kind);
  if (!tma)
    return emitOpError() << "copies into " << buffer << ": it needs a tma layout";
  const int64_t bits = tile::storageBits(buffer.getElementType());
  if (tensorMapTypeBytes(form->type) * 8 != bits)
    return emitOpError() << "copies elements of " << tensorMapTypeName(form->type).data() << " into " << buffer;
  const int64_t span = tensorMapSwizzleBytes(form->swizzle);
  if (span != tma->swizzle || form->swizzle > TensorMapSwizzle::B128 || form->interleave != TensorMapInterleave::None)
    return emitOpError() << "copies by a map of swizzle " << recipe.getSwizzle() << " into " << buffer;
  if (llvm::any_of(llvm::ArrayRef(form->elementStrides).take_front(form->rank), [](auto step) { return step != 1; }))
    return emitOpError("copies by a map with elementStrides: a buffer's elements are neighbours in the tensor");
  const llvm::ArrayRef<int32_t> dims = getDims();
  const llvm::ArrayRef<int64_t> shape = buffer.getShape();
  if (shape.size() > 2)
    return emitOpError() << "copies into " << buffer << ": it fills buffers of one or two dimensions";
  if (dims.size() != shape.size())
    return emitOpError() << "says of " << dims.size() << " dimensions of a buffer of " << shape.size()
                         << " which of the tensor's they are";
  llvm::SmallVector<bool> named(form->rank, false);
  for (const auto [d, of] : llvm::enumerate(dims)) {
    if (of < 0 || static_cast<unsigned>(of) >= form->rank || named[static_cast<size_t>(of)])
      return emitOpError() << "dims: " << of << " is no dimension of a tensor of rank " << form->rank
                           << ", or is named twice";
    named[static_cast<size_t>(of)] = true;
    const auto box = static_cast<int64_t>(form->box[static_cast<size_t>(of)]);
    const bool inner = static_cast<int64_t>(d) == (tma->order.empty() ? int64_t(shape.size()) - 1 : tma->order[0]);
    if (inner != (of == 0))
      return emitOpError() << "copies rows of the tensor into columns of " << buffer << ": the contiguous dimension of "
                           << "the tensor is the buffer's innermost";
    // What a box writes is in one piece: a group of the swizzle, in whole repetitions of its pattern, or whole rows.
    constexpr int64_t rows = 8;
    if (shape[d] % box || (inner ? box != (span ? span * 8 / bits : shape[d]) : box != shape[d] && box % rows))
      return emitOpError() << "fills " << buffer << " by boxes of " << box << " along dimension " << d
                           << (inner ? ": a box is as wide as the swizzle, without one as the buffer"
                                     : ": boxes of 8 rows, or of all");
  }
  for (unsigned d = 0; d < form->rank; ++d)
    if (!named[d] && form->box[d] != 1)
      return emitOpError() << "copies boxes of " << form->box[d] << " along dimension " << d
                           << " of the tensor, which the buffer does not have";
  return success();
}

} // namespace kiln::tile_gpu
