// cp.async: section 3.1 of the emulator specification.  The work is done in ../AsyncCopies.cpp, here are the forms.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/async/AsyncCopies.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using ptx::Operand;

/// [dst], [src], cp-size {, src-size | ignore-src} {, policy}
bool decodeCopy(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  const bool policy = form.has("L2::cache_hint");
  if (operands.size() < (policy ? 4u : 3u) || operands.size() > (policy ? 5u : 4u))
    return context.error(instruction, "takes a destination, a source, the size, perhaps the number of source bytes or "
                                      "a predicate, and with .L2::cache_hint a policy");
  const Operand &size = operands[2];
  if (size.kind != Operand::Kind::Integer ||
      (size.bits != 16 && (form.has("cg") || (size.bits != 4 && size.bits != 8))))
    return context.error(instruction, form.has("cg") ? "the size must be the constant 16"
                                                     : "the size must be one of the constants 4, 8 and 16");
  DecodeContext::Address from;
  if (!context.address(instruction, operands[1], ptx::Space::Global, from))
    return false;
  if (from.base32)
    return context.error(instruction, "an address of global memory has 64 bits");
  op.s[1] = from.base;
  op.s[3] = context.constant(static_cast<std::uint64_t>(from.displacement), 8);
  DecodeContext::Address to;
  if (!decodeAddress(context, instruction, operands[0], ptx::Space::Shared, op, to))
    return false;
  op.cache = context.newCache();
  op.flags |= static_cast<std::uint16_t>(size.bits / 4 << access::countShift);
  if (operands.size() == (policy ? 5u : 4u)) {
    const Operand &o = operands[3];
    const Symbol *symbol = o.kind == Operand::Kind::Register ? context.find(o.text) : nullptr;
    const bool isPredicate = symbol && symbol->kind == Symbol::Kind::Register && symbol->type == ptx::Type::Pred;
    op.flags |= isPredicate ? copyFlag::ignoreSource : copyFlag::sourceSize;
    if (!(isPredicate ? context.predicate(instruction, o, op.s[2])
                      : context.source(instruction, o, ptx::Type::U32, op.s[2])))
      return false;
  }
  Slot ignored = noSlot;
  if (policy && !context.source(instruction, operands.back(), ptx::Type::B64, ignored))
    return false;
  context.usesAsync(false);
  context.flow().visible = true;
  context.flow().observes = true;
  op.run = copyAsync;
  return true;
}

bool decodeCommit(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (!instruction.operands.empty())
    return context.error(instruction, "takes no operands");
  context.usesAsync(false);
  context.flow().visible = true;
  op.run = copyCommit;
  return true;
}

bool decodeWait(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  context.usesAsync(false);
  context.flow().visible = true;
  context.flow().observes = true;
  op.run = copyWait;
  if (form.has("wait_all")) { // closes the open group first
    if (!instruction.operands.empty())
      return context.error(instruction, "takes no operands");
    Op &commit = context.emitBefore(copyCommit);
    commit.guard = op.guard;
    commit.guardNegated = op.guardNegated;
    return true;
  }
  if (instruction.operands.size() != 1 || instruction.operands[0].kind != Operand::Kind::Integer)
    return context.error(instruction, "takes one integer constant");
  op.imm = static_cast<std::int64_t>(instruction.operands[0].bits & 0x7FFFFFFF);
  return true;
}

bool decodeArrive(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 1)
    return context.error(instruction, "takes the address of an mbarrier");
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[0], spaceOf(form), op, address))
    return false;
  if (address.space != ptx::Space::Shared && address.space != ptx::Space::Generic)
    return context.error(instruction, "an mbarrier lies in shared memory");
  op.flags |= form.has("noinc") ? copyArriveNoinc : 0;
  context.usesAsync(false);
  context.flow().visible = true;
  op.run = copyArrive;
  return true;
}

constexpr Row rows[] = {
    {"cp.async", "ca|cg shared|shared::cta global L2::cache_hint? L2::64B|L2::128B|L2::256B?", "", "custom", 80,
     nullptr, Plain, decodeCopy},
    {"cp.async", "commit_group", "", "custom", 80, nullptr, Plain, decodeCommit},
    {"cp.async", "wait_group|wait_all", "", "custom", 80, nullptr, Plain, decodeWait},
    {"cp.async", "mbarrier arrive noinc? shared|shared::cta?", "b64", "custom", 80, nullptr, Plain, decodeArrive},
};

} // namespace

std::span<const Row> copyAsyncRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
