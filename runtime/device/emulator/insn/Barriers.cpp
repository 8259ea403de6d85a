// bar, barrier, bar.warp.sync, barrier.cluster: section 1.6 of the emulator specification.  The rules are in
// ../Barriers.cpp and ../ClusterBarrier.cpp, here are the forms.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

inline WarpState &state(Warp &w) {
  return static_cast<WarpState &>(w);
}

Next sync(Warp &w, const Op &op) {
  return arriveAtBarrier(state(w), op, ArrivalKind::Sync, op.s[0], op.s[1], noSlot);
}
Next arrive(Warp &w, const Op &op) {
  return arriveAtBarrier(state(w), op, ArrivalKind::Arrive, op.s[0], op.s[1], noSlot);
}
Next reduce(Warp &w, const Op &op) {
  return arriveAtBarrier(state(w), op, ArrivalKind::Reduce, op.s[0], op.s[1], op.s[2]);
}

/// Constant operands are checked here, as an assembler does.
bool checkConstants(DecodeContext &context, const ptx::Instruction &instruction, const ptx::Operand &id,
                    const ptx::Operand *count) {
  if (id.kind == ptx::Operand::Kind::Integer && id.bits > 15)
    return context.error(instruction, "barrier number " + std::to_string(id.bits) + " is not in 0..15");
  if (count && count->kind == ptx::Operand::Kind::Integer && (count->bits == 0 || count->bits % warpSize))
    return context.error(instruction,
                         "the number of threads, " + std::to_string(count->bits) + ", is not a multiple of 32");
  return true;
}

bool decodeBarrier(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  const bool isAligned = form.mnemonic == "bar" || form.has("aligned");
  op.kind = isAligned ? Aligned : Plain;
  context.flow().visible = true;
  std::size_t at = 0;
  const bool red = form.has("red");
  if (red) {
    const bool popc = form.has("popc");
    op.flags = static_cast<std::uint16_t>(popc              ? BarrierReduction::Popc
                                          : form.has("and") ? BarrierReduction::And
                                                            : BarrierReduction::Or);
    if (operands.size() < 3 || operands.size() > 4)
      return context.error(instruction, "takes a destination, a barrier, perhaps a number of threads, and a predicate");
    if (!context.destination(instruction, operands[0], popc ? ptx::Type::U32 : ptx::Type::Pred, op.d))
      return false;
    at = 1;
    if (!context.predicate(instruction, operands.back(), op.s[2]))
      return false;
  }
  const std::size_t given = operands.size() - at - (red ? 1 : 0);
  if (operands.size() < at + 1 || given < 1 || given > 2)
    return context.error(instruction, "takes a barrier and a number of threads");
  if (form.has("arrive") && given != 2)
    return context.error(instruction, "needs the number of threads");
  if (!checkConstants(context, instruction, operands[at], given == 2 ? &operands[at + 1] : nullptr))
    return false;
  if (!context.source(instruction, operands[at], ptx::Type::U32, op.s[0]))
    return false;
  if (given == 2 && !context.source(instruction, operands[at + 1], ptx::Type::U32, op.s[1]))
    return false;
  op.run = red ? reduce : form.has("arrive") ? arrive : sync;
  return true;
}

/// The executor has gathered the lanes: nothing is left to do.
Handler buildWarpSync(const Form &, std::string &) {
  return [](Warp &, const Op &) { return Next::Advance; };
}

bool decodeCluster(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (!instruction.operands.empty())
    return context.error(instruction, "takes no operands");
  context.flow().visible = true;
  context.usesCluster();
  op.kind = form.has("aligned") ? Aligned : Plain;
  op.flags = form.has("relaxed") ? clusterRelaxed : 0;
  op.run = form.has("arrive") ? +[](Warp &w, const Op &o) { return arriveAtCluster(state(w), o); }
                              : +[](Warp &w, const Op &o) { return waitForCluster(state(w), o); };
  return true;
}

constexpr Row rows[] = {
    {"bar.warp", "sync", "", "m", 75, buildWarpSync, MemberMaskAnywhere},
    {"bar", "cta? sync|arrive", "", "custom", 75, nullptr, Plain, decodeBarrier},
    {"bar", "cta? red popc", "u32", "custom", 75, nullptr, Plain, decodeBarrier},
    {"bar", "cta? red and|or", "pred", "custom", 75, nullptr, Plain, decodeBarrier},
    {"barrier.cluster", "arrive release|relaxed? aligned?", "", "custom", 90, nullptr, Plain, decodeCluster},
    {"barrier.cluster", "wait acquire? aligned?", "", "custom", 90, nullptr, Plain, decodeCluster},
    {"barrier", "cta? sync|arrive aligned?", "", "custom", 75, nullptr, Plain, decodeBarrier},
    {"barrier", "cta? red popc aligned?", "u32", "custom", 75, nullptr, Plain, decodeBarrier},
    {"barrier", "cta? red and|or aligned?", "pred", "custom", 75, nullptr, Plain, decodeBarrier},
};

} // namespace

std::span<const Row> barriersRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
