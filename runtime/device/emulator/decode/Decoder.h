//===- Decoder.h - From a PTX module to a Program -------------------------===//
//
// Decodes one entry and every function that it reaches.  Names are resolved by lexical scope, every operand becomes a
// slot, opcodes are matched against the instruction table, and what an operand needs beforehand (a negated predicate,
// the address of a local variable, %clock) becomes an op of its own before the instruction.
//
// Family files with rows of operands "custom" see a DecodeContext: its members return false after reporting an error,
// and a decoder returns false then.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODER_H

#include "runtime/device/emulator/decode/Program.h"
#include "runtime/device/emulator/decode/RowMatch.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln::emulator {

/// Where the loader put a .global or .const variable of the module.
struct PlacedVariable {
  std::uint64_t address = 0, bytes = 0;
  bool constant = false;
};
using PlacedVariables = std::unordered_map<std::string_view, PlacedVariable>;

struct DecodeOptions {
  const Target *target = nullptr;
  const InstructionTable *table = nullptr;
  const RowIndex *rows = nullptr;
  const PlacedVariables *variables = nullptr;
};

/// Decodes `module.functions[entry]`.  A failure lists up to eight errors, each "FILE:LINE: ...".
Result<std::unique_ptr<Program>> decodeEntry(const ptx::Module &module, std::size_t entry,
                                             const DecodeOptions &options);

/// The code address that a program sees for `module.functions[index]`.
inline std::uint64_t codeAddress(std::size_t index) {
  return windowBase(CodeWindow) + 16 * (index + 1);
}

/// Parameters at their natural offsets; used for kernels and for the frames of functions.
std::uint64_t variableBytes(const ptx::Variable &variable);
std::uint32_t variableAlign(const ptx::Variable &variable);

/// How an op ends: what the control-flow graph is made of.
struct FlowEdge {
  using Kind = FlowKind;
  Kind kind = Kind::Next;
  bool guarded = false;
  bool visible = false;               ///< see ProgramEdge
  bool observes = false;              ///< its result depends on what other threads do
  std::uint32_t target = 0;           ///< Branch: label; after the function is decoded: op
  std::vector<std::uint32_t> targets; ///< IndexedBranch
};

/// A slot read or written by an op.
struct SlotAccess {
  std::uint32_t op = 0;
  Slot slot = noSlot;
  std::uint8_t units = 1;           ///< pieces of 128 bytes
  bool write = false, whole = true; ///< whole: an unguarded write
};

/// What a name means in a scope.
struct Symbol {
  enum class Kind : std::uint8_t {
    None,
    Register,
    Global,
    Const,
    Shared,
    DynamicShared,
    Frame,
    EntryParameter,
    Function,
    Label,
    List
  };
  Kind kind = Kind::None;
  ptx::Type type = ptx::Type::None;
  std::uint8_t vector = 1;   ///< Register: components of a .v2 / .v4 register
  std::uint8_t bytes = 4;    ///< Register: of the declared type
  Slot slot = noSlot;        ///< Register
  std::uint64_t address = 0; ///< Global, Const: address; Shared, Frame, EntryParameter: offset; Function, Label: index
  std::uint64_t size = 0;
  const ptx::TargetList *list = nullptr;
};

struct FlowGraph; // ControlFlow.h

class DecodeContext {
public:
  DecodeContext(const ptx::Module &module, const DecodeOptions &options);
  ~DecodeContext();
  Result<std::unique_ptr<Program>> run(std::size_t entry);

  // --- for family files ---------------------------------------------------
  const Target &target() const { return *options.target; }
  bool inEntry() const;
  std::uint32_t parameterBytes() const { return program->info.parameterBytes; } ///< of the kernel
  /// "FILE:LINE", or "SOURCE:LINE (FILE:LINE)" where a .loc says of what source the instruction is.
  std::string placeOf(const ptx::Instruction &instruction) const;
  /// Reports "PLACE: OPCODE: message" and returns false.
  bool error(const ptx::Instruction &instruction, std::string message);
  bool unsupported(const ptx::Instruction &instruction, std::string message);

  /// The slot of a source operand whose value has `type`: a register, a special register, an immediate, an address.
  bool source(const ptx::Instruction &instruction, const ptx::Operand &operand, ptx::Type type, Slot &slot);
  /// The slot of a destination with at least the width of `type`; `registerBytes` is the declared width (4 for `_`).
  bool destination(const ptx::Instruction &instruction, const ptx::Operand &operand, ptx::Type type, Slot &slot,
                   unsigned *registerBytes = nullptr, bool mayBeWider = false);
  /// The slots of `count` registers in braces (one may stand without), read or written; `name` is for the message.
  bool registers(const ptx::Instruction &instruction, const ptx::Operand &operand, std::string_view name,
                 unsigned count, ptx::Type type, bool written, Slot *slots);
  bool predicate(const ptx::Instruction &instruction, const ptx::Operand &operand, Slot &slot);
  /// Declared bytes of a register operand, 0 if it is none.
  unsigned registerBytes(const ptx::Operand &operand);
  /// A slot that holds `value` in every lane; isShared: the address of an offset in the block's shared memory.
  Slot constant(std::uint64_t low, unsigned bytes, std::uint64_t high = 0, bool isShared = false);
  /// A scratch slot that lives until the next instruction.
  Slot temporary(unsigned bytes);
  /// Emits an op before the current instruction's.
  Op &emitBefore(Handler run);
  Handler internalHandler(std::string_view name);
  /// Keeps a list of slots; its index goes to Op::aux.
  std::uint32_t addPool(std::span<const std::uint32_t> slots);
  /// Keeps numbers that are no slots; a list of slots added next follows them.
  std::uint32_t addNumbers(std::span<const std::uint32_t> numbers);
  void read(Slot slot, unsigned bytes);
  void wrote(Slot slot, unsigned bytes);

