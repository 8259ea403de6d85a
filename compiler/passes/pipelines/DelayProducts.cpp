// A product of what a round computes is made in the next round, while that one computes.
//
// A loop that multiplies two tiles, computes with the result and multiplies again (scores, softmax, values) does one
// after the other: its last product needs all that comes before.  A product of warpgroups goes on by itself, so the
// last one is made a round later, next to the round's first one, and is waited for where its sums are used:
//
//   for i .. carrying sums:                      if there is a round:
//     s = q * K(i)                                 p = softmax(q * K(first))
//     p = softmax(s)                        =>     for i .. from the second round, carrying sums, p, j:
//     sums = rescaled(sums) + p * V(i)               s = q * K(i)
//                                                    sums += p * V(j)          j: the round before; in flight ..
//                                                    p = softmax(s)
//                                                    sums = rescaled(sums)     .. to here
//                                                  sums += p * V(last)
//
// What uses the carried sums comes last in a round then.  A conditional that gives other results too is made two.  An
// assembler likes to wait early, before all that could be computed meanwhile; it does not if the wait stands in the
// arms of a conditional that depends on it.  The answer of tile.any_row is free where no row needs the arm: it asks for
// rows that are no numbers in addition.
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/DelayedSums.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/DelayProducts.inc"

using namespace tile_gpu;

namespace {

class Delay {
public:
  explicit Delay(scf::ForOp loop) : loop(loop), rewriter(loop.getContext()) {}

  /// The loop has the form above.
  bool find() {
    APInt by;
    if (tile::numStages(loop) < 2 || !matchPattern(loop.getStep(), m_ConstantInt(&by)) || !by.isStrictlyPositive() ||
        !onlyReads(loop))
      return false;
    step = by.getSExtValue();
    for (tile::DotOp dot : loop.getBody()->getOps<tile::DotOp>())
      if (isLast(dot)) {
        product = dot;
        break;
      }
    if (!product)
      return false;
    place = product->use_begin()->getOperandNumber();
    sums = loop.getRegionIterArg(place);
    return findUsers();
  }

  void run() {
    splitConditionals();
    const llvm::SmallVector<Operation *> late = usersOfSums();
    Operation *end = loop.getBody()->getTerminator();
    for (Operation *op : late)
      rewriter.moveOpBefore(op, end);
    holdBack(late);
    rotate();
  }

private:
  /// The round ends with it: it multiplies what follows from another product by what is loaded, and its sums are the
  /// next round's.
  bool isLast(tile::DotOp dot) {
    if (!readsRegisters(dot) || !dot->hasOneUse() || *dot->user_begin() != loop.getBody()->getTerminator())
      return false;
    llvm::SetVector<Operation *> loaded;
    return followsFromProduct(dot.getLhs()) && collect(dot.getRhs(), loaded);
  }

  bool isInside(Operation *op) { return op && op->getBlock() == loop.getBody(); }

  bool followsFromProduct(Value v) {
    llvm::SetVector<Value> all;
    all.insert(v);
    for (size_t i = 0; i < all.size(); ++i) {
      Operation *def = all[i].getDefiningOp();
      if (!isInside(def))
        continue;
      if (isa<tile::DotOp>(def))
        return true;
      def->walk([&](Operation *op) { all.insert_range(op->getOperands()); });
    }
    return false;
  }

  /// The operations of the loop that `v` follows from, if it follows from the counter and from values from outside.
  bool collect(Value v, llvm::SetVector<Operation *> &ops) {
    if (v == loop.getInductionVar())
      return true;
    Operation *def = v.getDefiningOp();
    if (!isInside(def))
      return !loop->isAncestor(v.getParentRegion()->getParentOp());
    if (ops.contains(def))
      return true;
    if (def->getNumRegions() || isa<tile::DotOp>(def) ||
        !llvm::all_of(def->getOperands(), [&](Value operand) { return collect(operand, ops); }))
      return false;
    ops.insert(def); // after what it follows from
    return true;
  }

