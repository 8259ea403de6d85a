//===- OpTraits.h - What counters and pictures know of an op --------------===//
//
// Read from the text of the instruction, so that a new one needs no code here: a test sees to it that every mnemonic of
// the instruction table has a class.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_OPTRAITS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_OPTRAITS_H

#include "kiln/Counters.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::emulator {

struct Program;

struct OpTraits {
  InstructionClass kind = InstructionClass::Other;
  bool isInstruction = true; ///< false: prepares the operands of the next op
  bool accesses = false;     ///< an access whose address is s[0] + imm in the space that Op::flags name
  AccessKind access = AccessKind::Load;
  bool arrives = false;          ///< at a barrier of the block or cluster
  std::uint8_t bytes = 0;        ///< of a lane's access
  std::uint8_t rowLanes = 0;     ///< ldmatrix, stmatrix: lanes that give a row's address
  std::uint64_t matrixFlops = 0; ///< of a warp; a quarter of a warpgroup's product
};

/// m, n, k of the shape "m16n8k16" among an opcode's words; nothing without one.
std::optional<std::array<unsigned, 3>> matrixShape(std::span<const std::string_view> words);

/// Of an instruction by its opcode with all modifiers.
OpTraits traitsOf(std::string_view opcode);
/// One an op of the program.
std::vector<OpTraits> traitsOf(const Program &program);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_OPTRAITS_H
