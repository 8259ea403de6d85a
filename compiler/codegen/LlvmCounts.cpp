#include "compiler/codegen/LlvmCounts.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/NVPTXAddrSpace.h"

namespace kiln {
namespace {

/// One row a kind of barrier: how intrinsics and instructions of inline assembly start that are one.
struct BarrierRow {
  llvm::StringRef prefix;
  unsigned LlvmCounts::*count;
};
const BarrierRow intrinsicRows[] = {
    {"llvm.nvvm.barrier.cluster.", &LlvmCounts::clusterBarriers},
    {"llvm.nvvm.bar.warp.sync", &LlvmCounts::warpBarriers},
    {"llvm.nvvm.barrier", &LlvmCounts::blockBarriers},
    {"llvm.nvvm.bar.", &LlvmCounts::blockBarriers},
};
const BarrierRow assemblyRows[] = {
    {"barrier.cluster.", &LlvmCounts::clusterBarriers},
    {"bar.warp.sync", &LlvmCounts::warpBarriers},
    {"barrier.", &LlvmCounts::blockBarriers},
    {"bar.", &LlvmCounts::blockBarriers},
};

} // namespace

LlvmCounts countLlvm(const llvm::Module &module) {
  LlvmCounts counts;
  for (const llvm::GlobalVariable &global : module.globals())
    counts.sharedObjects += global.getAddressSpace() == llvm::NVPTXAS::ADDRESS_SPACE_SHARED;
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function)) {
      const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call)
        continue;
      if (call->isInlineAsm()) {
        llvm::StringRef text = llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString();
        llvm::SmallVector<llvm::StringRef> statements;
        text.split(statements, ';');
        for (llvm::StringRef statement : statements)
          for (const BarrierRow &row : assemblyRows)
            if (statement.ltrim(" \t\r\n{}").starts_with(row.prefix)) {
              ++(counts.*row.count);
              break;
            }
        continue;
      }
      const llvm::Function *callee = call->getCalledFunction();
      if (!callee)
        continue;
      for (const BarrierRow &row : intrinsicRows)
        if (callee->getName().starts_with(row.prefix)) {
          ++(counts.*row.count);
          break;
        }
    }
  return counts;
}

} // namespace kiln
