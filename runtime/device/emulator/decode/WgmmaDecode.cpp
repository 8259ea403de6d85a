// Which registers of a function belong to wgmma, and the guards before ops that access them.
#include "runtime/device/emulator/decode/ControlFlow.h"
#include "runtime/device/emulator/decode/DecodeState.h"
#include "runtime/device/emulator/matrix/Wgmma.h"

#include <algorithm>
#include <set>

namespace kiln::emulator {

WgmmaProgram &DecodeContext::wgmma() {
  if (!program->wgmma)
    program->wgmma = std::make_shared<WgmmaProgram>();
  return *program->wgmma;
}

void DecodeContext::keepForScope(Slot slot) {
  state->kept.insert(slot);
}

namespace {

/// "mov" of one register, or of a constant, to one register.
bool isPlainMove(const Program &program, const Op &op) {
  return op.d != noSlot && op.s[0] != noSlot && program.lines[op.line].opcode.starts_with("mov.");
}

/// Bits by block.
class BlockSets {
public:
  BlockSets(std::size_t blocks, std::size_t bits) : words((bits + 63) / 64), data(blocks * words) {}
  std::span<std::uint64_t> of(std::size_t block) { return {data.data() + block * words, words}; }

private:
  std::size_t words;
  std::vector<std::uint64_t> data;
};

} // namespace

/// The results of a product arrive until it is waited for, also those that nobody reads: their registers are live.
void DecodeContext::keepResultsUntilWaits(const FunctionInfo &info, const FlowGraph &graph) {
  const Program &p = *program;
  std::vector<Slot> slots;
  std::unordered_map<Slot, std::uint32_t> bits;
  auto eachResult = [&](const Op &op, auto f) {
    const WgmmaForm &form = p.wgmma->forms[static_cast<std::size_t>(op.imm)];
    for (unsigned e = 0; e < form.accumulators; ++e) {
      const auto [entry, isNew] = bits.try_emplace(p.pool[op.aux + e], static_cast<std::uint32_t>(slots.size()));
      if (isNew)
        slots.push_back(entry->first);
      f(entry->second);
    }
  };
  for (std::uint32_t i = info.entry; i < info.end; ++i)
    if (p.ops[i].run == wgmmaIssue)
      eachResult(p.ops[i], [](std::uint32_t) {});
  if (slots.empty())
    return;
  BlockSets in(graph.size(), slots.size());
  auto walk = [&](std::uint32_t block, std::vector<std::uint64_t> &flying, bool record) {
    for (std::uint32_t i = graph.starts[block]; i < graph.starts[block + 1]; ++i) {
      const Op &op = p.ops[i];
      if (op.run == wgmmaIssue)
        eachResult(op, [&](std::uint32_t bit) { flying[bit / 64] |= std::uint64_t(1) << bit % 64; });
      const bool waits = op.run == wgmmaWait;
      if (record && (waits || flows[i].kind == FlowEdge::Kind::Exit))
        for (std::size_t s = 0; s < slots.size(); ++s)
          if (flying[s / 64] >> s % 64 & 1)
            accesses.push_back({i, slots[s], 1, false, true});
      if (waits && op.imm == 0 && op.guard == noSlot)
        std::fill(flying.begin(), flying.end(), 0);
    }
  };
  std::vector<std::uint64_t> flying;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t b = 0; b < graph.size(); ++b) {
      flying.assign(in.of(b).begin(), in.of(b).end());
      walk(b, flying, false);
      for (const std::uint32_t s : graph.successors[b])
        for (std::size_t word = 0; word < flying.size(); ++word)
          if (flying[word] & ~in.of(s)[word]) {
            in.of(s)[word] |= flying[word];
            changed = true;
          }
    }
  }
  for (std::uint32_t b = 0; b < graph.size(); ++b) {
    flying.assign(in.of(b).begin(), in.of(b).end());
    walk(b, flying, true);
  }
}

void DecodeContext::guardWgmma(const FunctionInfo &info, const FlowGraph &graph) {
  if (!program->wgmma)
    return;
  Program &p = *program;
  WgmmaProgram &w = *p.wgmma;
  w.guardOf.resize(p.ops.size(), 0);
  std::unordered_map<Slot, std::uint32_t> numbers;
  auto numberOf = [&](Slot slot) {
    const auto [entry, isNew] = numbers.try_emplace(slot, w.numRegisters);
    w.numRegisters += isNew;
    return entry->second;
  };
  for (std::uint32_t i = info.entry; i < info.end; ++i)
    if (p.ops[i].run == wgmmaIssue) {
      WgmmaForm &form = w.forms[static_cast<std::size_t>(p.ops[i].imm)];
      for (std::size_t r = 0; r < form.names.size(); ++r)
        form.registers.push_back(numberOf(p.pool[p.ops[i].aux + r]));
    }
  if (numbers.empty())
    return;
  // What is moved into a checked register is checked itself.
  std::set<Slot> fixed;
  for (const ConstantSlot &c : p.constants)
    fixed.insert(c.slot);
  for (const SpecialSlot &s : p.specials)
    fixed.insert(s.slot);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = info.end; i-- > info.entry;) {
      const Op &op = p.ops[i];
      if (!isPlainMove(p, op) || !numbers.count(op.d) || numbers.count(op.s[0]) || fixed.count(op.s[0]))
        continue;
      numberOf(op.s[0]);
      changed = true;
    }
  }
  // Accesses by op.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> touched;
  for (const SlotAccess &a : accesses)
    if (a.op >= info.entry && a.op < info.end)
      if (const auto found = numbers.find(a.slot); found != numbers.end())
        touched.emplace_back(a.op, found->second);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());

  auto numberIn = [&](Slot slot) {
    const auto found = numbers.find(slot);
    return found == numbers.end() ? WgmmaGuard::none : found->second;
  };
  std::set<std::uint32_t> known; // accessed since the state of registers may have changed last
  auto next = touched.begin();
  for (std::uint32_t b = 0; b < graph.size(); ++b) {
    known.clear();
    for (std::uint32_t i = graph.starts[b]; i < graph.starts[b + 1]; ++i) {
      Op &op = p.ops[i];
      const auto first = next;
      while (next != touched.end() && next->first == i)
        ++next;
      if (op.run == wgmmaIssue || op.run == wgmmaFence || op.run == wgmmaCommit || op.run == wgmmaWait ||
          op.flags & callFlag)
        known.clear();
      if (first == next || op.run == wgmmaIssue)
        continue;
      WgmmaGuard guard;
      guard.run = op.run;
      if (isPlainMove(p, op)) {
        guard.from = numberIn(op.s[0]);
        guard.to = numberIn(op.d);
        guard.kind = guard.from == WgmmaGuard::none ? WgmmaGuard::Kind::MoveConstant : WgmmaGuard::Kind::Move;
        known.erase(guard.to);
      } else {
        guard.first = static_cast<std::uint32_t>(w.accessed.size());
        for (auto a = first; a != next; ++a)
          if (!known.count(a->second))
            w.accessed.push_back(a->second);
        guard.count = static_cast<std::uint32_t>(w.accessed.size()) - guard.first;
        if (guard.count == 0)
          continue;
        if (op.guard == noSlot)
          for (auto a = first; a != next; ++a)
            known.insert(a->second);
      }
      w.guardOf[i] = static_cast<std::uint32_t>(w.guards.size());
      w.guards.push_back(guard);
      op.run = wgmmaGuarded;
    }
  }
  keepResultsUntilWaits(info, graph);
}

} // namespace kiln::emulator
