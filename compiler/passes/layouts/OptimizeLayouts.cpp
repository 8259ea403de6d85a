// Tries the moves of LayoutMoves on clones and keeps those after which the function costs less.
#include "compiler/passes/Pass.h"

#include "compiler/passes/layouts/LayoutMoves.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <set>
#include <tuple>

using namespace mlir;

namespace kiln {
#include "compiler/passes/OptimizeLayouts.inc"

namespace {

using tile_gpu::ConvertLayoutOp;
using tile_gpu::LayoutAttr;
using Reach = LayoutMoves::Reach;

class Optimizer {
public:
  Optimizer(func::FuncOp f, const Target &target) : f(f), costs(f, target) {}

  void run() {
    LayoutMoves(f, costs).clean();
    best = costs.total(f);
    while (round() && trials < maxTrials) {
    }
    costs.forget(f);
  }

private:
  /// A kernel has a few conversions, and each is tried a few times; this is the end of the pathological.
  static constexpr unsigned maxTrials = 400;

  /// A move, the number of the conversion or carried tile in the function's order, and the layout, if it chooses one.
  enum class Move { CarryHere, CarryFar, EveryWarp, Hoist, SinkOne, SinkFar, StoreApart };
  using Tried = std::tuple<Move, unsigned, const void *>;

  /// What failed is not tried again before the function has changed.
  template <typename Apply> bool attempt(const Tried &what, Apply &&apply) {
    if (++trials > maxTrials || failed.contains(what))
      return false;
    func::FuncOp clone = f.clone();
    LayoutMoves moves(clone, costs);
    bool better = apply(clone, moves);
    if (better) {
      moves.clean();
      const double cost = costs.total(clone);
      better = cost < best * (1 - 1e-9) && count<tile::LoadOp>(clone) <= count<tile::LoadOp>(f) &&
               count<tile::LoadViewOp>(clone) <= count<tile::LoadViewOp>(f);
      if (better) {
        best = cost;
        f.getBody().takeBody(clone.getBody());
      }
    }
    clone->erase();
    if (better)
      failed.clear();
    else
      failed.insert(what);
    return better;
  }

  template <typename Op> static unsigned count(func::FuncOp f) {
    unsigned out = 0;
    f.walk([&](Op) { ++out; });
    return out;
  }

  static ConvertLayoutOp conversion(func::FuncOp f, unsigned number) {
    ConvertLayoutOp out;
    f.walk<WalkOrder::PreOrder>([&](ConvertLayoutOp op) {
      if (number-- == 0) {
        out = op;
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return out;
  }

  static llvm::SmallVector<CarriedTile> everyCarried(func::FuncOp f) {
    llvm::SmallVector<CarriedTile> out;
    f.walk<WalkOrder::PreOrder>([&](Operation *op) { llvm::append_range(out, carriedTiles(op)); });
    return out;
  }

  /// Layouts that conversions of a carried tile, or of what meets it, suggest.
  static llvm::SmallVector<LayoutAttr> suggestions(const CarriedTile &tile) {
    llvm::SmallVector<LayoutAttr> out;
    auto suggest = [&](Type t) {
      const LayoutAttr layout = tile_gpu::layoutAttrOf(t);
      if (layout && layout != tile_gpu::layoutAttrOf(tile.values.front().getType()) && !llvm::is_contained(out, layout))
        out.push_back(layout);
    };
    const auto shape = cast<RankedTensorType>(tile.values.front().getType()).getShape();
    for (Value v : tile.values)
      for (Operation *user : v.getUsers()) {
        if (auto conversion = dyn_cast<ConvertLayoutOp>(user))
          suggest(conversion.getType());
        for (Value other : user->getOperands()) // what is converted to meet the carried tile
          if (auto conversion = other.getDefiningOp<ConvertLayoutOp>();
              conversion && conversion.getType().getShape() == shape)
            suggest(conversion.getSource().getType());
      }
    for (OpOperand *feed : tile.feeds)
      if (auto conversion = feed->get().getDefiningOp<ConvertLayoutOp>())
        suggest(conversion.getSource().getType());
    return out;
  }

  bool round() {
    bool any = false;
    if (!conversion(f, 0))
      return any;
    // Loops first: the layout that they carry decides what is left in them.
    for (unsigned i = 0; i < everyCarried(f).size(); ++i)
      any |= carry(i);
    for (unsigned i = 0; conversion(f, i);) {
      const auto attemptHere = [&](Move move, auto apply) {
        return attempt({move, i, nullptr},
                       [&](func::FuncOp g, LayoutMoves &moves) { return apply(moves, conversion(g, i)); });
      };
      // That most conversions cannot be hoisted or stored apart shows without a clone; such a trial counts as well.
      const auto attemptIf = [&](bool can, Move move, auto apply) {
        if (!can)
          failed.insert({move, i, nullptr});
        return attemptHere(move, apply);
      };
      bool further = true; // than one operation: else the longer reach gives the same
      const bool moved =
          (costs.losesTurns(conversion(f, i)) &&
           attemptHere(Move::EveryWarp, [](LayoutMoves &m, ConvertLayoutOp op) { return m.everyWarp(op); })) ||
          attemptIf(LayoutMoves(f, costs).canHoist(conversion(f, i)), Move::Hoist,
                    [](LayoutMoves &m, ConvertLayoutOp op) { return m.hoist(op); }) ||
          attemptHere(Move::SinkOne,
                      [&](LayoutMoves &m, ConvertLayoutOp op) {
                        const bool sunk = m.sink(op, Reach::OneOperation);
                        further = m.couldReachFurther();
                        return sunk;
                      }) ||
          attemptIf(further, Move::SinkFar,
                    [](LayoutMoves &m, ConvertLayoutOp op) { return m.sink(op, Reach::AsFarAsPossible); }) ||
          attemptIf(static_cast<bool>(LayoutMoves::layoutApart(conversion(f, i))), Move::StoreApart,
                    [](LayoutMoves &m, ConvertLayoutOp op) { return m.storeApart(op); });
      any |= moved;
      i += !moved;
    }
    return any;
  }

  bool carry(unsigned i) {
    for (LayoutAttr layout : suggestions(everyCarried(f)[i]))
      for (Reach reach : {Reach::None, Reach::AsFarAsPossible})
        if (attempt({reach == Reach::None ? Move::CarryHere : Move::CarryFar, i, layout.getAsOpaquePointer()},
                    [&](func::FuncOp g, LayoutMoves &moves) { return moves.carry(everyCarried(g)[i], layout, reach); }))
          return true;
    return false;
  }

  func::FuncOp f;
  LayoutCosts costs;
  double best = 0;
  unsigned trials = 0;
  std::set<Tried> failed; ///< for the function as it is
};

struct OptimizeLayouts : impl::OptimizeLayoutsBase<OptimizeLayouts> {
  void runOnOperation() override {
    for (func::FuncOp f : getOperation().getOps<func::FuncOp>()) {
      bool converts = false;
      f.walk([&](ConvertLayoutOp) { converts = true; });
      if (!converts)
        continue;
      Result<const Target *> target = tile_gpu::targetOf(f);
      if (!target) {
        (void)tile_gpu::report(f, target.takeStatus());
        return signalPassFailure();
      }
      Optimizer(f, **target).run();
    }
  }
};

} // namespace
} // namespace kiln
