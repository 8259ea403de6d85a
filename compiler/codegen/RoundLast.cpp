#include "compiler/codegen/RoundLast.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln {
namespace {

/// The rounding to 16 bits that a value of 16 bits is, of whatever type; null if it is none.
llvm::FPTruncInst *roundingOf(llvm::Value *half) {
  while (auto *same = llvm::dyn_cast<llvm::BitCastInst>(half))
    half = same->getOperand(0);
  auto *rounding = llvm::dyn_cast<llvm::FPTruncInst>(half);
  const bool isScalar = rounding && (rounding->getType()->isHalfTy() || rounding->getType()->isBFloatTy());
  return isScalar && rounding->getSrcTy()->isFloatTy() ? rounding : nullptr;
}

/// The f32 that rounds to this arm of a choice, whose other arm is rounded to `type`; null if there is none at hand.
llvm::Value *beforeRounding(llvm::Value *arm, llvm::Type *type) {
  if (llvm::FPTruncInst *rounding = roundingOf(arm))
    return rounding->getType() == type ? rounding->getOperand(0) : nullptr;
  llvm::APInt bits(16, 0);
  if (auto *integer = llvm::dyn_cast<llvm::ConstantInt>(arm))
    bits = integer->getValue();
  else if (auto *number = llvm::dyn_cast<llvm::ConstantFP>(arm))
    bits = number->getValueAPF().bitcastToAPInt();
  else
    return nullptr;
  llvm::APFloat value(type->getFltSemantics(), bits);
  if (value.isNaN())
    return nullptr;
  bool losesInfo = false; // never: f32 holds every value of 16 bits
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return llvm::ConstantFP::get(llvm::Type::getFloatTy(type->getContext()), value);
}

void roundAfter(llvm::SelectInst &choice, const llvm::LoopInfo &loops) {
  if (choice.getType()->isVectorTy() || choice.getType()->getPrimitiveSizeInBits() != 16)
    return;
  llvm::Value *const arms[] = {choice.getTrueValue(), choice.getFalseValue()};
  if (arms[0] == arms[1])
    return;
  llvm::FPTruncInst *rounding = roundingOf(arms[0]);
  rounding = rounding ? rounding : roundingOf(arms[1]);
  if (!rounding)
    return;
  for (llvm::Value *arm : arms) // what is rounded once before a loop would be rounded in every round
    if (llvm::FPTruncInst *r = roundingOf(arm);
        r && loops.getLoopDepth(r->getParent()) < loops.getLoopDepth(choice.getParent()))
      return;
  llvm::Type *type = rounding->getType();
  llvm::Value *yes = beforeRounding(arms[0], type), *no = beforeRounding(arms[1], type);
  if (!yes || !no)
    return;
  const llvm::WeakTrackingVH unused[] = {arms[0], arms[1]};
  llvm::IRBuilder<> b(&choice);
  llvm::Value *rounded = b.CreateFPTrunc(b.CreateSelect(choice.getCondition(), yes, no), type);
  choice.replaceAllUsesWith(b.CreateBitCast(rounded, choice.getType()));
  choice.eraseFromParent();
  for (const llvm::WeakTrackingVH &arm : unused) // one may be made of the other
    if (llvm::Value *value = arm)
      llvm::RecursivelyDeleteTriviallyDeadInstructions(value);
}

} // namespace

void roundAfterChoices(llvm::Module &module) {
  for (llvm::Function &function : module) {
    llvm::SmallVector<llvm::SelectInst *> choices;
    for (llvm::Instruction &i : llvm::instructions(function))
      if (auto *choice = llvm::dyn_cast<llvm::SelectInst>(&i))
        choices.push_back(choice);
    if (choices.empty())
      continue;
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    for (llvm::SelectInst *choice : choices)
      roundAfter(*choice, loops);
  }
}

} // namespace kiln
