#include "compiler/analysis/NarrowAccess.h"

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln::analysis {
namespace {

constexpr unsigned mostBytes = 16;
/// Of more arguments all that an access depends on are named.
constexpr unsigned mostQuestions = 8;

unsigned elementBytes(Operation *op) {
  Type element = tile::elementTypeOf(accessedTile(op));
  if (auto pointer = dyn_cast<tile::PtrType>(element))
    element = pointer.getPointee();
  return tile::storageBits(element) / 8;
}

/// Neighbours that facts let a thread move at once, at most `limit`.
unsigned widthOf(const AxisAnalysis &axes, Operation *op, unsigned limit) {
  const auto width = [&](const std::optional<AccessFacts> &facts) {
    unsigned out = 1;
    for (unsigned d = 0; facts && d < facts->address.dims(); ++d)
      out = std::max(out, std::min({limit, facts->address.contiguity(d), facts->address.divisibility(d),
                                    facts->mask.constancy(d)}));
    return out;
  };
  const unsigned always = width(axes.access(op));
  return always == limit ? always : width(axes.usualAccess(op));
}

/// Elements that a thread could move at once if everything were known.
unsigned limitOf(Operation *op, unsigned threads) {
  if (!isa<tile::LoadOp, tile::StoreOp, tile::LoadViewOp, tile::StoreViewOp>(op) || !accessedTile(op))
    return 1;
  if (auto cache = op->getAttrOfType<tile::CacheAttr>("cache"); cache && cache.getValue() == tile::Cache::Volatile)
    return 1;
  const int64_t each = cast<RankedTensorType>(accessedTile(op)).getNumElements() / threads;
  return static_cast<unsigned>(
      std::min<int64_t>(llvm::bit_floor(static_cast<std::uint64_t>(each)), mostBytes / elementBytes(op)));
}

/// The kernel's integers and pointers that the access depends on and that are not known to be multiples of 16.
llvm::SmallVector<BlockArgument> unknownSources(Operation *op, func::FuncOp kernel, const AxisAnalysis &axes) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  options.inclusive = true;
  llvm::SmallSetVector<Value, 8> arguments;
  const auto take = [&](Value v) {
    if (auto argument = dyn_cast<BlockArgument>(v); argument && argument.getOwner()->getParentOp() == kernel)
      arguments.insert(argument);
  };
  llvm::SmallVector<Value> roots(op->getOperands());
  if (isa<tile::StoreOp>(op)) // not what is stored
    roots.erase(llvm::find(roots, cast<tile::StoreOp>(op).getValue()));
  if (auto store = dyn_cast<tile::StoreViewOp>(op))
    roots.erase(llvm::find(roots, store.getValue()));
  for (Value root : roots) {
    take(root);
    if (Operation *def = root.getDefiningOp())
      (void)getBackwardSlice(def, &slice, options);
  }
  for (Operation *part : slice)
    part->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), take); });
  llvm::SmallVector<BlockArgument> out;
  for (BlockArgument argument : kernel.getArguments()) {
    auto pointer = dyn_cast<tile::PtrType>(argument.getType());
    const unsigned bytes = pointer ? tile::storageBits(pointer.getPointee()) / 8 : 1;
    if (arguments.contains(argument) && (pointer || argument.getType().isInteger()) &&
        axes.divisibility(argument) < mostBytes / bytes)
      out.push_back(argument);
  }
  return out;
}

} // namespace

llvm::SmallVector<NarrowAccess> narrowAccesses(func::FuncOp kernel, const AxisAnalysis &axes) {
  llvm::SmallVector<NarrowAccess> narrow;
  llvm::SetVector<Value> candidates;
  const unsigned threads = tile::numWarps(kernel) * layout::warpSize;
  kernel.walk([&](Operation *op) {
    const unsigned limit = limitOf(op, threads), now = limit > 1 ? widthOf(axes, op, limit) : limit;
    if (now >= limit)
      return;
    narrow.push_back({op, now, limit, unknownSources(op, kernel, axes)});
    candidates.insert_range(narrow.back().unknown);
  });
  if (candidates.empty())
    return {};

  const AxisAnalysis known(kernel, candidates.getArrayRef());
  llvm::erase_if(narrow, [&](NarrowAccess &access) {
    access.possible = widthOf(known, access.op, access.possible);
    return access.possible <= access.bytes;
  });
  // An argument that no access misses where all others are known is not to blame.
  if (!narrow.empty() && candidates.size() > 1 && candidates.size() <= mostQuestions)
    for (Value candidate : candidates) {
      llvm::SmallVector<Value> others(candidates.getArrayRef());
      others.erase(llvm::find(others, candidate));
      const AxisAnalysis without(kernel, others);
      for (NarrowAccess &access : narrow)
        if (widthOf(without, access.op, access.possible) == access.possible)
          llvm::erase(access.unknown, candidate);
    }
  for (NarrowAccess &access : narrow) {
    access.bytes *= elementBytes(access.op);
    access.possible *= elementBytes(access.op);
  }
  return narrow;
}

void remarkNarrowAccesses(func::FuncOp kernel, const AxisAnalysis &axes) {
  llvm::MapVector<ArrayRef<BlockArgument>, llvm::SmallVector<const NarrowAccess *>> groups;
  const llvm::SmallVector<NarrowAccess> all = narrowAccesses(kernel, axes);
  // Where only pointers are in the way, whoever launches the kernel can align them, and its author can do nothing.
  for (const NarrowAccess &access : all)
    if (llvm::any_of(access.unknown, [](BlockArgument a) { return a.getType().isInteger(); }))
      groups[access.unknown].push_back(&access);
  for (const auto &[unknown, accesses] : groups) {
    const NarrowAccess &first = *accesses.front();
    InFlightDiagnostic remark = first.op->emitRemark();
    remark << "this access moves " << first.bytes << " bytes at a time, where it could move " << first.possible;
    if (accesses.size() > 1)
      remark << " (and " << accesses.size() - 1 << " more of this kernel)";
    remark << ": too little is known of ";
    for (auto [i, argument] : llvm::enumerate(unknown))
      remark << (i == 0                    ? ""
                 : i + 1 == unknown.size() ? " and "
                                           : ", ")
             << tile::argumentName(kernel, argument.getArgNumber());
    remark << "; say that it is a stride, specialise by its divisibility, or assume it";
  }
}

} // namespace kiln::analysis
