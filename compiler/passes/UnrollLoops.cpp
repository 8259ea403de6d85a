// Loops that do several rounds at once, by copies of their body.
#include "compiler/passes/Pass.h"

#include "compiler/tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;

namespace kiln {
#include "compiler/passes/UnrollLoops.inc"

namespace {

/// One loop, replaced.
class Unroller {
public:
  Unroller(scf::ForOp loop, int64_t factor)
      : loop(loop), type(cast<IntegerType>(loop.getInductionVar().getType())), loc(loop.getLoc()), b(loop),
        factor(factor) {}

  void run() {
    APInt begin, end, step;
    const bool known = matchPattern(loop.getLowerBound(), m_ConstantInt(&begin)) &&
                       matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) &&
                       matchPattern(loop.getStep(), m_ConstantInt(&step));
    carried = llvm::to_vector(ValueRange(loop.getInitArgs()));
    if (known)
      ofKnownRounds(begin.getSExtValue(), end.getSExtValue(), step.getSExtValue());
    else
      ofUnknownRounds();
    loop.replaceAllUsesWith(ValueRange(carried));
    loop.erase();
  }

private:
  Value number(int64_t n) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n)); }

  /// Copies of the body one after another: the counter, then counter + step, ..
  void copies(OpBuilder &at, int64_t count, Value counter, llvm::SmallVector<Value> &values) {
    for (int64_t i = 0; i < count; ++i) {
      IRMapping map;
      map.map(loop.getInductionVar(), counter);
      map.map(loop.getRegionIterArgs(), values);
      for (Operation &op : loop.getBody()->without_terminator())
        at.clone(op, map);
      values.clear();
      for (Value v : loop.getBody()->getTerminator()->getOperands())
        values.push_back(map.lookupOrDefault(v));
      if (i + 1 < count)
        counter = at.createOrFold<arith::AddIOp>(loc, counter, loop.getStep());
    }
  }

  /// A loop of `count` copies a round, with the carried values; `next`, if given, becomes the counter after it.
  void emitLoop(Value begin, Value end, Value step, int64_t count, Value *next = nullptr) {
    llvm::SmallVector<Value> inits = carried;
    if (next)
      inits.push_back(begin);
    auto made = scf::ForOp::create(b, loc, begin, end, step, inits);
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    made->removeDiscardableAttr(tile::unrollAttr);
    if (count == 1) // the rest is short
      made->setDiscardableAttr(tile::numStagesAttr, b.getI32IntegerAttr(1));
    // A loop without results has its terminator already.
    OpBuilder inside =
        inits.empty() ? OpBuilder(made.getBody()->getTerminator()) : OpBuilder::atBlockEnd(made.getBody());
    llvm::SmallVector<Value> values = llvm::to_vector(ValueRange(made.getRegionIterArgs()));
    if (next)
      values.pop_back();
    copies(inside, count, made.getInductionVar(), values);
    if (next)
      values.push_back(arith::AddIOp::create(inside, loc, made.getInductionVar(), step));
    if (!inits.empty())
      scf::YieldOp::create(inside, loc, values);
    carried = llvm::to_vector(ValueRange(made.getResults()));
    if (next) {
      *next = carried.back();
      carried.pop_back();
    }
  }

  void ofKnownRounds(int64_t begin, int64_t end, int64_t step) {
    // Unsigned: the distance of two i64 may be no i64.
    const auto distance = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin), by = static_cast<uint64_t>(step),
               n = static_cast<uint64_t>(factor);
    const uint64_t rounds = step > 0 && begin < end ? (distance - 1) / by + 1 : 0;
    const auto at = [&](uint64_t round) {
      return number(static_cast<int64_t>(static_cast<uint64_t>(begin) + round * by));
    };
    const auto emit = [&](uint64_t first, uint64_t count, uint64_t ofOne) {
      if (count == ofOne)
        return copies(b, static_cast<int64_t>(count), at(first), carried);
      emitLoop(at(first), first + count == rounds ? number(end) : at(first + count),
               number(static_cast<int64_t>(ofOne * by)), static_cast<int64_t>(ofOne));
    };
    // A step of n rounds that the counter's type does not hold is taken at most once.
    const bool fits = step <= APInt::getSignedMaxValue(type.getWidth()).getSExtValue() / factor;
    const uint64_t whole = fits || rounds < 2 * n ? rounds / n * n : 0;
    if (whole)
      emit(0, whole, n);
    if (rounds > whole)
      emit(whole, rounds - whole, 1);
  }

  /// Whole ones while counter + (factor - 1) step is below the end.  That bound must not go below the smallest number,
  /// and of a step so large that its multiple overflows there are no two rounds.
  void ofUnknownRounds() {
    const unsigned bits = type.getWidth();
    const int64_t least = APInt::getSignedMinValue(bits).getSExtValue(),
                  most = APInt::getSignedMaxValue(bits).getSExtValue();
    const Value step = loop.getStep(), begin = loop.getLowerBound(), end = loop.getUpperBound();
    const Value span = b.createOrFold<arith::MulIOp>(loc, step, number(factor - 1));
    const Value lowest = b.createOrFold<arith::AddIOp>(loc, number(least), span);
    const Value bound = b.createOrFold<arith::SubIOp>(loc, b.createOrFold<arith::MaxSIOp>(loc, end, lowest), span);
    const Value few = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, step, number(most / factor));
    const Value last = b.createOrFold<arith::SelectOp>(loc, few, bound, number(least));
    Value next;
    emitLoop(begin, last, b.createOrFold<arith::MulIOp>(loc, step, number(factor)), factor, &next);
    emitLoop(next, end, step, 1);
  }

  scf::ForOp loop;
  IntegerType type;
  Location loc;
  OpBuilder b;
  const int64_t factor;
  llvm::SmallVector<Value> carried;
};

struct UnrollLoops : impl::UnrollLoopsBase<UnrollLoops> {
  void runOnOperation() override {
    llvm::SmallVector<scf::ForOp> loops; // inner ones first
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::unrollAttr))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      const int64_t factor = loop->getAttrOfType<IntegerAttr>(tile::unrollAttr).getInt();
      if (!isa<IntegerType>(loop.getInductionVar().getType())) {
        loop.emitError() << "the loop runs on " << loop.getInductionVar().getType() << ": use i32 or i64";
        return signalPassFailure();
      }
      if (loop.getUnsignedCmp()) {
        loop.emitError() << tile::unrollAttr << " of a loop that compares unsigned: loops run on signed numbers";
        return signalPassFailure();
      }
      if (factor == 1)
        loop->removeAttr(tile::unrollAttr);
      else
        Unroller(loop, factor).run();
    }
  }
};

} // namespace
} // namespace kiln
