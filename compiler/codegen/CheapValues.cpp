#include "compiler/codegen/CheapValues.h"
#include "compiler/codegen/Purposes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace kiln {
namespace {

/// The value that a cheap instruction combines with a constant; null for others.
llvm::Value *baseOf(const llvm::Instruction &i) {
  if (const auto *gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i))
    return gep->hasAllConstantIndices() ? gep->getOperand(0) : nullptr;
  if (!i.getType()->isIntegerTy(32))
    return nullptr;
  switch (i.getOpcode()) {
  case llvm::Instruction::Add:
  case llvm::Instruction::Sub:
  case llvm::Instruction::Or:
  case llvm::Instruction::Xor:
  case llvm::Instruction::And:
    return llvm::isa<llvm::Constant>(i.getOperand(1)) ? i.getOperand(0) : nullptr;
  default:
    return nullptr;
  }
}

void computeWhereUsed(llvm::Function &function) {
  // Users come before what they use, so that a chain moves as a whole.
  llvm::SmallVector<llvm::Instruction *> order;
  for (llvm::BasicBlock *block : llvm::depth_first(&function))
    for (llvm::Instruction &i : *block)
      order.push_back(&i);
  llvm::DenseMap<llvm::Value *, unsigned> family;
  for (llvm::Instruction *i : order)
    if (llvm::Value *base = baseOf(*i))
      ++family[base];
  for (llvm::Instruction *i : llvm::reverse(order)) {
    constexpr unsigned several = 3; // else one register takes the place of another
    llvm::Value *base = baseOf(*i);
    if (!base || llvm::isa<llvm::Constant>(base) || family[base] < several)
      continue;
    llvm::DenseMap<llvm::BasicBlock *, llvm::SmallVector<llvm::Use *, 4>> inside;
    llvm::SmallVector<llvm::BasicBlock *> blocks; // in a fixed order
    for (llvm::Use &use : i->uses()) {
      auto *user = llvm::cast<llvm::Instruction>(use.getUser());
      llvm::BasicBlock *block = user->getParent();
      if (llvm::isa<llvm::PHINode>(user) || block == i->getParent())
        continue;
      auto &uses = inside[block];
      if (uses.empty())
        blocks.push_back(block);
      uses.push_back(&use);
    }
    for (llvm::BasicBlock *block : blocks) {
      auto &uses = inside[block];
      llvm::Instruction *first = nullptr;
      for (llvm::Use *use : uses)
        if (auto *user = llvm::cast<llvm::Instruction>(use->getUser()); !first || user->comesBefore(first))
          first = user;
      llvm::Instruction *again = i->clone();
      again->insertBefore(first->getIterator());
      again->setDebugLoc(first->getDebugLoc());
      for (llvm::Use *use : uses)
        use->set(again);
    }
    if (i->use_empty())
      i->eraseFromParent();
  }
}

} // namespace

void computeCheapValuesWhereUsed(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && multipliesMatrices(function))
      computeWhereUsed(function);
}

} // namespace kiln
