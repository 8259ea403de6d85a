#include "compiler/passes/GlobalAccess.h"

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln {

using layout::InDim;

/// The memory that an asynchronous copy reads; null for other operations.
static Value copiedFrom(Operation *op) {
  if (auto copy = dyn_cast<tile_gpu::AsyncCopyOp>(op))
    return copy.getPointer();
  auto copy = dyn_cast<tile_gpu::AsyncCopyViewOp>(op);
  return copy ? copy.getView() : Value();
}

std::optional<GlobalAccess> GlobalAccess::of(Operation *op, const analysis::PointerRoots &roots) {
  GlobalAccess out;
  auto atomic = [&](auto access) {
    out.address = {access.getPointer()};
    out.writes = out.atomic = true;
    out.acquires = access.getOrder() == tile::Order::Acquire || access.getOrder() == tile::Order::AcqRel;
    out.releases = access.getOrder() == tile::Order::Release || access.getOrder() == tile::Order::AcqRel;
  };
  auto view = [&](auto access) {
    out.address = {access.getView()};
    llvm::append_range(out.address, access.getCoords());
  };
  const bool accesses = llvm::TypeSwitch<Operation *, bool>(op)
                            .Case([&](tile::LoadOp load) {
                              out.address = {load.getPointer()};
                              return true;
                            })
                            .Case([&](tile::StoreOp store) {
                              out.address = {store.getPointer()};
                              return out.writes = true;
                            })
                            .Case<tile::AtomicRmwOp, tile::AtomicCasOp>([&](auto access) {
                              atomic(access);
                              return true;
                            })
                            .Case([&](tile::LoadViewOp load) {
                              view(load);
                              return true;
                            })
                            .Case([&](tile::StoreViewOp store) {
                              view(store);
                              return out.writes = true;
                            })
                            .Default(false);
  if (const Value from = copiedFrom(op)) {
    out.copies = true;
    out.roots = roots.of(from);
  } else if (isa<tile_gpu::AsyncWaitOp>(op)) {
    op->getParentOfType<func::FuncOp>().walk([&](Operation *copy) {
      if (const Value from = copiedFrom(copy)) {
        out.copies = true;
        out.roots.add(roots.of(from));
      }
    });
  }
  if (!accesses && !out.copies)
    return std::nullopt;
  out.oneWarp = tile::numWarps(op->getParentOfType<func::FuncOp>()) == 1;
  if (out.copies)
    return out;
  out.tile = analysis::accessedTile(op);
  const Type type = out.address.front().getType();
  if (auto view = dyn_cast<tile::ViewType>(type))
    out.element = view.getElementType();
  else
    out.element = cast<tile::PtrType>(tile::elementTypeOf(type)).getPointee();
  out.roots = roots.of(out.address.front());
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
  if (acquires || later.releases)
    return everybody;
  if (writes == later.writes && atomic == later.atomic)
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
