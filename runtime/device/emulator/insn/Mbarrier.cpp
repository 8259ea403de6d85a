// mbarrier: section 3.2 of the emulator specification.  The rules are in ../Mbarrier.cpp and ../MbarrierOps.cpp, here
// are the forms.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/async/Mbarrier.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// The object's address, and what all these instructions have in common.
bool decodeObject(DecodeContext &context, const Form &form, const ptx::Instruction &instruction,
                  const ptx::Operand &operand, Op &op) {
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, operand, spaceOf(form), op, address))
    return false;
  if (address.space != ptx::Space::Shared && address.space != ptx::Space::Generic)
    return context.error(instruction, "an mbarrier lies in shared memory");
  op.flags |= form.has("relaxed") ? mbarrierFlag::relaxed : 0;
  op.flags |= form.has("shared::cluster") ? mbarrierFlag::remote : 0;
  context.usesAsync(false);
  context.flow().visible = true;
  return true;
}

bool decodeInit(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const bool init = form.mnemonic == "mbarrier.init";
  const auto &operands = instruction.operands;
  if (operands.size() != (init ? 2u : 1u))
    return context.error(instruction, init ? "takes an address and a number of arrivals" : "takes an address");
  op.run = init ? mbarrierInit : mbarrierInval;
  return decodeObject(context, form, instruction, operands[0], op) &&
         (!init || context.source(instruction, operands[1], ptx::Type::U32, op.s[1]));
}

/// {state|_,} [address] {, count | bytes}; a remote object gives no state.
bool decodeArrive(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  const std::size_t at = !operands.empty() && operands[0].kind == ptx::Operand::Kind::Address ? 0 : 1;
  const std::size_t given = operands.size() < at + 1 ? 9 : operands.size() - at - 1;
  const bool needs = form.has("expect_tx") || form.has("noComplete");
  if (given > 1 || (needs && given == 0))
    return context.error(instruction, std::string("takes a state (or _), an address and ") +
                                          (form.has("expect_tx")    ? "the number of bytes"
                                           : form.has("noComplete") ? "the number of arrivals"
                                                                    : "perhaps the number of arrivals"));
  const bool remote = form.has("shared::cluster");
  if (at == 0 && !remote)
    return context.error(instruction, "the state, or _, is missing");
  op.d = trashSlot;
  if (at == 1 && operands[0].kind != ptx::Operand::Kind::Sink) {
    if (remote)
      return context.error(instruction, "with .shared::cluster the state must be _");
    if (!context.destination(instruction, operands[0], ptx::Type::B64, op.d))
      return false;
  }
  if (given == 1 && !needs && context.target().sm < 90)
    return context.error(instruction, "the number of arrivals without .noComplete needs sm_90 or newer");
  if (!decodeObject(context, form, instruction, operands[at], op))
    return false;
  if (given == 1 && !context.source(instruction, operands[at + 1], ptx::Type::U32, op.s[1]))
    return false;
  // A generic address may be another block's where no state is asked for.
  op.flags |= spaceOf(form) == ptx::Space::Generic && op.d == trashSlot ? mbarrierFlag::remote : 0;
  op.flags |= form.has("expect_tx") ? mbarrierFlag::expectTx : 0;
  op.flags |= form.has("noComplete") ? mbarrierFlag::noComplete : 0;
  op.flags |= form.mnemonic == "mbarrier.arrive_drop" ? mbarrierFlag::drop : 0;
  op.run = mbarrierArrive;
  return true;
}

bool decodeTx(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes an address and a number of bytes");
  op.run = form.mnemonic == "mbarrier.expect_tx" ? mbarrierExpectTx : mbarrierCompleteTx;
  op.flags |= spaceOf(form) == ptx::Space::Generic ? mbarrierFlag::remote : 0;
  return decodeObject(context, form, instruction, instruction.operands[0], op) &&
         context.source(instruction, instruction.operands[1], ptx::Type::U32, op.s[1]);
}

bool decodeWait(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  const bool tries = form.mnemonic == "mbarrier.try_wait", parity = form.has("parity");
  if (operands.size() < 3 || operands.size() > (tries ? 4u : 3u))
    return context.error(instruction, std::string("takes a predicate, an address, ") +
                                          (parity ? "a parity" : "a state") + (tries ? " and perhaps a time" : ""));
  if (!context.destination(instruction, operands[0], ptx::Type::Pred, op.d) ||
      !decodeObject(context, form, instruction, operands[1], op) ||
      !context.source(instruction, operands[2], parity ? ptx::Type::U32 : ptx::Type::B64, op.s[1]) ||
      (operands.size() == 4 && !context.source(instruction, operands[3], ptx::Type::U32, op.s[2])))
    return false;
  op.flags |= parity ? mbarrierFlag::parity : 0;
  op.flags |= tries ? mbarrierFlag::tries : 0;
  context.flow().observes = true;
  op.run = mbarrierWait;
  return true;
}

bool decodePending(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes a destination and a state");
  op.run = mbarrierPendingCount;
  return context.destination(instruction, instruction.operands[0], ptx::Type::U32, op.d) &&
         context.source(instruction, instruction.operands[1], ptx::Type::B64, op.s[1]);
}

#define KILN_OWN "shared|shared::cta? "
#define KILN_ANY "shared|shared::cta|shared::cluster? "
#define KILN_RELEASE "release|relaxed? cta|cluster? "
constexpr Row rows[] = {
    {"mbarrier.init", KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeInit},
    {"mbarrier.inval", KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeInit},
    // The longer name first: a row's name is looked for as a prefix.
    {"mbarrier.arrive_drop", "release? cta? " KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeArrive},
    {"mbarrier.arrive_drop", "noComplete release? cta? " KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeArrive},
    {"mbarrier.arrive_drop", "expect_tx? " KILN_RELEASE KILN_ANY, "b64", "custom", 90, nullptr, Plain, decodeArrive},
    {"mbarrier.arrive", "release? cta? " KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeArrive},
    {"mbarrier.arrive", "noComplete release? cta? " KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeArrive},
    {"mbarrier.arrive", "expect_tx? " KILN_RELEASE KILN_ANY, "b64", "custom", 90, nullptr, Plain, decodeArrive},
    {"mbarrier.expect_tx", "relaxed? cta|cluster? " KILN_ANY, "b64", "custom", 90, nullptr, Plain, decodeTx},
    {"mbarrier.complete_tx", "relaxed? cta|cluster? " KILN_ANY, "b64", "custom", 90, nullptr, Plain, decodeTx},
    {"mbarrier.test_wait", "parity? acquire? cta? " KILN_OWN, "b64", "custom", 80, nullptr, Plain, decodeWait},
    {"mbarrier.test_wait", "parity? acquire|relaxed? cta|cluster? " KILN_OWN, "b64", "custom", 90, nullptr, Plain,
     decodeWait},
    {"mbarrier.try_wait", "parity? acquire|relaxed? cta|cluster? " KILN_OWN, "b64", "custom", 90, nullptr, Plain,
     decodeWait},
    {"mbarrier.pending_count", "", "b64", "custom", 80, nullptr, Plain, decodePending},
};
#undef KILN_OWN
#undef KILN_ANY
#undef KILN_RELEASE

} // namespace

std::span<const Row> mbarrierRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
