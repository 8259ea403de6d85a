#include "compiler/codegen/BesideLoops.h"
#include "compiler/codegen/Purposes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace kiln {
namespace {

/// No value is worth more instructions.
constexpr unsigned mostOperations = 48;

/// PTX's name of a special register that such a call reads; empty for others.
llvm::StringRef specialRegister(const llvm::Instruction &i) {
  const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  switch (call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic) {
  case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return "%tid.x";
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return "%ctaid.x";
  default:
    return {};
  }
}

bool isCheap(const llvm::Instruction &i) {
  switch (i.getOpcode()) {
  case llvm::Instruction::Call:
    return llvm::isa<llvm::MinMaxIntrinsic>(i);
  case llvm::Instruction::Add:
  case llvm::Instruction::Sub:
  case llvm::Instruction::Mul:
  case llvm::Instruction::Shl:
  case llvm::Instruction::LShr:
  case llvm::Instruction::AShr:
  case llvm::Instruction::And:
  case llvm::Instruction::Or:
  case llvm::Instruction::Xor:
  case llvm::Instruction::ZExt:
  case llvm::Instruction::SExt:
  case llvm::Instruction::Trunc:
  case llvm::Instruction::ICmp:
  case llvm::Instruction::Select:
  case llvm::Instruction::Freeze: // frozen twice, a poison may differ: of numbers that overflow, which no address does
  case llvm::Instruction::GetElementPtr:
    return !i.getType()->isVectorTy();
  default:
    return false;
  }
}

bool divides(const llvm::Instruction &i) {
  switch (i.getOpcode()) {
  case llvm::Instruction::SDiv:
  case llvm::Instruction::UDiv:
  case llvm::Instruction::SRem:
  case llvm::Instruction::URem:
    return i.getType()->isIntegerTy(32);
  default:
    return false;
  }
}

/// The same for every thread of a block: such values have registers of their own.
bool isUniform(const llvm::Value *v, unsigned depth = 0) {
  const auto *i = llvm::dyn_cast<llvm::Instruction>(v);
  if (!i)
    return true;
  constexpr unsigned deepest = 12;
  if (const llvm::StringRef name = specialRegister(*i); !name.empty())
    return name != "%tid.x";
  const bool computes = isCheap(*i) || divides(*i);
  return computes && depth < deepest &&
         llvm::all_of(i->operands(), [&](const llvm::Value *o) { return isUniform(o, depth + 1); });
}

/// The block that needs the value: of a phi the one that it comes from.
const llvm::BasicBlock *placeOf(const llvm::Use &use) {
  const auto *user = llvm::cast<llvm::Instruction>(use.getUser());
  const auto *phi = llvm::dyn_cast<llvm::PHINode>(user);
  return phi ? phi->getIncomingBlock(use) : user->getParent();
}

/// One loop of products, and the places outside of its main path: the code after it, and blocks in it that some rounds
/// skip.  Each is a block and what it dominates.
class Beside {
public:
  Beside(const llvm::Loop &loop, const llvm::DominatorTree &tree) : loop(loop), tree(tree) {
    copiesWhole = llvm::any_of(
        loop.blocks(), [](const llvm::BasicBlock *block) { return hasPurpose(*block, tile_gpu::purpose::wholeCopy); });
    for (llvm::BasicBlock *block : loop.blocks())
      if (!runsAlways(*block) && !isBeside(*block) && !isMainPath(*block))
        places.push_back(block);
    // After it: where the path that skips the loop, taken for no rounds, joins the one through it.
    llvm::BasicBlock *exit = loop.getUniqueExitBlock();
    llvm::SmallPtrSet<llvm::BasicBlock *, 8> passed; // empty blocks may form a cycle
    while (exit && exit->getFirstNonPHIIt() == exit->getTerminator()->getIterator() && exit->getSingleSuccessor() &&
           passed.insert(exit).second)
      exit = exit->getSingleSuccessor();
    if (exit)
      places.push_back(exit);
  }

  void run() {
    for (llvm::BasicBlock *place : places)
      at(*place);
  }

private:
  bool runsAlways(const llvm::BasicBlock &block) const {
    llvm::SmallVector<llvm::BasicBlock *> latches;
    loop.getLoopLatches(latches);
    return llvm::all_of(latches, [&](const llvm::BasicBlock *latch) { return tree.dominates(&block, latch); });
  }
  bool isBeside(const llvm::BasicBlock &block) const {
    return llvm::any_of(places, [&](const llvm::BasicBlock *place) { return tree.dominates(place, &block); });
  }
  /// Most rounds multiply, and copy whole tiles for a later round; if the loop does copy whole ones anywhere.
  bool isMainPath(const llvm::BasicBlock &head) const {
    return llvm::any_of(loop.blocks(), [&](const llvm::BasicBlock *block) {
      return tree.dominates(&head, block) &&
             (multipliesMatrices(*block) || hasPurpose(*block, tile_gpu::purpose::wholeCopy) ||
              (!copiesWhole && hasPurpose(*block, tile_gpu::purpose::partialCopy)));
    });
  }

  /// Computed before the loop; its main path does not use it.
  bool isKept(const llvm::Instruction &i) const {
    return !loop.contains(&i) && tree.dominates(i.getParent(), loop.getHeader()) &&
           llvm::none_of(i.uses(),
                         [&](const llvm::Use &use) { return loop.contains(placeOf(use)) && !isBeside(*placeOf(use)); });
  }

