// Operands of matrix instructions are words of two 16-bit numbers.  A loop that carries a tile of them carries each
// number by itself, and LLVM then moves the conversion from f32 into the next round: it carries f32, twice the
// registers, and converts one number at a time, since a conversion of two has to be next to where they are joined.  A
// word that goes through empty assembly stays where it is made.
#include "compiler/lowering/PackCarried.h"

#include "compiler/lowering/Emit.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering {

namespace {

/// The only user of `v`, if it is one of these.
template <typename Op> Op onlyUser(Value v) {
  return v.hasOneUse() ? dyn_cast<Op>(*v.user_begin()) : Op();
}

bool isAt(LLVM::InsertElementOp insert, int64_t index) {
  APInt at;
  return insert && matchPattern(insert.getPosition(), m_ConstantInt(&at)) && at == static_cast<uint64_t>(index);
}

/// The words of `low` and `high` (Emit::joinWord), if these are used for nothing else.
std::optional<llvm::SmallVector<Value>> wordsOf(Value low, Value high) {
  llvm::SmallVector<Value> words;
  unsigned joined = 0; // uses of `high`
  for (Operation *user : low.getUsers()) {
    auto bits = dyn_cast<arith::BitcastOp>(user);
    auto first = bits ? onlyUser<LLVM::InsertElementOp>(bits.getResult()) : LLVM::InsertElementOp();
    auto second = isAt(first, 0) ? onlyUser<LLVM::InsertElementOp>(first.getResult()) : LLVM::InsertElementOp();
    auto other = isAt(second, 1) ? second.getValue().getDefiningOp<arith::BitcastOp>() : arith::BitcastOp();
    auto word = other && other.getIn() == high && other->hasOneUse() ? onlyUser<LLVM::BitcastOp>(second.getResult())
                                                                     : LLVM::BitcastOp();
    if (!word || !word.getType().isInteger(32))
      return std::nullopt;
    words.push_back(word);
    ++joined;
  }
  return static_cast<unsigned>(std::distance(high.use_begin(), high.use_end())) == joined ? std::optional(words)
                                                                                          : std::nullopt;
}

/// Their word, of which LLVM does not know what it is made of: where they are computed, or else where `b` is.
Value joinEarly(OpBuilder &b, Location loc, Value low, Value high) {
  const OpBuilder::InsertionGuard guard(b);
  Operation *first = low.getDefiningOp(), *second = high.getDefiningOp();
  if (first && second && first->getBlock() == second->getBlock())
    b.setInsertionPointAfter(first->isBeforeInBlock(second) ? second : first);
  const Emit e(b, loc);
  const Value word = e.joinWord({e.toBits(low), e.toBits(high)});
  return LLVM::InlineAsmOp::create(b, loc, word.getType(), word, "", "=r,0", /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr())
      .getResult(0);
}

/// Not a half of a word: those codegen carries as words (WordPhis.h), which leaves LLVM to see what they are.
bool isComputed(Value v) {
  while (auto cast = v.getDefiningOp<arith::BitcastOp>())
    v = cast.getIn();
  return v.getDefiningOp() && !v.getDefiningOp<LLVM::ExtractElementOp>();
}

void pack(scf::ForOp loop) {
  llvm::SmallVector<unsigned> pairs; // the first of each
  const auto isShort = [](Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 16; };
  for (unsigned i = 0; i + 1 < loop.getNumRegionIterArgs(); ++i) {
    const BlockArgument low = loop.getRegionIterArg(i), high = loop.getRegionIterArg(i + 1);
    if (!isShort(low.getType()) || low.getType() != high.getType() || low.use_empty() ||
        !isComputed(loop.getYieldedValues()[i]) || !isComputed(loop.getYieldedValues()[i + 1]) || !wordsOf(low, high))
      continue;
    pairs.push_back(i++);
  }
  if (pairs.empty())
    return;
  IRRewriter rewriter(loop);
  const Emit e(rewriter, loop.getLoc());
  llvm::SmallVector<Value> inits;
  for (unsigned i : pairs)
    inits.push_back(joinEarly(rewriter, loop.getLoc(), loop.getInitArgs()[i], loop.getInitArgs()[i + 1]));
  const unsigned added = loop.getNumRegionIterArgs();
  const auto yields = [&](OpBuilder &b, Location loc, llvm::ArrayRef<BlockArgument>) {
    return llvm::map_to_vector(pairs, [&](unsigned i) {
      return joinEarly(b, loc, loop.getYieldedValues()[i], loop.getYieldedValues()[i + 1]);
    });
  };
  const DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  auto packed = cast<scf::ForOp>(**loop.replaceWithAdditionalYields(rewriter, inits, false, yields));
  packed->setDiscardableAttrs(attributes);
  rewriter.setInsertionPointAfter(packed);
  for (auto [number, i] : llvm::enumerate(pairs)) {
    const Value word = packed.getResult(added + static_cast<unsigned>(number));
    const auto replaced = wordsOf(packed.getRegionIterArg(i), packed.getRegionIterArg(i + 1));
    for (Value old : *replaced)
      rewriter.replaceAllUsesWith(old, packed.getRegionIterArg(added + static_cast<unsigned>(number)));
    const Value results[] = {packed.getResult(i), packed.getResult(i + 1)};
    if (const auto words = wordsOf(results[0], results[1])) {
      for (Value old : *words)
        rewriter.replaceAllUsesWith(old, word);
    } else {
      const Scalars parts = e.splitWord(word, 2);
      for (unsigned half : {0u, 1u})
        rewriter.replaceAllUsesWith(results[half], e.fromBits(parts[half], results[half].getType()));
    }
    // Nobody looks at the numbers themselves any more.
    for (unsigned half : {0u, 1u})
      packed.getBody()->getTerminator()->setOperand(i + half, packed.getRegionIterArg(i + half));
  }
}

} // namespace

void packCarried(Operation *function) {
  llvm::SmallVector<scf::ForOp> loops;
  function->walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    pack(loop);
}

} // namespace kiln::lowering