  /// A decoded memory operand: address = s[base] + displacement in `space`.
  struct Address {
    Slot base = noSlot;
    bool base32 = false; ///< the base register has 32 bits
    std::int64_t displacement = 0;
    ptx::Space space = ptx::Space::Generic;
    bool fixed = false; ///< a kernel parameter: `offset` bytes into the parameters
    std::uint64_t offset = 0;
  };
  /// `space` as the instruction names it.  A .param address becomes Param (of the kernel) or Local (of a function's
  /// frame).
  bool address(const ptx::Instruction &instruction, const ptx::Operand &operand, ptx::Space space, Address &out);
  std::uint32_t newCache() { return program->numCaches++; }

  bool label(const ptx::Instruction &instruction, const ptx::Operand &operand, std::uint32_t &index);
  const ptx::TargetList *targetList(const ptx::Operand &operand);
  FlowEdge &flow() { return currentFlow; }
  /// Fills aux with a CallSite.
  bool call(const ptx::Instruction &instruction, Op &op);

  /// The results of the kernel depend on the order in which blocks run; `seesOthers`: and on that they do.
  void needsOrder(bool seesOthers = true) {
    program->inOrder = true;
    program->seesOthers |= seesOthers;
  }
  /// The same, if somebody reads `slot`.
  void needsOrderIfRead(Slot slot) { orderedResults.push_back(slot); }
  void usesCluster() { program->usesCluster = true; }
  /// The instruction is asynchronous; through the async proxy, unless it is cp.async or works on an mbarrier only.
  void usesAsync(bool asyncProxy) {
    program->usesAsync = true;
    program->usesAsyncProxy |= asyncProxy;
  }
  WgmmaProgram &wgmma(); ///< of a program that has wgmma from now on
  /// Later scopes must not use the slot again: an instruction works on it for longer.
  void keepForScope(Slot slot);
  void usesRegisterPool() { program->usesRegisterPool = true; }
  void usesDynamicStack() { dynamicStack = true; }

  const Symbol *find(std::string_view name);

private:
  struct ScopeNames;
  struct FunctionState;

  // Decoder.cpp
  bool decodeFunction(std::size_t moduleIndex);
  bool decodeScope(const ptx::Scope &scope, unsigned depth);
  bool decodeInstruction(const ptx::Instruction &instruction);
  bool applySignature(const ptx::Instruction &instruction, RowMatch &match, Op &op);
  void finishFunction(FunctionInfo &info);
  void placeRegisters(FunctionInfo &info, const FlowGraph &graph);
  void finish();

  // WgmmaDecode.cpp
  void guardWgmma(const FunctionInfo &info, const FlowGraph &graph);
  void keepResultsUntilWaits(const FunctionInfo &info, const FlowGraph &graph);

  // DecodeScopes.cpp
  bool declare(const ptx::Variable &variable);
  void openScope(const ptx::Scope &scope);
  void closeScope();
  Slot allocate(unsigned bytes, bool fromScope);
  Symbol *findRegisterInRange(ScopeNames &scope, std::string_view name);
  std::uint64_t placeShared(std::string_view name, std::uint64_t bytes, std::uint32_t align);
  std::uint32_t placeFrame(std::uint64_t bytes, std::uint32_t align);
  Symbol moduleSymbol(std::string_view name);
  std::uint32_t functionFor(std::size_t moduleIndex);
  bool layOutParameters(FunctionInfo &info, const ptx::Function &function);

  // DecodeOperands.cpp
  bool specialRegister(const ptx::Instruction &instruction, std::string_view name, ptx::Type type, Slot &slot,
                       bool &found);
  bool immediate(const ptx::Instruction &instruction, const ptx::Operand &operand, ptx::Type type, Slot &slot);
  bool symbolAddress(const ptx::Instruction &instruction, const Symbol &symbol, const ptx::Operand &operand,
                     ptx::Type type, Slot &slot);

  const ptx::Module &module;
  DecodeOptions options;
  std::unique_ptr<Program> program;
  std::vector<std::string> errors;
  bool anyUnsupported = true;
  std::unique_ptr<FunctionState> state;                    ///< of the function being decoded
  std::vector<std::pair<std::size_t, std::uint32_t>> work; ///< functions still to decode: module index, program index
  std::unordered_map<std::size_t, std::uint32_t> functionIndex;
  std::unordered_map<std::string_view, std::size_t> functionByName, variableByName;
  std::unordered_map<std::string_view, Symbol> sharedSymbols;
  std::unordered_map<std::string, Slot> constantSlots;
  std::unordered_map<unsigned, Slot> specialSlots;
  std::vector<std::pair<std::size_t, std::uint64_t>> dynamicConstants; ///< index into constants, addend
  std::vector<std::size_t> dynamicNames;                               ///< indices into sharedNames
  std::unordered_map<std::string_view, RowMatch> matches;
  std::vector<FlowEdge> flows; ///< one an op
  FlowEdge currentFlow;
  std::vector<SlotAccess> accesses;
  std::vector<char> poolHoldsSlot; ///< by entry of the pool
  std::size_t poolDone = 0;        ///< entries of functions that are finished
  std::vector<Slot> orderedResults;
  std::vector<SlotAccess> pending; ///< of the op being decoded
  std::uint32_t dynamicAlign = 16;
  bool dynamicStack = false, indirectCalls = false;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODER_H
