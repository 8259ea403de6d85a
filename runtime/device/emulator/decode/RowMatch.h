//===- RowMatch.h - Which row an opcode means -----------------------------===//
//
// Parses the strings of the instruction table once and matches opcodes as written against them.  A failure says what is
// wrong: an unknown name with the nearest ones, a modifier or type with the forms that exist, or the first target that
// has the form.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_ROWMATCH_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_ROWMATCH_H

#include "runtime/device/emulator/decode/InstructionTable.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln::emulator {

/// One operand of a signature.
struct OperandSpec {
  enum class Kind : std::uint8_t { Value, Predicate, Immediate, MemberMask };
  Kind kind = Kind::Value;
  bool destination = false;
  bool pairPredicate = false; ///< "=0|p"
  bool optional = false;
  std::int8_t typeIndex = -1; ///< Value: types[typeIndex], or `type` if negative
  bool wide = false;          ///< of double width
  ptx::Type type = ptx::Type::None;
};

struct PreparedRow {
  struct Group {
    std::vector<std::string_view> names;
    bool optional = false;
  };
  const Row *row = nullptr;
  unsigned words = 1; ///< of the opcode that the mnemonic covers
  std::vector<Group> groups;
  bool anyModifier = false;
  std::vector<std::vector<ptx::Type>> types;
  std::vector<OperandSpec> operands;
  bool custom = false;
};

struct RowMatch {
  const PreparedRow *row = nullptr;
  Form form; ///< without the operands' register widths
};

class RowIndex {
public:
  explicit RowIndex(const InstructionTable &table);

  /// The row of `opcode` on `target`; the failure's message starts with the opcode.
  Result<RowMatch> match(std::string_view opcode, const Target &target) const;

  /// A row of the decoder's own ("%not"); nullptr if it does not exist.
  const Row *internal(std::string_view mnemonic) const;

private:
  Status explain(std::string_view opcode, const std::vector<PreparedRow> &rows) const;

  std::unordered_map<std::string_view, std::vector<PreparedRow>> byWord; ///< by the first word of the mnemonic
};

/// The C++ type whose values a register of a double-width operand has: u16 -> u32, s32 -> s64.
ptx::Type doubleWidth(ptx::Type type);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_ROWMATCH_H
