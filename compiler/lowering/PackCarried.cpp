// Operands of matrix instructions are words of two 16-bit numbers, or of four of 8 bits.  A loop that carries a tile of
// them carries each number by itself, and LLVM then moves the conversion from f32 into the next round: it carries f32,
// twice the registers, and converts one number at a time, since a conversion of two has to be next to where they are
// joined.  A word that goes through empty assembly stays where it is made.
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

/// The words of these numbers (Emit::joinWord), if they are used for nothing else.
std::optional<llvm::SmallVector<Value>> wordsOf(ValueRange parts) {
  llvm::SmallVector<Value> words;
  for (Operation *user : parts.front().getUsers()) {
    auto bits = dyn_cast<arith::BitcastOp>(user);
    auto insert = bits ? onlyUser<LLVM::InsertElementOp>(bits.getResult()) : LLVM::InsertElementOp();
    if (!isAt(insert, 0))
      return std::nullopt;
    for (unsigned i = 1; i < parts.size(); ++i) {
      insert = onlyUser<LLVM::InsertElementOp>(insert.getResult());
      auto other = isAt(insert, i) ? insert.getValue().getDefiningOp<arith::BitcastOp>() : arith::BitcastOp();
      if (!other || other.getIn() != parts[i] || !other->hasOneUse())
        return std::nullopt;
    }
    auto word = onlyUser<LLVM::BitcastOp>(insert.getResult());
    if (!word || !word.getType().isInteger(32))
      return std::nullopt;
    words.push_back(word);
  }
  const auto isJoined = [&](Value part) {
    return static_cast<size_t>(std::distance(part.use_begin(), part.use_end())) == words.size();
  };
  return llvm::all_of(parts, isJoined) ? std::optional(words) : std::nullopt;
}

/// Their word, of which LLVM does not know what it is made of: where they are computed, or else where `b` is.
Value joinEarly(OpBuilder &b, Location loc, ValueRange parts) {
  const OpBuilder::InsertionGuard guard(b);
  Operation *last = parts.front().getDefiningOp();
  for (Value part : parts) {
    Operation *op = part.getDefiningOp();
    last = !op || !last || op->getBlock() != last->getBlock() ? nullptr : op->isBeforeInBlock(last) ? last : op;
  }
  if (last)
    b.setInsertionPointAfter(last);
  const Emit e(b, loc);
  const Value word = e.joinWord(llvm::map_to_vector(parts, [&](Value part) { return e.toBits(part); }));
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

/// Numbers of a carried float's type in a word; 0: it is none of 16 or 8 bits.
unsigned partsOf(Type type) {
  const unsigned bits = isa<FloatType>(type) ? type.getIntOrFloatBitWidth() : 0;
  return bits == 16 || bits == 8 ? 32 / bits : 0;
}

void pack(scf::ForOp loop) {
  struct Word {
    unsigned first, count; ///< of the carried values
    ValueRange in(ValueRange all) const { return all.slice(first, count); }
  };
  llvm::SmallVector<Word> packs;
  const ValueRange arguments = loop.getRegionIterArgs(), yielded = loop.getYieldedValues();
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const Word word{i, partsOf(arguments[i].getType())};
    if (!word.count || i + word.count > arguments.size())
      continue;
    const auto isAlike = [&](Value part) { return part.getType() == arguments[i].getType(); };
    if (arguments[i].use_empty() || !llvm::all_of(word.in(arguments), isAlike) ||
        !llvm::all_of(word.in(yielded), isComputed) || !wordsOf(word.in(arguments)))
      continue;
    packs.push_back(word);
    i += word.count - 1;
  }
  if (packs.empty())
    return;
  IRRewriter rewriter(loop);
  const Emit e(rewriter, loop.getLoc());
  llvm::SmallVector<Value> inits;
  for (const Word &word : packs)
    inits.push_back(joinEarly(rewriter, loop.getLoc(), word.in(loop.getInitArgs())));
  const unsigned added = loop.getNumRegionIterArgs();
  const auto yields = [&](OpBuilder &b, Location loc, llvm::ArrayRef<BlockArgument>) {
    return llvm::map_to_vector(
        packs, [&](const Word &word) { return joinEarly(b, loc, word.in(ValueRange(loop.getYieldedValues()))); });
  };
  const DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  auto packed = cast<scf::ForOp>(**loop.replaceWithAdditionalYields(rewriter, inits, false, yields));
  packed->setDiscardableAttrs(attributes);
  rewriter.setInsertionPointAfter(packed);
  for (auto [number, word] : llvm::enumerate(packs)) {
    const unsigned at = added + static_cast<unsigned>(number);
    const auto replaced = wordsOf(word.in(ValueRange(packed.getRegionIterArgs())));
    for (Value old : *replaced)
      rewriter.replaceAllUsesWith(old, packed.getRegionIterArg(at));
    const ValueRange results = word.in(packed.getResults());
    if (const auto words = wordsOf(results)) {
      for (Value old : *words)
        rewriter.replaceAllUsesWith(old, packed.getResult(at));
    } else {
      const Scalars parts = e.splitWord(packed.getResult(at), word.count);
      for (auto [result, part] : llvm::zip_equal(results, parts))
        rewriter.replaceAllUsesWith(result, e.fromBits(part, result.getType()));
    }
    // Nobody looks at the numbers themselves any more.
    for (unsigned i = word.first; i < word.first + word.count; ++i)
      packed.getBody()->getTerminator()->setOperand(i, packed.getRegionIterArg(i));
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
