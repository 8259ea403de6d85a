//===- InstructionNeeds.h - What a module's instructions need -------------===//
//
// LLVM ends the process when it meets an instruction that the target or the PTX ISA lacks.  This looks first: every
// intrinsic and every instruction of inline assembly that a row of InstructionNeeds.def names.  The same rows give the
// lowest PTX ISA that can say the module.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_INSTRUCTIONNEEDS_H
#define KILN_CODEGEN_INSTRUCTIONNEEDS_H

#include "compiler/target/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string_view>

namespace llvm {
class Instruction;
class Module;
} // namespace llvm

namespace kiln {

struct InstructionNeed {
  std::string_view prefix;
  std::optional<Capability> capability;
  unsigned isa = 0; ///< 78 for 7.8; 0: no more than the target's
};

/// The row for an intrinsic or an instruction of inline assembly, or null.
const InstructionNeed *findNeed(std::string_view name);

/// The lowest PTX ISA for `module` on `target`.  `lacks` is called for every need that the target does not meet.
unsigned
requiredIsa(const llvm::Module &module, const Target &target,
            llvm::function_ref<void(const llvm::Instruction &, std::string_view name, const InstructionNeed &)> lacks);

} // namespace kiln

#endif // KILN_CODEGEN_INSTRUCTIONNEEDS_H
