// setmaxnreg: section 3.5 of the emulator specification.  The work is done in ../RegisterPool.cpp, here is the form.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/RegisterPool.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

bool decodeSetRegisters(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  if (operands.size() != 1 || operands[0].kind != ptx::Operand::Kind::Integer)
    return context.error(instruction, "takes one integer constant");
  const std::uint64_t n = operands[0].bits;
  if (n < fewestRegisters || n > mostRegisters || n % registerStep)
    return context.error(instruction, std::to_string(n) + " is no number of registers: it must be a multiple of 8 "
                                                          "from 24 to 256");
  op.kind = Aligned;
  op.imm = static_cast<std::int64_t>(n);
  op.flags = form.has("inc");
  op.run = setRegisters;
  context.usesRegisterPool();
  context.flow().visible = true;
  context.flow().observes = form.has("inc");
  return true;
}

constexpr Row rows[] = {
    {"setmaxnreg", "inc|dec sync aligned", "u32", "custom", 90, nullptr, Plain, decodeSetRegisters, true},
};

} // namespace

std::span<const Row> warpRegistersRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
