// st.async and red.async: section 1.7 of the emulator specification.  The work is done in ../RemoteAsync.cpp, here are
// the forms.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/async/RemoteAsync.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U64 = std::uint64_t;
using U32 = std::uint32_t;

template <typename T, typename Fn> Handler reduction(Fn) {
  return [](Warp &w, const Op &op) {
    return reduceAsync(w, op, [](U64 old, U64 operand) {
      return static_cast<U64>(Fn{}(static_cast<T>(old), static_cast<T>(operand)));
    });
  };
}
template <typename T> Handler orderedReduction(const Form &form) {
  return form.has("min") ? reduction<T>([](T a, T b) { return a < b ? a : b; })
                         : reduction<T>([](T a, T b) { return a > b ? a : b; });
}
template <typename T> Handler sum() {
  return reduction<T>([](T a, T b) { return static_cast<T>(a + b); });
}

Handler reductionOf(const Form &form) {
  if (form.has("inc"))
    return reduction<U32>([](U32 a, U32 b) { return a >= b ? U32(0) : a + 1; });
  if (form.has("dec"))
    return reduction<U32>([](U32 a, U32 b) { return a == 0 || a > b ? b : a - 1; });
  if (form.has("and"))
    return reduction<U32>([](U32 a, U32 b) { return a & b; });
  if (form.has("or"))
    return reduction<U32>([](U32 a, U32 b) { return a | b; });
  if (form.has("xor"))
    return reduction<U32>([](U32 a, U32 b) { return a ^ b; });
  if (form.has("add"))
    return form.type() == ptx::Type::U64 ? sum<U64>() : sum<U32>(); // the sign does not matter
  return form.type() == ptx::Type::S32 ? orderedReduction<std::int32_t>(form) : orderedReduction<U32>(form);
}

/// [destination], value, [mbarrier]
bool decodeRemote(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  if (operands.size() != 3)
    return context.error(instruction, "takes a destination, a value and an mbarrier");
  const bool reduces = form.mnemonic == "red.async";
  const unsigned vector = vectorOf(form), elementBytes = ptx::typeBytes(form.type());
  if (vector * elementBytes > 16)
    return context.error(instruction, "a vector of " + std::to_string(vector) + " times " +
                                          std::to_string(elementBytes) +
                                          " bytes does not exist; 16 bytes are the most");
  const bool isVector = operands[1].kind == ptx::Operand::Kind::Vector;
  const std::size_t given = isVector ? operands[1].elements.size() : 1;
  if (given != vector)
    return context.error(instruction, "has " + std::to_string(given) + " values where " + std::to_string(vector) +
                                          (vector == 1 ? " is" : " are") + " needed");
  std::vector<U32> slots;
  for (unsigned e = 0; e < vector; ++e) {
    Slot slot = noSlot;
    if (!context.source(instruction, isVector ? operands[1].elements[e] : operands[1], form.type(), slot))
      return false;
    slots.push_back(slot);
  }
  if (vector == 1)
    op.s[2] = slots[0];
  else
    op.aux = context.addPool(slots);
  DecodeContext::Address to, mbarrier;
  if (!decodeAddress(context, instruction, operands[0], spaceOf(form), op, to) ||
      !context.address(instruction, operands[2], spaceOf(form), mbarrier))
    return false;
  // The name of a shared variable is a shared address where generic ones are expected, too.
  if (to.space != mbarrier.space || (to.space != ptx::Space::Shared && to.space != ptx::Space::Generic))
    return context.error(instruction, "the destination and the mbarrier lie in shared memory, and both addresses are "
                                      "generic or neither is");
  op.s[1] = mbarrier.base;
  op.s[3] = context.constant(static_cast<U64>(mbarrier.displacement), 8);
  op.flags |= mbarrier.base32 ? remoteFlag::mbarrierBase32 : 0;
  op.flags |= elementBytes == 8 ? remoteFlag::wide : 0;
  op.flags |= access::cluster | static_cast<std::uint16_t>(vector << access::countShift);
  context.usesAsync(false);
  context.flow().visible = true;
  op.run = reduces ? reductionOf(form) : storeAsync;
  return true;
}

#define KILN_COMPLETES "shared::cluster? mbarrier::complete_tx::bytes "
constexpr Row rows[] = {
    {"st.async", "weak? " KILN_COMPLETES "v2|v4?", "b32|b64|u32|u64|s32|s64|f32|f64", "custom", 90, nullptr, Plain,
     decodeRemote},
    {"red.async", "relaxed cluster " KILN_COMPLETES "inc|dec", "u32", "custom", 90, nullptr, Plain, decodeRemote},
    {"red.async", "relaxed cluster " KILN_COMPLETES "min|max", "u32|s32", "custom", 90, nullptr, Plain, decodeRemote},
    {"red.async", "relaxed cluster " KILN_COMPLETES "and|or|xor", "b32", "custom", 90, nullptr, Plain, decodeRemote},
    {"red.async", "relaxed cluster " KILN_COMPLETES "add", "u32|s32|u64", "custom", 90, nullptr, Plain, decodeRemote},
};
#undef KILN_COMPLETES

} // namespace

std::span<const Row> remoteAsyncRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