  /// Whether an operation, or one inside of it, uses any of these.
  static bool uses(Operation *op, const llvm::DenseSet<Value> &values) {
    return op
        ->walk([&](Operation *inner) {
          return llvm::any_of(inner->getOperands(), [&](Value v) { return values.contains(v); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Adds the results of a conditional that follow from `values`.
  static void addResults(scf::IfOp branch, llvm::DenseSet<Value> &values) {
    if (values.contains(branch.getCondition())) {
      values.insert_range(branch.getResults());
      return;
    }
    for (Region &region : branch->getRegions()) {
      llvm::DenseSet<Value> inside = values;
      for (Operation &op : region.front().without_terminator())
        if (uses(&op, inside))
          inside.insert_range(op.getResults());
      for (auto [result, v] : llvm::zip_equal(branch.getResults(), region.front().getTerminator()->getOperands()))
        if (inside.contains(v))
          values.insert(result);
    }
  }

  /// What follows from the carried sums, the product apart; false if its left tile does.
  bool findUsers() {
    following.insert(sums);
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (&op == product || !uses(&op, following))
        continue;
      auto branch = dyn_cast<scf::IfOp>(op);
      if (branch && branch.elseBlock())
        addResults(branch, following);
      else if (isa<tile::DotOp>(op) || op.getNumResults() == 0)
        return false;
      else
        following.insert_range(op.getResults());
    }
    for (Operation &op : *loop.getBody())
      if (isa<tile::DotOp>(op) && &op != product)
        other = &op;
    return other && !following.contains(product.getLhs());
  }

  llvm::SmallVector<Operation *> usersOfSums() {
    llvm::SmallVector<Operation *> out;
    for (Operation &op : loop.getBody()->without_terminator())
      if (&op != product && llvm::any_of(op.getResults(), [&](Value v) { return following.contains(v); }))
        out.push_back(&op);
    return out;
  }

  void splitConditionals() {
    for (scf::IfOp branch : llvm::make_early_inc_range(loop.getBody()->getOps<scf::IfOp>())) {
      const auto follows = [&](Value v) { return following.contains(v); };
      if (!branch.elseBlock() || llvm::none_of(branch.getResults(), follows) ||
          llvm::all_of(branch.getResults(), follows))
        continue;
      rewriter.setInsertionPoint(branch);
      for (const bool which : {false, true}) {
        llvm::SmallVector<unsigned> kept;
        for (OpResult result : branch.getResults())
          if (follows(result) == which)
            kept.push_back(result.getResultNumber());
        scf::IfOp part = withResults(branch, kept);
        for (auto [i, number] : llvm::enumerate(kept)) {
          if (which)
            following.insert(part.getResult(i));
          rewriter.replaceAllUsesWith(branch.getResult(number), part.getResult(i));
        }
      }
      for (Value v : branch.getResults())
        following.erase(v);
      rewriter.eraseOp(branch);
    }
  }

  /// The conditional with these of its results.
  scf::IfOp withResults(scf::IfOp branch, llvm::ArrayRef<unsigned> kept) {
    const auto pick = [&](ValueRange values) {
      return llvm::map_to_vector(kept, [&](unsigned i) { return values[i]; });
    };
    auto out = scf::IfOp::create(rewriter, branch.getLoc(), ValueRange(pick(branch.getResults())).getTypes(),
                                 branch.getCondition(), /*withElseRegion=*/true);
    out->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
    OpBuilder::InsertionGuard guard(rewriter);
    for (auto [from, to] : llvm::zip_equal(branch->getRegions(), out->getRegions())) {
      rewriter.setInsertionPointToStart(&to.front());
      IRMapping map;
      for (Operation &op : from.front().without_terminator())
        rewriter.clone(op, map);
      const llvm::SmallVector<Value> given = llvm::map_to_vector(pick(from.front().getTerminator()->getOperands()),
                                                                 [&](Value v) { return map.lookupOrDefault(v); });
      scf::YieldOp::create(rewriter, branch.getLoc(), given);
    }
    (void)runRegionDCE(rewriter, out->getRegions());
    return out;
  }

  /// The first conditional on the sums asks for what else the round gives.
  void holdBack(llvm::ArrayRef<Operation *> late) {
    auto branch = late.empty() ? scf::IfOp() : dyn_cast<scf::IfOp>(late.front());
    auto some = branch ? branch.getCondition().getDefiningOp<tile::AnyRowOp>() : tile::AnyRowOp();
    if (!some)
      return;
    rewriter.setInsertionPoint(branch);
    const Location loc = branch.getLoc();
    Value rows = some.getRows();
    bool any = false;
    for (Value v : loop.getYieldedValues())
      if (Value unknown = isInside(v.getDefiningOp()) && !following.contains(v) ? asRows(v, rows) : Value()) {
        const Value isNone = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, v, v);
        rows = arith::OrIOp::create(rewriter, loc, unknown, isNone);
        any = true;
      }
    if (any)
      branch.getConditionMutable().set(tile::AnyRowOp::create(rewriter, loc, rows));
  }

  /// The rows in the shape of `v`, numbers of a few columns a row that follow from the products; null if it is not so.
  Value asRows(Value v, Value rows) {
    const auto tile = dyn_cast<RankedTensorType>(v.getType());
    auto mask = cast<RankedTensorType>(rows.getType());
    constexpr int64_t few = 8;
    if (!tile || !isa<FloatType>(tile.getElementType()) || tile.getShape().front() != mask.getShape().front() ||
        tile.getNumElements() > few * tile.getShape().front() || tile.getRank() != 2 || !followsFromProduct(v))
      return {};
    const auto masks = [&](llvm::ArrayRef<int64_t> shape) {
      return RankedTensorType::get(shape, rewriter.getI1Type(), tile.getEncoding());
    };
    if (mask.getRank() == 1) {
      const auto column = masks({mask.getShape().front(), 1});
      if (!operandFits(mask, column))
        return {};
      rows = tile::ExpandDimsOp::create(rewriter, v.getLoc(), column, rows, 1);
      mask = column;
    }
    if (mask == masks(tile.getShape()))
      return rows;
    if (mask.getEncoding() != tile.getEncoding() || mask.getShape().back() != 1)
      return {};
    return tile::BroadcastOp::create(rewriter, v.getLoc(), masks(tile.getShape()), rows);
  }

  /// Rows in this layout are a column in that one.
  static bool operandFits(RankedTensorType rows, RankedTensorType column) {
    const auto *slice = std::get_if<layout::Slice>(&layoutAttrOf(rows).encoding().kind);
    return slice && slice->dim == 1 && slice->parent == layoutAttrOf(column).encoding();
  }

  /// The right tile of the round that counts `counter`.
  Value loadedIn(Value counter) {
    llvm::SetVector<Operation *> ops;
    collect(product.getRhs(), ops);
    IRMapping map;
    map.map(loop.getInductionVar(), counter);
    for (Operation *op : ops)
      rewriter.clone(*op, map);
    return map.lookupOrDefault(product.getRhs());
  }

  Value multiply(Value lhs, Value rhs, Value accumulator) {
    IRMapping map;
    map.map(product.getLhs(), lhs);
    map.map(product.getRhs(), rhs);
    map.map(product.getAccumulator(), accumulator);
    return rewriter.clone(*product, map)->getResult(0);
  }

  void rotate() {
    const Location loc = loop.getLoc();
    rewriter.setInsertionPoint(loop);
    const Value some = arith::CmpIOp::create(
        rewriter, loc, loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
        loop.getLowerBound(), loop.getUpperBound());
    auto branch = scf::IfOp::create(rewriter, loc, loop.getResultTypes(), some, /*withElseRegion=*/true);
    rewriter.replaceAllUsesWith(loop.getResults(), branch.getResults());
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, loop.getInitArgs());

    // The first round, but for its last product.
    rewriter.setInsertionPointToStart(branch.thenBlock());
    rewriter.moveOpBefore(loop, branch.thenBlock(), branch.thenBlock()->end());
    rewriter.setInsertionPoint(loop);
    IRMapping map;
    map.map(loop.getInductionVar(), loop.getLowerBound());
    map.map(loop.getRegionIterArgs(), loop.getInitArgs());
    for (Operation &op : loop.getBody()->without_terminator())
      if (&op != product)
        rewriter.clone(op, map);
    llvm::SmallVector<Value> inits;
    for (auto [i, v] : llvm::enumerate(loop.getYieldedValues()))
      inits.push_back(map.lookupOrDefault(i == place ? product.getAccumulator() : v));
    const Value counter = loop.getLowerBound(), left = map.lookupOrDefault(product.getLhs());
    // A right tile that threads change on its way is made in its own round, too: they do that while products go on.
    llvm::SetVector<Operation *> making;
    collect(product.getRhs(), making);
    const bool isMade = !making.empty() && !isa_and_present<tile::LoadOp, tile::LoadViewOp>(
                                               viewedTile(product.getRhs()).first.getDefiningOp());
    const Value right = isMade ? map.lookupOrDefault(product.getRhs()) : counter;

    // The others, each with the last product of the one before.
    const Value exists = roundExists(rewriter, loop, counter, step);
    const Value next = arith::AddIOp::create(rewriter, loc, counter, loop.getStep());
    loop.setLowerBound(arith::SelectOp::create(rewriter, loc, exists, next, loop.getUpperBound()));
    loop.getInitArgsMutable().assign(inits);
    const unsigned added = loop.getNumRegionIterArgs();
    loop = carryAlso(rewriter, loop, {right, left});
    sums = loop.getRegionIterArg(place);
    rewriter.setInsertionPointAfter(other);
    const Value carried = loop.getRegionIterArg(added);
    const Value grown = multiply(loop.getRegionIterArg(added + 1), isMade ? carried : loadedIn(carried), sums);
    rewriter.replaceUsesWithIf(sums, grown, [&](OpOperand &use) { return use.getOwner() != grown.getDefiningOp(); });
    Operation *end = loop.getBody()->getTerminator();
    end->setOperand(place, product.getAccumulator());
    end->setOperand(added, isMade ? product.getRhs() : loop.getInductionVar());
    if (isMade) {
      Operation *after = grown.getDefiningOp();
      for (Operation *op : making)
        if (after->isBeforeInBlock(op)) {
          rewriter.moveOpAfter(op, after);
          after = op;
        }
    }
    end->setOperand(added + 1, product.getLhs());
    // Rounded once the product in flight has read its own from these registers: else another set of them, and moves.
    if (auto rounded = product.getLhs().getDefiningOp<arith::TruncFOp>(); rounded && isInside(rounded))
      if (llvm::all_of(rounded->getUsers(), [&](Operation *user) { return user == end || user == product; }))
        rewriter.moveOpBefore(rounded, end);

    rewriter.setInsertionPointAfter(loop);
    const Value ofLast = loop.getResult(added);
    const Value last = multiply(loop.getResult(added + 1), isMade ? ofLast : loadedIn(ofLast), loop.getResult(place));
    llvm::SmallVector<Value> results(loop.getResults().take_front(added));
    results[place] = last;
    scf::YieldOp::create(rewriter, loc, results);
    rewriter.eraseOp(product);
    // What only it used.
    (void)runRegionDCE(rewriter, branch.getThenRegion());
  }

  scf::ForOp loop;
  IRRewriter rewriter;
  int64_t step = 1;
  tile::DotOp product;
  BlockArgument sums;              ///< that the loop carries for the product
  unsigned place = 0;              ///< of these among what it carries
  Operation *other = nullptr;      ///< the round's last product before that
  llvm::DenseSet<Value> following; ///< the sums and what follows from them
};

struct DelayProducts : impl::DelayProductsBase<DelayProducts> {
  void runOnOperation() override {
    const auto hasProducts = [](scf::ForOp loop) { return !loop.getBody()->getOps<tile::DotOp>().empty(); };
    const auto delayAll = [](llvm::ArrayRef<scf::ForOp> loops, const Target &) {
      for (scf::ForOp loop : loops)
        if (Delay delay(loop); delay.find())
          delay.run();
        else
          delaySums(loop);
    };
    if (failed(forEachLoops(getOperation(), hasProducts, delayAll)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
