// Reads of shared memory are sunk to their first use.
//
// A tile is read whole before a product begins; the matrix unit takes it piece by piece.  Left as they are, all pieces
// are alive at once, and the assembler does not always bring them back together with their uses.  So each read, and
// what is only a renaming of what was read, goes to where it is needed first, but never past a write or a barrier. What
// nobody needs goes away: of a tile that is read whole a part may be used (LLVM keeps reads of matrices).
#include "compiler/lowering/SinkLoads.h"

#include "compiler/lowering/Lowering.h"
#include "compiler/tile_gpu/Purpose.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

bool readsShared(Operation *op) {
  if (isa<NVVM::LdMatrixOp>(op))
    return true;
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return load && !load.getVolatile_() &&
         cast<LLVM::LLVMPointerType>(load.getAddr().getType()).getAddressSpace() == sharedSpace;
}

/// Reads do not pass it.  Products and shuffles touch registers only, though they do not say so.
bool holdsReads(Operation *op) {
  const auto purpose = op->getAttrOfType<StringAttr>(tile_gpu::purposeAttr);
  if (isMemoryEffectFree(op) || readsShared(op) || isa<NVVM::ShflOp>(op) ||
      (purpose && purpose == tile_gpu::purpose::product))
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return !effects || !effects.onlyHasEffect<MemoryEffects::Read>();
}

void sink(Block &block) {
  // Positions are those before any move; an operation that moves takes the position of what it moves to.
  llvm::DenseMap<Operation *, unsigned> position;
  // And a place among those of the same position: halfway between its neighbours.  Asking the block for the order
  // would number all of it again after each move.
  llvm::DenseMap<Operation *, double> place;
  llvm::SmallVector<Operation *> stops;
  llvm::SmallPtrSet<Operation *, 32> movable;
  llvm::SmallVector<Operation *> order;
  for (Operation &op : block) {
    const unsigned at = static_cast<unsigned>(position.size());
    position[&op] = at;
    place[&op] = at;
    if (holdsReads(&op))
      stops.push_back(&op);
    const bool follows = llvm::any_of(
        op.getOperands(), [&](Value v) { return v.getDefiningOp() && movable.contains(v.getDefiningOp()); });
    const bool renames =
        isa<LLVM::ExtractValueOp, LLVM::BitcastOp, LLVM::ExtractElementOp, LLVM::InsertElementOp>(op) ||
        (op.getDialect() && op.getDialect()->getNamespace() == "arith");
    if (readsShared(&op) || (follows && renames && op.getNumRegions() == 0)) {
      movable.insert(&op);
      order.push_back(&op);
    }
  }
  for (Operation *op : llvm::reverse(order)) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *at = block.findAncestorOpInBlock(*user);
      if (at && (!first || place[at] < place[first] || (place[at] == place[first] && at->isBeforeInBlock(first))))
        first = at;
    }
    if (op->use_empty()) {
      op->erase();
      continue;
    }
    if (!first)
      continue;
    if (readsShared(op)) {
      const auto *stop =
          llvm::upper_bound(stops, position[op], [&](unsigned at, Operation *stop) { return at < position[stop]; });
      if (stop != stops.end() && position[*stop] < position[first])
        first = *stop;
    }
    if (Operation *before = first->getPrevNode(); before != op) {
      op->moveBefore(first);
      place[op] = (place[before] + place[first]) / 2;
    }
    position[op] = position[first];
  }
}

} // namespace

void sinkSharedLoads(Operation *function) {
  function->walk([](Block *block) { sink(*block); });
}

} // namespace kiln::lowering
