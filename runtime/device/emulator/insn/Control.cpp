// Branches, calls, exits, and what only the order of execution is about.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/ControlFlow.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

inline WarpState &state(Warp &w) {
  return static_cast<WarpState &>(w);
}

Next branchForward(Warp &w, const Op &op) {
  if (w.exec == w.mask) {
    w.pc = op.aux;
    return Next::Jump;
  }
  return branchTo(state(w), op.aux);
}
Next branchBackward(Warp &w, const Op &op) {
  WarpState &s = state(w);
  const Next next = branchForward(w, op);
  if (next == Next::Jump) {
    if (!wentBackward(s, s.splits[s.current]))
      return Next::Jump;
    storeSplit(s);
    return Next::Switch;
  }
  wentBackward(s, s.splits[s.numSplits - 1]);
  return next;
}
/// The order of ops is known only when the whole function is decoded.
Next branch(Warp &w, const Op &op) {
  return op.flags & backwardFlag ? branchBackward(w, op) : branchForward(w, op);
}

Next indexedBranch(Warp &w, const Op &op) {
  WarpState &s = state(w);
  const std::uint32_t *index = lanesOf<std::uint32_t>(w, op.s[0]);
  const auto count = static_cast<std::uint32_t>(op.imm);
  const std::uint32_t exec = w.exec;
  std::uint32_t wrong = 0;
  eachLane(exec, [&](unsigned l) { wrong |= index[l] >= count ? 1u << l : 0; });
  if (wrong) {
    reportFinding(w, op, "branch.range", wrong,
                  "index " + std::to_string(index[__builtin_ctz(wrong)]) + " into a list of " + std::to_string(count) +
                      " branch targets",
                  true);
    return Next::Fault;
  }
  const unsigned depth = s.splits[s.current].depth;
  const std::uint32_t rest = w.mask & ~exec;
  bool first = true, backward = false;
  for (std::uint32_t todo = exec; todo;) {
    const std::uint32_t target = w.pool[op.aux + index[__builtin_ctz(todo)]];
    std::uint32_t group = 0;
    eachLane(todo, [&](unsigned l) { group |= w.pool[op.aux + index[l]] == target ? 1u << l : 0; });
    todo &= ~group;
    backward |= isBackward(w.pc, target);
    if (first) {
      s.splits[s.current].pc = target;
      s.splits[s.current].mask = group;
      first = false;
    } else {
      addSplit(s, target, group, depth);
    }
  }
  if (rest)
    addSplit(s, w.pc + 1, rest, depth);
  if (backward)
    wentBackward(s, s.splits[s.current]);
  return Next::Switch;
}

Next leave(Warp &w, const Op &) {
  return exitLanes(state(w));
}
Next ret(Warp &w, const Op &op) {
  return returnFrom(state(w), op);
}
Next callDirect(Warp &w, const Op &op) {
  WarpState &s = state(w);
  return enterFunction(s, op, s.program->calls[op.aux].function);
}
Next callThrough(Warp &w, const Op &op) {
  return callIndirect(state(w), op);
}
Next builtin(Warp &w, const Op &op) {
  return callBuiltin(state(w), op);
}

Next trap(Warp &w, const Op &op) {
  reportFinding(w, op, "trap", w.exec, "the kernel trapped", true);
  return Next::Fault;
}
Next nothing(Warp &, const Op &) {
  return Next::Advance;
}

/// flags: of scope .cta.
Next fence(Warp &w, const Op &op) {
  if (w.block->races)
    w.block->races->fence(state(w), op.flags != 0);
  return Next::Advance;
}
Handler buildFence(const Form &f, std::string &) {
  f.flags = f.has("cta");
  return fence;
}

/// Gives the other warps their turn; time passes.
Next sleep(Warp &w, const Op &op) {
  WarpState &s = state(w);
  const std::uint32_t *ns = lanesOf<std::uint32_t>(w, op.s[0]);
  std::uint32_t longest = 0;
  eachLane(w.exec, [&](unsigned l) { longest = ns[l] > longest ? ns[l] : longest; });
  w.block->virtualTime += longest;
  ++w.block->worker.polls;
  w.pc += 1;
  storeSplit(s);
  s.splits[s.current].tired = true;
  s.spinning = true;
  return Next::Switch;
}

bool decodeBranch(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 1)
    return context.error(instruction, "takes one label");
  op.run = branch;
  context.flow().kind = FlowKind::Branch;
  return context.label(instruction, instruction.operands[0], context.flow().target);
}

