// Products of warpgroups read both operands from shared memory: where they lie there, and when they get there.
#include "compiler/passes/shared/SharedBuffers.h"
#include "compiler/passes/shared/SharedExpansion.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// Operand `number` of a product: a tile, its dimensions exchanged or not.
struct Use {
  tile::DotOp dot;
  unsigned number;
  bool turned;

  /// The tile's dimension along K.
  unsigned k() const { return (number == 0 ? 1 : 0) ^ unsigned(turned); }
  /// How many elements along the other one an instruction reads.
  int64_t extent() {
    const layout::Mma mma = std::get<layout::Mma>(layoutAttrOf(dot.getType()).encoding().kind);
    return number == 0 ? WarpgroupDotOp::instructionOf(dot.getLhs().getType().getElementType())->m : mma.instrN;
  }
};

/// Products of one block that read one tile from one buffer.
struct Shared {
  Value tile;
  llvm::SmallVector<Use> uses;
};

int64_t bytesOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getElementTypeBitWidth() / 8;
}

/// The buffer whose innermost dimension is `inner`; the widest swizzle that all uses can read.
BufferType bufferFor(Shared &shared, int64_t inner) {
  const auto type = cast<RankedTensorType>(shared.tile.getType());
  const int64_t bytes = bytesOf(shared.tile);
  layout::Tma tma;
  tma.swizzle = std::min<int64_t>(128, type.getDimSize(inner) * bytes);
  for (Use &use : shared.uses)
    if (use.k() != inner)
      tma.swizzle = std::min(tma.swizzle, use.extent() * bytes);
  tma.order = {inner, 1 - inner};
  return BufferType::get(type.getContext(), 1, type.getShape(), type.getElementType(),
                         SharedLayoutAttr::get(type.getContext(), tma));
}

/// What storing the tile costs; nothing if it cannot be stored so.
std::optional<double> costOf(Value tile, BufferType buffer, const Target &target) {
  const Result<layout::SharedTile> lowered = buffer.lowered();
  const Result<layout::TileLayout> distributed = layoutOf(tile.getType());
  if (!lowered || !distributed)
    return std::nullopt;
  const Result<layout::LocalAccessPlan> plan =
      layout::planLocalAccess(distributed->core(), lowered->core(), planBits(tile.getType()), target, true);
  return plan ? std::optional(plan->cost) : std::nullopt;
}

/// A load, or what is computed element by element from one load alone: storing it at once would wait for the memory.
bool isLoaded(Value tile) {
  for (Operation *op = tile.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (isa<tile::LoadOp, tile::LoadViewOp>(op))
      return true;
    if (op->getNumOperands() != 1 || !isMemoryEffectFree(op))
      return false;
  }
  return false;
}

bool isZero(Value tile) {
  if (auto splat = tile.getDefiningOp<tile::SplatOp>())
    tile = splat.getSource();
  return matchPattern(tile, m_AnyZeroFloat());
}

/// When operands go to shared memory; the later, the fewer bytes are alive at once.
enum class Storing {
  Early, ///< when they are computed: their registers are free at once
  Late,  ///< before the first product that reads them
  Each,  ///< before each product, on its own
};

class Expander {
public:
  Expander(func::FuncOp f, const Target &target, Storing storing) : target(target), storing(storing) {
    f.walk([&](tile::DotOp dot) {
      if (readsShared(dot))
        dots.push_back(dot);
    });
  }

  LogicalResult run() {
    for (tile::DotOp dot : dots)
      for (unsigned number = 0; number < 2; ++number) {
        const auto [tile, turned] = viewedTile(dot->getOperand(number));
        const Use use{dot, number, turned};
        // Only 16-bit elements may lie with K apart.
        const unsigned inner = bytesOf(tile) == 2 ? 2 : use.k();
        const void *where = storing == Storing::Each ? static_cast<const void *>(dot) : dot->getBlock();
        Shared &shared = groups[{tile, {where, inner}}];
        shared.tile = tile;
        shared.uses.push_back(use);
      }
    for (auto &[key, shared] : groups)
      if (failed(store(shared, key.second.second)))
        return failure();
    for (tile::DotOp dot : dots) {
      OpBuilder b(dot);
      Value product = WarpgroupDotOp::create(b, dot.getLoc(), dot.getType(), operands[{dot, 0}], operands[{dot, 1}],
                                             dot.getAccumulator(), isZero(dot.getAccumulator()));
      dot.replaceAllUsesWith(product);
      dot.erase();
    }
    return success();
  }

private:
  LogicalResult store(Shared &shared, unsigned inner) {
    BufferType type;
    double best = 0;
    for (const unsigned i : {1u, 0u})
      if (inner == 2 || inner == i) {
        const BufferType candidate = bufferFor(shared, i);
        const std::optional<double> cost = costOf(shared.tile, candidate, target);
        if (cost && (!type || *cost < best))
          type = candidate, best = *cost;
      }
    Operation *first = shared.uses.front().dot;
    if (!type)
      return first->emitError() << "no buffer of shared memory for the operand " << shared.tile.getType()
                                << " of a product of warpgroups";
    OpBuilder b(first);
    Operation *def = shared.tile.getDefiningOp();
    if (storing == Storing::Early && def && def->getBlock() == first->getBlock() && !isLoaded(shared.tile))
      b.setInsertionPointAfter(def);
    const Value buffer = LocalAllocOp::create(b, first->getLoc(), type, IntegerAttr());
    LocalStoreOp::create(b, first->getLoc(), shared.tile, buffer);
    Value turned;
    for (Use &use : shared.uses) {
      if (use.turned && !turned) {
        const auto tma = std::get<layout::Tma>(cast<SharedLayoutAttr>(type.getLayout()).encoding().kind);
        const layout::Tma other{tma.swizzle, {1 - tma.order[0], tma.order[0]}};
        turned = LocalTransposeOp::create(
            b, first->getLoc(),
            BufferType::get(type.getContext(), 1, {type.getShape()[1], type.getShape()[0]}, type.getElementType(),
                            SharedLayoutAttr::get(type.getContext(), other)),
            buffer, b.getDenseI64ArrayAttr({1, 0}));
      }
      operands[{use.dot, use.number}] = use.turned ? turned : buffer;
    }
    return success();
  }

  const Target &target;
  const Storing storing;
  llvm::SmallVector<tile::DotOp> dots; ///< in program order
  llvm::MapVector<std::pair<Value, std::pair<const void *, unsigned>>, Shared> groups;
  llvm::DenseMap<std::pair<Operation *, unsigned>, Value> operands;
};

} // namespace

LogicalResult expandWarpgroupDots(func::FuncOp f) {
  bool any = false;
  f.walk([&](tile::DotOp dot) { any |= readsShared(dot); });
  if (!any)
    return success();
  const Result<const Target *> target = targetOf(f);
  if (!target)
    return report(f, target.status());
  // The rest is for conversions.
  const uint64_t most = (*target)->sharedOptIn / 4 * 3;
  for (const Storing storing : {Storing::Early, Storing::Late}) {
    func::FuncOp attempt = f.clone();
    const bool good = succeeded(Expander(attempt, **target, storing).run()) && mostSharedBytes(attempt) <= most;
    if (good)
      f.getBody().takeBody(attempt.getBody());
    attempt->erase();
    if (good)
      return success();
  }
  return Expander(f, **target, Storing::Each).run();
}

} // namespace kiln
