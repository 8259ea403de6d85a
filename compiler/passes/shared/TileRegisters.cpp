#include "compiler/passes/shared/TileRegisters.h"

#include "compiler/layout/MemoryAccess.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

#include <map>

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// Words that a thread needs for a tile of floats; of elements that it holds twice, one.
unsigned wordsOf(Type type) {
  if (isa<PendingType>(type))
    type = tileOf(type);
  if (!isTile(type) || !isa<FloatType>(tile::elementTypeOf(type)))
    return 0;
  const Result<layout::TileLayout> layout = layoutOf(type);
  if (!layout)
    return 0;
  const unsigned copies = 1u << std::popcount(layout::Owners(layout->core()).registers);
  return static_cast<unsigned>(threadWords(type) / copies);
}

/// The result is a constant, or its operand seen in another way: it takes no registers of its own.
bool isSeen(Operation *op) {
  return isa<arith::ConstantOp, ub::PoisonOp, tile::SplatOp, tile::RangeOp, tile::ExpandDimsOp, tile::BroadcastOp,
             tile::TransposeOp, tile::ReshapeOp, tile::JoinOp, tile::SplitOp, arith::ExtFOp>(op);
}

class Pressure {
public:
  explicit Pressure(func::FuncOp function) {
    number(function);
    function.walk([&](Operation *op) {
      for (Value v : op->getResults())
        add(v, op);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value v : block.getArguments())
            add(v, op);
    });
  }

  unsigned most() {
    std::map<unsigned, int> change;
    for (const Life &life : lives)
      if (life.from < life.to && !madeWhereUsed(life)) {
        change[life.from] += static_cast<int>(life.words);
        change[life.to] -= static_cast<int>(life.words);
      }
    int now = 0, most = 0;
    for (const auto &[at, by] : change)
      most = std::max(most, now += by);
    return static_cast<unsigned>(most);
  }

private:
  struct Life {
    Value value;
    unsigned words = 0, from = 0, to = 0; ///< alive in from .. to - 1, in operation numbers
  };

  void number(Operation *op) {
    const unsigned first = next++;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          number(&inner);
    spans[op] = {first, next++};
  }

  void add(Value v, Operation *op) {
    const unsigned words = wordsOf(v.getType());
    if (!words || (v.getDefiningOp() && isSeen(op)))
      return;
    const bool argument = !v.getDefiningOp();
    Life life{v, words, argument ? spans.at(op).first : spans.at(op).second, 0};
    life.to = std::max(life.from, lastUse(v, argument ? op : op->getParentOp()));
    index[v] = lives.size();
    lives.push_back(life);
  }

  /// `around`: the operation whose region the value is made in.  Inside a loop that it enters from outside a value is
  /// alive to the loop's end.
  unsigned lastUse(Value v, Operation *around) {
    unsigned last = 0;
    for (Operation *user : v.getUsers()) {
      Operation *at = user;
      for (Operation *p = user->getParentOp(); p && p != around; p = p->getParentOp())
        if (isa<scf::ForOp, scf::WhileOp>(p))
          at = p;
      last = std::max(last, at == user ? spans.at(at).first : spans.at(at).second);
      if (isSeen(user))
        for (Value result : user->getResults())
          last = std::max(last, lastUse(result, around));
    }
    return last;
  }

  /// All that an elementwise operation computes from is alive for as long as its result.
  bool madeWhereUsed(const Life &life) const {
    Operation *op = life.value.getDefiningOp();
    return op && op->hasTrait<OpTrait::Elementwise>() &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isAlive(operand, life.to, 0); });
  }

  /// The value is, or all that it can be computed from.
  bool isAlive(Value v, unsigned to, unsigned depth) const {
    constexpr unsigned mostDepth = 8;
    if (!wordsOf(v.getType()))
      return true;
    if (const auto it = index.find(v); it != index.end() && lives[it->second].to >= to)
      return true;
    Operation *op = v.getDefiningOp();
    return op && depth < mostDepth && (isSeen(op) || op->hasTrait<OpTrait::Elementwise>()) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isAlive(operand, to, depth + 1); });
  }

  unsigned next = 0;
  llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> spans;
  llvm::SmallVector<Life> lives;
  llvm::DenseMap<Value, size_t> index;
};

} // namespace

unsigned tileRegisters(func::FuncOp function) {
  return Pressure(function).most();
}

} // namespace kiln
