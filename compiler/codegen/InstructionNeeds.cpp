#include "compiler/codegen/InstructionNeeds.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <algorithm>

namespace kiln {
namespace {

// What a row may name.
constexpr std::optional<Capability> None = std::nullopt;
#define KILN_CAPABILITY(id, text, isa) [[maybe_unused]] constexpr std::optional<Capability> id = Capability::id;
#include "compiler/target/Capabilities.def"

constexpr InstructionNeed needRows[] = {
#define KILN_NEED(prefix, capability, isa) {prefix, capability, isa},
#include "compiler/codegen/InstructionNeeds.def"
};

/// The mnemonics of inline assembly: what starts a statement after labels, braces and predicates.
void forEachMnemonic(llvm::StringRef text, llvm::function_ref<void(llvm::StringRef)> use) {
  llvm::SmallVector<llvm::StringRef> statements;
  text.split(statements, ';');
  for (llvm::StringRef statement : statements) {
    statement = statement.ltrim(" \t\r\n{}");
    if (statement.starts_with("@"))
      statement = statement.drop_while([](char c) { return !llvm::isSpace(c); }).ltrim();
    if (llvm::StringRef mnemonic = statement.take_until([](char c) { return llvm::isSpace(c); }); !mnemonic.empty())
      use(mnemonic);
  }
}

} // namespace

const InstructionNeed *findNeed(std::string_view name) {
  const InstructionNeed *best = nullptr;
  for (const InstructionNeed &row : needRows)
    if (name.starts_with(row.prefix) && (!best || row.prefix.size() > best->prefix.size()))
      best = &row;
  return best;
}

unsigned
requiredIsa(const llvm::Module &module, const Target &target,
            llvm::function_ref<void(const llvm::Instruction &, std::string_view name, const InstructionNeed &)> lacks) {
  unsigned isa = target.ptxIsa;
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function)) {
      const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call)
        continue;
      auto look = [&](llvm::StringRef name) {
        const InstructionNeed *need = findNeed(name);
        if (!need)
          return;
        if (need->capability && !target.has(*need->capability))
          lacks(instruction, name, *need);
        isa = std::max(isa, need->isa ? need->isa : capabilityPtxIsa(*need->capability));
      };
      if (call->isInlineAsm())
        forEachMnemonic(llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString(), look);
      else if (const llvm::Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic())
        look(callee->getName());
    }
  return isa;
}

} // namespace kiln
