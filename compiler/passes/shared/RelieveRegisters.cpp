// Where tiles take more registers than a thread has, those that go through shared memory anyway stay there longer: they
// are stored as soon as they can be computed and read where they are needed, by each product on its own.  What follows
// from scalars alone, as positions do, and serves arms of conditionals only is computed in each arm.
#include "compiler/passes/Pass.h"
#include "compiler/passes/shared/SharedBuffers.h"

#include "compiler/analysis/RegisterUse.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/RelieveRegisters.inc"

using namespace tile_gpu;

namespace {

/// Of a thread's registers so many are left for tiles.
uint64_t roomForTiles(func::FuncOp f, const Target &target) {
  uint64_t registers = std::min<uint64_t>(target.registersPerThread, target.registersPerSm / threadsOf(f));
  if (auto given = f->getAttrOfType<IntegerAttr>(tile::maxRegistersAttr))
    registers = std::min(registers, static_cast<uint64_t>(given.getInt()));
  return registers > analysis::registersBesideTiles ? registers - analysis::registersBesideTiles : 0;
}

/// A conversion in one pass: the scratch, its store and its load.  No one else touches the scratch.
struct Exchange {
  LocalAllocOp scratch;
  ExchangeStoreOp store;
  ExchangeLoadOp load;
};

llvm::SmallVector<Exchange> exchangesOf(func::FuncOp f) {
  llvm::SmallVector<Exchange> out;
  f.walk([&](LocalAllocOp scratch) {
    if (!isa<ScratchType>(scratch.getType()) || scratch.getOffset())
      return;
    Exchange e{scratch, {}, {}};
    for (Operation *user : scratch->getUsers()) {
      if (user->getBlock() != scratch->getBlock())
        return;
      if (auto store = dyn_cast<ExchangeStoreOp>(user); store && !e.store)
        e.store = store;
      else if (auto load = dyn_cast<ExchangeLoadOp>(user); load && !e.load)
        e.load = load;
      else
        return;
    }
    if (e.store && e.load && e.store->isBeforeInBlock(e.load) && e.load.getPrevious().getDefiningOp<ub::PoisonOp>())
      out.push_back(e);
  });
  return out;
}

/// Tiles of ranges and scalars.
bool followsFromScalars(Value tile) {
  Operation *def = tile.getDefiningOp();
  if (!isa<RankedTensorType>(tile.getType()) || isa_and_present<tile::RangeOp, tile::SplatOp>(def) ||
      (def && def->hasTrait<OpTrait::ConstantLike>()))
    return true;
  const bool isCheap = def && (isa<tile::ExpandDimsOp, tile::BroadcastOp>(def) ||
                               def->getDialect()->getNamespace() == arith::ArithDialect::getDialectNamespace());
  return isCheap && llvm::all_of(def->getOperands(), followsFromScalars);
}

/// Else it would be kept from the first conditional that may look at it to the last.
void computeInArms(func::FuncOp f) {
  llvm::SmallVector<Operation *> all;
  f.walk([&](Operation *op) { all.push_back(op); });
  for (Operation *op : llvm::reverse(all)) { // users first
    if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
        op->hasTrait<OpTrait::ConstantLike>() || op->use_empty() || !followsFromScalars(op->getResult(0)))
      continue;
    llvm::MapVector<Region *, llvm::SmallVector<OpOperand *>> arms;
    const bool onlyArms = llvm::all_of(op->getUses(), [&](OpOperand &use) {
      auto branch = dyn_cast_or_null<scf::IfOp>(op->getBlock()->findAncestorOpInBlock(*use.getOwner()));
      if (!branch || branch == use.getOwner())
        return false;
      Region *arm = use.getOwner()->getParentRegion();
      while (arm->getParentOp() != branch)
        arm = arm->getParentRegion();
      arms[arm].push_back(&use);
      return true;
    });
    if (!onlyArms)
      continue;
    for (auto &[arm, uses] : arms) {
      Operation *copy = OpBuilder::atBlockBegin(&arm->front()).clone(*op);
      for (OpOperand *use : uses)
        use->set(copy->getResult(0));
    }
    op->erase();
  }
}

class Mover {
public:
  explicit Mover(func::FuncOp f) : exchanges(exchangesOf(f)) {
    f.walk([&](LocalLoadOp load) { // parts of one are where pipeline-loops wants them
      if (llvm::none_of(load->getUsers(), [](Operation *user) { return isa<PartOp>(user); }))
        loads.push_back(load);
    });
  }
  size_t count() const { return exchanges.size(); }

  /// Reads go to their first use; products read on their own.
  void readLate(size_t most) {
    for (Exchange &e : llvm::MutableArrayRef(exchanges).take_front(most))
      lower(e.load);
    for (LocalLoadOp load : loads)
      lower(load);
  }

