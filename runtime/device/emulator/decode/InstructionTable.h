//===- InstructionTable.h - One row an instruction ------------------------===//
//
// Everything that the decoder knows of an instruction is one Row in a family file of insn/: mnemonic, modifiers, types,
// operands, first target, and a builder that picks the handler.  Adding an instruction adds a row there, nothing else.
//
// Family files are compiled once for each CPU level (LevelBegin.h), each level in its own namespace; `instructionTable`
// picks one level's rows.
//
// Grammar of the strings:
//  modifiers  groups separated by spaces, in any order in the source; "rn|rz|rm|rp" alternatives; a final "?" marks
//             an optional one.  "" = none.  Every group takes at most one modifier.  "*" = any other modifiers are
//             ignored (cache hints).
//  types      alternatives separated by "|" of the instruction's types in order of writing: "u32|s32" or "f32.s32".
//             "" = no type modifier.
//  operands   separated by spaces.  "=" marks a destination.  "0", "1": a value of types[0], types[1]; "w0": of double
//             width; "u32", "b64", "f32", ..: of that type; "p": a predicate (a source may be negated in the text).
//             "=0|p": a destination with an optional predicate after "|" (slot d2, the trash slot if absent).
//             "i": an integer immediate -> Op::imm.  A final "?" = may be absent (the slot is noSlot).
//             Destinations fill d, d2; sources s[0], s[1], ...  A member mask must be the source s[3]: write "m" and
//             the decoder puts it there. "custom" = the row has its own decoder (memory, control): see Row::decode.
//  mnemonic   usually the first word of the opcode; it may have dots ("barrier.cluster"), the longest match wins.
//             Names that start with "%" are for the decoder's own use.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_INSTRUCTIONTABLE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_INSTRUCTIONTABLE_H

#include "compiler/target/Target.h"
#include "runtime/device/emulator/decode/Op.h"
#include "runtime/device/emulator/matrix/MatrixModel.h"
#include "runtime/ptx/Ast.h"

#include <span>
#include <string>
#include <string_view>

namespace kiln::emulator {

class DecodeContext; // Decoder.h

/// An instruction whose modifiers matched a row.
struct Form {
  static constexpr unsigned maxModifiers = 12, maxTypes = 4, maxOperands = 8;
  std::string_view mnemonic;
  std::string_view modifiers[maxModifiers]; ///< without types, in source order
  unsigned numModifiers = 0;
  ptx::Type types[maxTypes] = {};
  unsigned numTypes = 0;
  unsigned numOperands = 0;
  /// Bytes of each operand's register as declared (0: not a register): ld and cvt may write a wider one.
  unsigned registerBytes[maxOperands] = {};
  const Target *target = nullptr;
  /// Set by a builder: the decoder copies it to Op::flags (a handler that serves several forms reads it there).
  mutable std::uint16_t flags = 0;

  bool has(std::string_view modifier) const {
    for (unsigned i = 0; i < numModifiers; ++i)
      if (modifiers[i] == modifier)
        return true;
    return false;
  }
  ptx::Type type(unsigned i = 0) const { return types[i]; }
};

struct Row {
  const char *mnemonic;
  const char *modifiers;
  const char *types;
  const char *operands;
  /// First architecture that has the form (75: all of Kiln's targets).
  unsigned minSm;
  /// The handler for this form, or nullptr with the reason in `why` (an unsupported combination).
  Handler (*build)(const Form &form, std::string &why);
  OpKind kind = Plain;
  /// Only for operands "custom": fills `op` (run included) from the instruction; false after reporting to the context.
  bool (*decode)(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) = nullptr;
  /// The form also needs a target with suffix 'a' (or a family of capabilities); checked by the decoder.
  bool archSpecific = false;
};

struct WarpState; // Executor.h

/// The rows of one CPU level, family by family, and its dispatch loop.
struct InstructionTable {
  std::string_view level; ///< "x86-64-v3"
  std::span<const std::span<const Row>> families;
  /// Runs the current split of `warp` until it blocks, leaves, meets another split or has used up its slice.
  Next (*run)(WarpState &warp);
  /// The same, but the turn also ends before an observable op once `WarpState::observations` of them are done.
  Next (*runSeeded)(WarpState &warp);
  /// Both for launches that count (Counting.h).
  Next (*runTraced)(WarpState &warp);
  Next (*runSeededTraced)(WarpState &warp);
  MatrixArithmetic matrix;
};

/// The best level that this CPU can run, or the one named; nullptr if `level` is unknown or the CPU lacks it.
const InstructionTable *instructionTable(std::string_view level = {});
/// Levels built into this program, worst first.
std::span<const std::string_view> builtLevels();

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_INSTRUCTIONTABLE_H