bool decodeIndexedBranch(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes an index and the label of a .branchtargets list");
  const ptx::TargetList *list = context.targetList(instruction.operands[1]);
  if (!list || list->kind != ptx::TargetList::Kind::Branch || list->names.empty())
    return context.error(instruction, "'" + std::string(instruction.operands[1].text) +
                                          "' is not the label of a .branchtargets list");
  for (std::string_view name : list->names) {
    ptx::Operand operand;
    operand.text = name;
    std::uint32_t index = 0;
    if (!context.label(instruction, operand, index))
      return false;
    context.flow().targets.push_back(index);
  }
  context.flow().kind = FlowKind::IndexedBranch;
  op.imm = static_cast<std::int64_t>(list->names.size());
  op.run = indexedBranch;
  return context.source(instruction, instruction.operands[0], ptx::Type::U32, op.s[0]);
}

bool decodeCall(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  context.flow().visible = true;
  return context.call(instruction, op);
}

template <Next (*run)(Warp &, const Op &), bool leaves = true>
bool decodeBare(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (!instruction.operands.empty())
    return context.error(instruction, "takes no operands");
  if (leaves)
    context.flow().kind = FlowKind::Exit;
  op.run = run;
  return true;
}
bool decodeIgnored(DecodeContext &, const Form &, const ptx::Instruction &, Op &op) {
  op.run = nothing;
  return true;
}
Handler buildSleep(const Form &, std::string &) {
  return sleep;
}
template <Next (*run)(Warp &, const Op &)> Handler always(const Form &, std::string &) {
  return run;
}

// Reads of what changes while the warp runs; flags: a 64-bit destination.
template <typename Fn> Next readCounter(Warp &w, const Op &op) {
  ++w.block->worker.polls;
  const std::uint64_t v = Fn{}(*w.block);
  if (op.flags)
    eachLane(w.exec, [&](unsigned l) { lanesOf<std::uint64_t>(w, op.d)[l] = v; });
  else
    eachLane(w.exec, [&](unsigned l) { lanesOf<std::uint32_t>(w, op.d)[l] = static_cast<std::uint32_t>(v); });
  return Next::Advance;
}
template <typename Fn> constexpr Handler counter(Fn) {
  return &readCounter<Fn>;
}
/// Warp instructions of the block; it moves on with every reading, so that loops over it end.
inline std::uint64_t clockOf(BlockState &b) {
  return b.instructions + ++b.clockReads;
}
inline std::uint64_t timeOf(BlockState &b) {
  return std::uint64_t(1'000'000'000) + clockOf(b) + b.virtualTime;
}

Handler buildClock(const Form &, std::string &) {
  return counter([](BlockState &b) { return clockOf(b) + b.virtualTime; });
}
Handler buildClockHigh(const Form &, std::string &) {
  return counter([](BlockState &b) { return (clockOf(b) + b.virtualTime) >> 32; });
}
Handler buildTimer(const Form &, std::string &) {
  return counter([](BlockState &b) { return timeOf(b); });
}
Handler buildTimerHigh(const Form &, std::string &) {
  return counter([](BlockState &b) { return timeOf(b) >> 32; });
}

constexpr Row rows[] = {
    {"bra", "uni?", "", "custom", 75, nullptr, Plain, decodeBranch},
    {"brx.idx", "uni?", "", "custom", 75, nullptr, Plain, decodeIndexedBranch},
    {"call", "uni?", "", "custom", 75, nullptr, Plain, decodeCall},
    {"ret", "uni?", "", "custom", 75, nullptr, Plain, decodeBare<ret>},
    {"exit", "", "", "custom", 75, nullptr, Plain, decodeBare<leave>},
    {"trap", "", "", "custom", 75, nullptr, Plain, decodeBare<trap>},
    {"brkpt", "", "", "custom", 75, nullptr, Plain, decodeBare<nothing, false>},
    {"pmevent", "mask?", "", "custom", 75, nullptr, Plain, decodeIgnored},
    {"nanosleep", "", "u32", "u32", 75, buildSleep},
    {"membar", "cta|gl|sys|proxy alias?", "", "", 75, buildFence},
    {"fence", "sc|acq_rel? cta|cluster|gpu|sys", "", "", 75, buildFence},
    {"fence", "acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster? cta|cluster|gpu|sys", "", "",
     90, buildFence},
    {"fence.proxy", "alias", "", "", 75, always<nothing>},
    {"griddepcontrol", "launch_dependents|wait", "", "", 90, always<nothing>},
    {"%call", "", "", "", 75, always<callDirect>},
    {"%callindirect", "", "", "", 75, always<callThrough>},
    {"%builtin", "", "", "", 75, always<builtin>},
    {"%clock", "", "", "", 75, buildClock},
    {"%clock_hi", "", "", "", 75, buildClockHigh},
    {"%globaltimer", "", "", "", 75, buildTimer},
    {"%globaltimer_hi", "", "", "", 75, buildTimerHigh},
};

} // namespace

std::span<const Row> controlRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
