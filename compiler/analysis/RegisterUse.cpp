#include "compiler/analysis/RegisterUse.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::analysis {

using namespace tile_gpu;

namespace {

/// The tile whose registers this one names; null if it takes none.
Value registersOf(Value v) {
  for (;;) {
    if (isa<PendingType>(v.getType()))
      return v;
    if (!isTile(v.getType()))
      return {};
    Operation *def = v.getDefiningOp();
    if (!def)
      return v;
    if (isa<arith::ConstantOp, tile::SplatOp, tile::RangeOp>(def) || def->hasTrait<OpTrait::ConstantLike>())
      return {};
    if (isa<LocalLoadOp, ExchangeLoadOp>(def) && !def->use_empty() &&
        llvm::all_of(def->getUsers(), [](Operation *user) { return isa<PartOp>(user); }))
      return {}; // its parts are counted
    if (!isa<tile::BroadcastOp, tile::ExpandDimsOp, tile::TransposeOp>(def))
      return v;
    v = def->getOperand(0);
  }
}

/// The product that a read of shared memory, or a part of one, is for, if lowering reads it piece by piece there.
tile::DotOp readFor(Operation *read) {
  if (!read->hasOneUse())
    return {};
  OpOperand &use = *read->use_begin();
  if (auto part = dyn_cast<PartOp>(read); part && part.getSource().getDefiningOp())
    read = part.getSource().getDefiningOp();
  if (!isa<LocalLoadOp, ExchangeLoadOp>(read))
    return {};
  auto dot = dyn_cast<tile::DotOp>(use.getOwner());
  if (!dot || dot->getBlock() != read->getBlock() || use.getOperandNumber() > 1)
    return {};
  for (Operation *op = read->getNextNode(); op != dot; op = op->getNextNode())
    if (!op || holdsSharedReads(op))
      return {};
  return dot;
}

class Walker {
public:
  TileWords words;

  Walker(func::FuncOp function, uint64_t room) : room(room) { block(function.getBody().front(), {}); }

private:
  /// Tiles with registers, and the words of all of them.
  struct Alive {
    llvm::DenseSet<Value> tiles;
    uint64_t words = 0;
  };

  uint64_t wordsOf(Value v) {
    auto [it, fresh] = known.try_emplace(v.getType());
    if (fresh)
      it->second = threadWords(v.getType());
    return it->second;
  }
  void add(Alive &alive, Value v) {
    const Value tile = registersOf(v);
    if (tile && !(tile.getDefiningOp() && readFor(tile.getDefiningOp())) && alive.tiles.insert(tile).second)
      alive.words += wordsOf(tile);
  }
  void remove(Alive &alive, Value v) {
    if (alive.tiles.erase(v))
      alive.words -= wordsOf(v);
  }

  /// What an instruction takes at a time of the operands that are read piece by piece.
  uint64_t pieces(tile::DotOp dot) {
    uint64_t words = 0;
    for (Value operand : {Value(dot.getLhs()), Value(dot.getRhs())})
      if (operand.getDefiningOp() && readFor(operand.getDefiningOp())) {
        const auto depth = static_cast<uint64_t>(dot.getLhs().getType().getShape().back());
        const uint64_t once = 256 / std::max(8u, planBits(operand.getType()));
        words += wordsOf(operand) * std::min(once, depth) / depth;
      }
    return words;
  }

  /// What is alive before the block, given what is alive after it.
  Alive block(Block &block, Alive alive) {
    for (Operation &op : llvm::reverse(block)) {
      const uint64_t after = alive.words;
      for (Value v : op.getResults())
        remove(alive, v);
      if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op))
        regions(op, alive);
      for (Value v : op.getOperands())
        add(alive, v);
      auto dot = dyn_cast<tile::DotOp>(op);
      const uint64_t here = std::max(after, alive.words + (dot ? pieces(dot) : 0));
      words.most = std::max(words.most, here);
      words.beyond += here > room ? here - room : 0;
    }
    for (BlockArgument argument : block.getArguments())
      remove(alive, argument);
    return alive;
  }

  /// What the regions take from outside is alive all through a loop.
  void regions(Operation &op, Alive &alive) {
    const bool repeats = !isa<scf::IfOp>(op);
    const auto addOutside = [&](Alive &to) {
      op.walk([&](Operation *inner) {
        for (Value v : inner->getOperands())
          if (Value tile = registersOf(v); tile && !op.isAncestor(tile.getParentBlock()->getParentOp()))
            add(to, tile);
      });
    };
    Alive inner = alive;
    if (repeats)
      addOutside(inner);
    for (Region &region : op.getRegions())
      for (Block &b : region)
        block(b, inner);
    addOutside(alive);
  }

  const uint64_t room;
  llvm::DenseMap<Type, uint64_t> known;
};

} // namespace

bool holdsSharedReads(Operation *op) {
  if (isMemoryEffectFree(op) || isa<LocalAllocOp>(op))
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return !effects || !effects.onlyHasEffect<MemoryEffects::Read>();
}

TileWords tileWords(func::FuncOp function, uint64_t room) {
  return function.isExternal() ? TileWords() : Walker(function, room).words;
}

} // namespace kiln::analysis
