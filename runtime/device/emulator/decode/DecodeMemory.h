//===- DecodeMemory.h - Operands of loads, stores and atomics -------------===//
//
// Shared by the memory families of every CPU level; fills everything of an Op but the handler.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEMEMORY_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEMEMORY_H

#include "runtime/device/emulator/decode/Decoder.h"

namespace kiln::emulator {

/// What a handler is chosen by.  128-bit values count as two elements of 8 bytes.
struct MemoryForm {
  unsigned elementBytes = 4;
  unsigned registerBytes = 4;  ///< 2, 4 or 8: of the registers
  bool isSigned = false;       ///< the value is sign-extended into the register
  bool fixedParameter = false; ///< a kernel parameter at Op::imm
};

/// d (or the pool at aux) = [s[0] + imm].
bool decodeLoad(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op, MemoryForm &f);
/// [s[0] + imm] = s[2] (or the pool at aux).
bool decodeStore(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op, MemoryForm &f);
/// The address operand into s[0], imm, flags and cache.
bool decodeAddress(DecodeContext &context, const ptx::Instruction &instruction, const ptx::Operand &operand,
                   ptx::Space space, Op &op, DecodeContext::Address &address);
/// The state space among the modifiers, Generic if none is.
ptx::Space spaceOf(const Form &form);
/// access::cluster where .shared::cluster is said.
std::uint16_t clusterFlag(const Form &form);
/// Op::flags of a strong load, store or atomic: acquire, release, scope.
std::uint16_t orderFlags(const Form &form);
/// 1, or what .v2, .v4, .v8 says.
unsigned vectorOf(const Form &form);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEMEMORY_H
