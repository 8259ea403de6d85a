#include "compiler/passes/barriers/GlobalAccess.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace kiln {

using layout::InDim;

GlobalAccess::GlobalAccess(const tile::MemoryAccess &access, const analysis::PointerRoots &known)
    : roots(known.of(access.memory)), writes(access.writes), atomic(access.atomic), copies(access.inFlight) {
  if (copies)
    return;
  address = {access.memory};
  llvm::append_range(address, access.coords);
  acquires = access.acquires;
  releases = access.releases;
  tile = access.tile;
  const Type type = access.memory.getType();
  if (auto view = dyn_cast<tile::ViewType>(type))
    element = view.getElementType();
  else
    element = cast<tile::PtrType>(tile::elementTypeOf(type)).getPointee();
}

llvm::SmallVector<GlobalAccess, 1> GlobalAccess::of(Operation *op, const analysis::PointerRoots &roots) {
  llvm::SmallVector<GlobalAccess, 1> out;
  // Named: an effect on global memory as a whole keeps an operation in its place, and no more.
  const auto isNamed = [](const tile::MemoryAccess &access) {
    return access.in<tile::GlobalMemory>() && access.memory;
  };
  for (const tile::MemoryAccess &access : tile::accessesOf(op))
    if (isNamed(access))
      out.push_back(GlobalAccess(access, roots));
  if (const auto ordering = tile::orderingOf(op); ordering && ordering->awaits) {
    GlobalAccess handed[2]; // what was read, what was written
    op->getParentOfType<func::FuncOp>().walk([&](Operation *copy) {
      for (const tile::MemoryAccess &access : tile::accessesOf(copy))
        if (isNamed(access) && access.inFlight && access.agent == *ordering->awaits &&
            !(ordering->readsOnly && access.writes)) {
          GlobalAccess &same = handed[access.writes];
          same.copies = true;
          same.writes = access.writes;
          same.atomic = access.atomic;
          same.roots.add(roots.of(access.memory));
        }
    });
    for (GlobalAccess &access : handed)
      if (access.copies)
        out.push_back(std::move(access));
  }
  for (GlobalAccess &access : out)
    access.oneWarp = tile_gpu::threadsOf(op->getParentOfType<func::FuncOp>()) == layout::warpSize;
  return out;
}

static bool insideLoop(Value v) {
  Operation *op = v.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(v))
    op = argument.getOwner()->getParentOp();
  return isa_and_nonnull<LoopLikeOpInterface>(op) || (op && op->getParentOfType<LoopLikeOpInterface>());
}

bool GlobalAccess::sameElements(const GlobalAccess &other, bool carried) const {
  return tile && other.tile && address == other.address && tile_gpu::sameLayout(tile, other.tile) &&
         !(carried && llvm::any_of(address, insideLoop));
}

Hazard GlobalAccess::betweenCopies() const {
  const Result<layout::TileLayout> layout = tile ? tile_gpu::layoutOf(tile) : Status(StatusCode::CompileError, "");
  if (!layout || layout->core().freeMask(InDim::Warp))
    return oneWarp ? Hazard::Lanes : Hazard::Warps;
  return layout->core().freeMask(InDim::Lane) ? Hazard::Lanes : Hazard::None;
}

static ArrayRef<int64_t> shapeOf(Type tile) {
  return tile ? cast<RankedTensorType>(tile).getShape() : ArrayRef<int64_t>();
}

Hazard GlobalAccess::against(const GlobalAccess &later, bool carried) const {
  const Hazard everybody = oneWarp ? Hazard::Lanes : Hazard::Warps;
  if (acquires || (later.releases && later.atomic))
    return everybody;
  if (releases && !atomic)
    return Hazard::None;
  if (writes == later.writes && atomic == later.atomic && !later.releases)
    return Hazard::None;
  if (!analysis::mayOverlap(roots, later.roots)) {
    const bool inPlace =
        !writes && !copies && !later.atomic && element == later.element && shapeOf(tile) == shapeOf(later.tile);
    return inPlace ? betweenCopies() : Hazard::None;
  }
  // Elements are written by their owners; every copy reads.
  const bool owners = writes && later.writes;
  return !sameElements(later, carried) ? everybody : owners ? Hazard::None : betweenCopies();
}

} // namespace kiln
