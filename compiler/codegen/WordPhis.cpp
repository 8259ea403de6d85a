#include "compiler/codegen/WordPhis.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

#include <cstdint>
#include <optional>

namespace kiln {
namespace {

using llvm::PHINode;
using llvm::Value;
using namespace llvm::PatternMatch;

/// The lower and the upper half of what should be one word.
using Halves = std::pair<Value *, Value *>;

bool isPairOfHalves(const llvm::Type *type) {
  const auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector && vector->getNumElements() == 2 && vector->getScalarSizeInBits() == 16;
}

/// The bits of a constant of 16 bits; what is undefined may be anything.
std::optional<std::uint32_t> bitsOf(Value *value) {
  if (llvm::isa<llvm::UndefValue>(value))
    return 0;
  if (auto *i = llvm::dyn_cast<llvm::ConstantInt>(value))
    return static_cast<std::uint32_t>(i->getZExtValue());
  if (auto *f = llvm::dyn_cast<llvm::ConstantFP>(value))
    return static_cast<std::uint32_t>(f->getValueAPF().bitcastToAPInt().getZExtValue());
  return std::nullopt;
}

/// The word, an i32 or a vector of two, of which the value is this half.
Value *wordOfHalf(Value *half, unsigned which) {
  Value *inner, *word;
  while (match(half, m_BitCast(m_Value(inner))) && !inner->getType()->isVectorTy())
    half = inner;
  if (match(half, m_ExtractElt(m_Value(word), m_SpecificInt(which))) && isPairOfHalves(word->getType()))
    return word;
  const bool found =
      which == 0 ? match(half, m_Trunc(m_Value(word))) : match(half, m_Trunc(m_LShr(m_Value(word), m_SpecificInt(16))));
  return found && word->getType()->isIntegerTy(32) ? word : nullptr;
}

/// The phis that a value comes from: bitcasts between types of 16 bits do not count.
PHINode *phiOf(Value *half) {
  Value *inner;
  while (match(half, m_BitCast(m_Value(inner))))
    half = inner;
  return half->getType()->getScalarSizeInBits() == 16 ? llvm::dyn_cast<PHINode>(half) : nullptr;
}

/// The lower and the upper half of a word that is carried.
using Phis = std::pair<PHINode *, PHINode *>;

/// The two phis of one block that the halves are.
std::optional<Phis> phisOf(Halves halves) {
  PHINode *lower = phiOf(halves.first), *upper = phiOf(halves.second);
  if (!lower || !upper || lower == upper || lower->getParent() != upper->getParent())
    return std::nullopt;
  return Phis{lower, upper};
}

/// Used on its own as well: then it would be carried in addition to the word.
bool isUsedAlone(const Value *half) {
  return llvm::any_of(half->users(), [](const llvm::User *user) {
    return llvm::isa<llvm::BitCastInst>(user) ? isUsedAlone(user) : !llvm::isa<PHINode, llvm::InsertElementInst>(user);
  });
}

/// The words of one function.
class Words {
public:
  /// The word of two phis, made if it can be; null if not.
  Value *make(Halves halves) {
    const std::optional<Phis> phis = phisOf(halves);
    if (!phis)
      return nullptr;
    if (PHINode *known = words.lookup(*phis))
      return known;
    // First all that it comes from; nothing is changed before that is known to be words.
    llvm::SetVector<Phis> all;
    all.insert(*phis);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto [l, u] = all[i];
      if (isUsedAlone(l) || isUsedAlone(u))
        return nullptr;
      for (const auto &[from, half] : llvm::zip_equal(l->blocks(), l->incoming_values())) {
        const Halves before = {half, u->getIncomingValueForBlock(from)};
        if (finished(before))
          continue;
        const std::optional<Phis> carried = phisOf(before);
        if (!carried)
          return nullptr;
        if (!words.contains(*carried))
          all.insert(*carried);
      }
    }
    llvm::Type *i32 = llvm::Type::getInt32Ty(phis->first->getContext());
    for (const auto &[l, u] : all)
      words[{l, u}] = PHINode::Create(i32, l->getNumIncomingValues(), "word", l->getIterator());
    for (const auto &[l, u] : all)
      for (const auto &[from, half] : llvm::zip_equal(l->blocks(), l->incoming_values()))
        addWord(*words[{l, u}], from, {half, u->getIncomingValueForBlock(from)});
    return words[*phis];
  }

private:
  /// Constants, or halves of one word.
  static bool finished(Halves halves) {
    if (bitsOf(halves.first) && bitsOf(halves.second))
      return true;
    Value *word = wordOfHalf(halves.first, 0);
    return word && word == wordOfHalf(halves.second, 1);
  }

  /// A block may come before by several edges: they bring the same value.
  void addWord(PHINode &word, llvm::BasicBlock *from, Halves halves) {
    const int known = word.getBasicBlockIndex(from);
    word.addIncoming(known >= 0 ? word.getIncomingValue(static_cast<unsigned>(known)) : wordAt(from, halves), from);
  }

  Value *wordAt(llvm::BasicBlock *end, Halves halves) {
    llvm::Type *i32 = llvm::Type::getInt32Ty(end->getContext());
    if (llvm::isa<llvm::PoisonValue>(halves.first) && llvm::isa<llvm::PoisonValue>(halves.second))
      return llvm::PoisonValue::get(i32);
    const auto lower = bitsOf(halves.first), upper = bitsOf(halves.second);
    if (lower && upper)
      return llvm::ConstantInt::get(i32, *lower | *upper << 16);
    if (Value *word = wordOfHalf(halves.first, 0))
      return word->getType() == i32 ? word : llvm::IRBuilder<>(end->getTerminator()).CreateBitCast(word, i32);
    return words.lookup({phiOf(halves.first), phiOf(halves.second)});
  }

  llvm::DenseMap<Phis, PHINode *> words;
};

void carryWords(llvm::Function &function) {
  llvm::SmallVector<llvm::Instruction *> joined;
  for (llvm::Instruction &i : llvm::instructions(function))
    if (llvm::isa<llvm::InsertElementInst>(i) && isPairOfHalves(i.getType()))
      joined.push_back(&i);
  Words words;
  llvm::SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::Instruction *i : joined) {
    Value *lower, *upper;
    if (!match(i,
               m_InsertElt(m_InsertElt(m_Undef(), m_Value(lower), m_SpecificInt(0)), m_Value(upper), m_SpecificInt(1))))
      continue;
    Value *word = words.make({lower, upper});
    if (!word)
      continue;
    i->replaceAllUsesWith(llvm::IRBuilder<>(i).CreateBitCast(word, i->getType()));
    dead.push_back(i);
  }
  llvm::RecursivelyDeleteTriviallyDeadInstructions(dead);
  // Phis of halves may use each other in a cycle and nothing else use them.
  for (llvm::BasicBlock &block : function)
    llvm::DeleteDeadPHIs(&block);
}

} // namespace

void carryWords(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      carryWords(function);
}

} // namespace kiln