  /// Stores, and what only computes what is stored, go up to the last of the values that this is computed from.
  void storeEarly(size_t most) {
    for (Exchange &e : llvm::MutableArrayRef(exchanges).take_front(most))
      raise(e);
  }

private:
  void lower(Operation *read) {
    Block *block = read->getBlock();
    llvm::SetVector<Operation *> anchors;
    bool products = true;
    for (OpOperand &use : read->getResult(0).getUses()) {
      anchors.insert(block->findAncestorOpInBlock(*use.getOwner()));
      products &= isa<tile::DotOp>(use.getOwner()) && use.getOwner()->getBlock() == block;
    }
    llvm::SmallVector<Operation *> sorted(anchors.begin(), anchors.end());
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    if (sorted.empty() || !mayMove(read, sorted.front()))
      return;
    if (products)
      for (Operation *other : llvm::drop_begin(sorted))
        if (mayMove(read, other)) {
          OpBuilder b(other);
          Operation *again = b.clone(*read);
          for (OpOperand &operand : other->getOpOperands())
            if (operand.get() == read->getResult(0))
              operand.set(again->getResult(0));
        }
    read->moveBefore(sorted.front());
  }

  /// The bytes stay what they are until then.  An exchange's are its own.
  static bool mayMove(Operation *read, Operation *to) {
    if (isa<ExchangeLoadOp>(read))
      return true;
    for (Operation *op = read->getNextNode(); op != to; op = op->getNextNode())
      if (analysis::holdsSharedReads(op) && !isa<ExchangeStoreOp, tile::StoreOp, tile::StoreViewOp>(op))
        return false;
    return true;
  }

  /// Cheap, and without a trace but its results.
  static bool isLight(Operation *op) {
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) && !isa<tile::DotOp>(op) &&
           !op->hasTrait<OpTrait::IsTerminator>();
  }

  void raise(Exchange &e) {
    Block *block = e.store->getBlock();
    llvm::SetVector<Operation *> slice;
    Operation *last = nullptr; // of what the slice is computed from
    llvm::SmallVector<Value> work{e.store.getValue()};
    while (!work.empty()) {
      Operation *def = work.pop_back_val().getDefiningOp();
      if (!def || def->getBlock() != block)
        continue;
      if (isLight(def)) {
        if (slice.insert(def))
          llvm::append_range(work, def->getOperands());
      } else if (!last || last->isBeforeInBlock(def)) {
        last = def;
      }
    }
    // In program order, after what is there already.
    for (Operation *next = last ? last->getNextNode() : &block->front(); moved.contains(next);
         next = next->getNextNode())
      last = next;
    llvm::SmallVector<Operation *> ops;
    for (Operation *op : slice)
      if (!last || last->isBeforeInBlock(op))
        ops.push_back(op);
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    ops.push_back(e.scratch);
    ops.push_back(e.store);
    for (Operation *op : ops) {
      if (last)
        op->moveAfter(last);
      else
        op->moveBefore(block, block->begin());
      moved.insert(op);
      last = op;
    }
  }

  llvm::SmallVector<Exchange> exchanges;
  llvm::SmallVector<LocalLoadOp> loads;
  llvm::DenseSet<Operation *> moved;
};

struct RelieveRegisters : impl::RelieveRegistersBase<RelieveRegisters> {
  void runOnOperation() override {
    for (func::FuncOp f : getOperation().getOps<func::FuncOp>()) {
      if (f.isExternal())
        continue;
      bool multiplies = false;
      f.walk([&](Operation *op) { multiplies |= isa<tile::DotOp, WarpgroupDotOp>(op); });
      if (!multiplies)
        continue;
      Result<const Target *> target = targetOf(f);
      if (!target) {
        (void)report(f, target.takeStatus());
        return signalPassFailure();
      }
      relieve(f, **target);
    }
  }

  static void relieve(func::FuncOp f, const Target &target) {
    const uint64_t room = roomForTiles(f, target);
    if (analysis::tileWords(f, room).beyond == 0)
      return;
    computeInArms(f);
    analysis::TileWords best = analysis::tileWords(f, room);
    const uint64_t bytes = target.sharedOptIn / 16 * 15; // places leave gaps
    const size_t all = Mover(f).count();
    func::FuncOp chosen;
    // As many conversions as shared memory has room for.
    const auto attempt = [&](llvm::function_ref<void(Mover &, size_t)> move) {
      for (size_t most = all;; most -= (most + 7) / 8) {
        func::FuncOp clone = f.clone();
        Mover mover(clone);
        move(mover, most);
        const bool goes = mostSharedBytes(clone) <= bytes;
        const analysis::TileWords now = analysis::tileWords(clone, room);
        if (goes && now < best) {
          best = now;
          std::swap(chosen, clone);
        }
        if (clone)
          clone->erase();
        if (goes || most == 0)
          return;
      }
    };
    attempt([](Mover &mover, size_t most) { mover.readLate(most); });
    attempt([](Mover &mover, size_t most) {
      mover.storeEarly(most);
      mover.readLate(most);
    });
    if (chosen) {
      f.getBody().takeBody(chosen.getBody());
      chosen->erase();
    }
  }
};

} // namespace
} // namespace kiln
