// A product in a loop may have an operand from outside: attention's queries.  In registers it is alive through the
// whole loop.  Where the loop's other tiles leave no room, it is kept in shared memory and each round reads it again,
// piece by piece, as the matrix unit takes it.  Only in loops that wait for a pipeline: without a barrier in the loop
// the reads would be hoisted out of it again.
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "compiler/analysis/RegisterUse.h"
#include "compiler/layout/StagingBuffer.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/ResidentOperands.inc"

using namespace tile_gpu;

namespace {

class Relief {
public:
  explicit Relief(const Target &target) : target(target) {}

  /// Stores operands of this loop's products in shared memory until what is alive in the loop leaves room in a thread's
  /// registers, the largest first.  An operand of several loops is stored once.
  void relieve(scf::ForOp loop);

private:
  /// A buffer that holds `stored`, made where that is, for readers that want it as this tile.
  Value bufferOf(Value stored, RankedTensorType tile);

  const Target &target;
  llvm::DenseMap<std::pair<Value, Type>, Value> buffers;
};

/// Conversions are left to shared memory.
Value unconverted(Value v) {
  while (auto convert = v.getDefiningOp<ConvertLayoutOp>())
    v = convert.getSource();
  return v;
}

Value Relief::bufferOf(Value stored, RankedTensorType tile) {
  auto [it, fresh] = buffers.try_emplace({stored, tile});
  if (!fresh)
    return it->second;
  const Result<layout::TileLayout> reader = layoutOf(tile), writer = layoutOf(stored.getType());
  if (!reader || !writer)
    return {};
  // Runs along the writer's own: 16 bytes where a thread holds them side by side.
  const auto *blocked = std::get_if<layout::Blocked>(&layoutAttrOf(stored.getType()).encoding().kind);
  const unsigned last = static_cast<unsigned>(tile.getRank()) - 1, bits = planBits(tile);
  const unsigned dim = blocked && !blocked->order.empty() ? static_cast<unsigned>(blocked->order.front()) : last;
  const auto run = static_cast<std::uint32_t>(128 / std::max(8u, bits));
  const llvm::ArrayRef<int64_t> shape = tile.getShape();
  const layout::TileLayout readers[] = {*reader};
  Result<layout::Swizzled> how =
      layout::stagingEncoding(std::span(shape.data(), shape.size()), dim, run, bits, readers, target);
  if (!how)
    return {};
  OpBuilder b(stored.getContext());
  b.setInsertionPointAfterValue(stored);
  auto type = BufferType::get(stored.getContext(), 1, shape, tile.getElementType(),
                              SharedLayoutAttr::get(stored.getContext(), *how));
  const Value buffer = LocalAllocOp::create(b, stored.getLoc(), type, IntegerAttr());
  LocalStoreOp::create(b, stored.getLoc(), stored, buffer);
  return it->second = buffer;
}

void Relief::relieve(scf::ForOp loop) {
  uint64_t alive = 0, largest = 0;
  for (Value v : loop.getRegionIterArgs())
    alive += threadWords(v.getType());
  struct Use {
    OpOperand *operand;
    Value stored;
    RankedTensorType tile;
  };
  llvm::SmallVector<Use> outside;
  llvm::SmallDenseSet<std::pair<Value, Type>> counted, moved;
  loop.getBody()->walk([&](tile::DotOp dot) {
    if (!llvm::is_contained(loop.getRegionIterArgs(), dot.getAccumulator()))
      largest = std::max(largest, threadWords(dot.getType()));
    if (readsShared(dot))
      return; // expand-shared's business
    for (OpOperand *operand : {&dot->getOpOperand(0), &dot->getOpOperand(1)}) {
      const Value stored = unconverted(operand->get());
      Operation *def = stored.getDefiningOp();
      if (!def || loop->isAncestor(def))
        continue;
      const auto tile = cast<RankedTensorType>(operand->get().getType());
      outside.push_back({operand, stored, tile});
      if (counted.insert({stored, tile}).second)
        alive += threadWords(tile);
    }
  });
  alive += largest;
  llvm::stable_sort(outside, [](const Use &a, const Use &b) { return threadWords(a.tile) > threadWords(b.tile); });
  for (const Use &use : outside) {
    const bool already = moved.contains({use.stored, use.tile});
    if (!already && alive + analysis::registersBesideTiles <= target.registersPerThread)
      continue;
    const Value buffer = bufferOf(use.stored, use.tile);
    if (!buffer)
      continue;
    if (moved.insert({use.stored, use.tile}).second)
      alive -= threadWords(use.tile);
    Operation *dot = use.operand->getOwner();
    OpBuilder b(dot);
    use.operand->set(LocalLoadOp::create(b, dot->getLoc(), use.tile, buffer));
  }
}

struct ResidentOperands : impl::ResidentOperandsBase<ResidentOperands> {
  void runOnOperation() override {
    const auto relieve = [](llvm::ArrayRef<scf::ForOp> loops, const Target &target) {
      Relief relief(target);
      for (scf::ForOp loop : loops)
        relief.relieve(loop);
    };
    if (failed(forEachLoops(getOperation(), waitsForSlots, relieve)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