  bool isLeaf(const llvm::Instruction &i) const { return !behind && isUniform(&i); }

  void at(llvm::BasicBlock &place) {
    behind = !loop.contains(&place);
    made.clear();
    last = nullptr;
    llvm::SetVector<llvm::Instruction *> wanted;
    for (llvm::BasicBlock &block : *place.getParent())
      if (tree.dominates(&place, &block))
        for (llvm::Instruction &i : block)
          for (const llvm::Use &use : i.operands())
            if (auto *from = llvm::dyn_cast<llvm::Instruction>(use); from && tree.dominates(&place, placeOf(use)) &&
                                                                     tree.dominates(from->getParent(), &place) &&
                                                                     isKept(*from) && !isLeaf(*from))
              wanted.insert(from);
    // Memory is not read again.  What was loaded may stay alive in place of what is computed from it, if that takes
    // fewer registers.
    llvm::SmallVector<llvm::Instruction *> fromMemory;
    llvm::DenseSet<const llvm::Instruction *> read;
    unsigned saved = 0, taken = 0;
    for (llvm::Instruction *i : wanted) {
      Following f;
      if (llvm::isa<llvm::LoadInst>(i) || !follows(*i, f))
        continue;
      if (f.loads.empty()) {
        replace(*i, place);
        continue;
      }
      fromMemory.push_back(i);
      saved += registersOf(*i);
      for (const llvm::Instruction *load : f.loads)
        if (read.insert(load).second && !wanted.contains(load))
          taken += registersOf(*load);
    }
    if (taken < saved)
      for (llvm::Instruction *i : fromMemory)
        replace(*i, place);
  }

  static unsigned registersOf(const llvm::Instruction &i) {
    const llvm::TypeSize bits = i.getModule()->getDataLayout().getTypeSizeInBits(i.getType());
    return static_cast<unsigned>((bits.getFixedValue() + 31) / 32);
  }

  /// How a value is computed from others.
  struct Following {
    unsigned operations = 0;
    llvm::DenseSet<const llvm::Instruction *> seen;
    llvm::SmallVector<const llvm::Instruction *, 4> loads;
  };

  /// Whether few operations compute the value from what is alive anyway and what was loaded.
  bool follows(const llvm::Instruction &i, Following &f) const {
    if (!f.seen.insert(&i).second || !specialRegister(i).empty())
      return true;
    if (isRead(i)) {
      f.loads.push_back(&i);
      return true;
    }
    if (!(isCheap(i) || (behind && divides(i))) || ++f.operations > mostOperations)
      return false;
    return llvm::all_of(i.operands(), [&](const llvm::Value *v) {
      const auto *from = llvm::dyn_cast<llvm::Instruction>(v);
      return !from || !isKept(*from) || isLeaf(*from) || follows(*from, f);
    });
  }

  static bool isRead(const llvm::Instruction &i) { return llvm::isa<llvm::LoadInst>(i) && !i.getType()->isVectorTy(); }

  llvm::Instruction *again(llvm::Instruction &i, llvm::BasicBlock &place) {
    if (const auto known = made.find(&i); known != made.end())
      return known->second;
    llvm::SmallVector<llvm::Value *> operands;
    for (llvm::Value *v : i.operands()) {
      auto *from = llvm::dyn_cast<llvm::Instruction>(v);
      operands.push_back(from && specialRegister(i).empty() && isKept(*from) && !isLeaf(*from) && !isRead(*from)
                             ? again(*from, place)
                             : v);
    }
    const auto here = last ? std::next(last->getIterator()) : place.getFirstInsertionPt();
    if (const llvm::StringRef name = specialRegister(i); !name.empty()) {
      auto *type = llvm::FunctionType::get(i.getType(), false);
      last = llvm::CallInst::Create(
          type, llvm::InlineAsm::get(type, "mov.u32 $0, " + name.str() + ";", "=r", /*hasSideEffects=*/true), "", here);
    } else {
      last = i.clone();
      for (auto [number, v] : llvm::enumerate(operands))
        last->setOperand(static_cast<unsigned>(number), v);
      last->insertBefore(here);
    }
    last->setDebugLoc(i.getDebugLoc());
    made[&i] = last;
    return last;
  }

  void replace(llvm::Instruction &i, llvm::BasicBlock &place) {
    llvm::Instruction *const copy = again(i, place);
    i.replaceUsesWithIf(copy, [&](const llvm::Use &use) {
      return tree.dominates(&place, placeOf(use)) &&
             llvm::none_of(made, [&](const auto &entry) { return entry.second == use.getUser(); });
    });
  }

  const llvm::Loop &loop;
  const llvm::DominatorTree &tree;
  llvm::SmallVector<llvm::BasicBlock *> places;
  llvm::DenseMap<llvm::Instruction *, llvm::Instruction *> made; ///< at the current place
  bool copiesWhole;
  bool behind = false;
  llvm::Instruction *last = nullptr; ///< of the copies
};

} // namespace

void recomputeBesideLoops(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || !multipliesMatrices(function))
      continue;
    const llvm::DominatorTree tree(function);
    const llvm::LoopInfo loops(tree);
    for (const llvm::Loop *loop : loops) {
      if (llvm::none_of(loop->blocks(), [](const llvm::BasicBlock *b) { return multipliesMatrices(*b); }))
        continue;
      Beside(*loop, tree).run();
    }
  }
}

} // namespace kiln
