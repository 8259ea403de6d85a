// The findings of the race checks.
#include "runtime/device/emulator/MemoryFaults.h"
#include "runtime/device/emulator/RaceTouch.h"
#include "support/Text.h"

namespace kiln::emulator {

namespace {

std::string lanesText(std::uint32_t lanes) {
  if (lanes && !(lanes & (lanes - 1)))
    return " lane " + std::to_string(__builtin_ctz(lanes));
  return lanes ? format(" lanes 0x%08x", lanes) : "";
}

/// Lanes of an access that touch [word, word + 4), as far as it is known.
std::uint32_t lanesAt(const Access &a, std::uint64_t word) {
  if (!a.regular || !a.bytes)
    return a.lanes;
  std::uint32_t out = 0;
  for (unsigned l = 0; l < warpSize; ++l) {
    const std::uint64_t first = a.first + l * std::uint64_t(a.bytes);
    if (a.lanes >> l & 1 && first < word + 4 && word < first + a.bytes)
      out |= 1u << l;
  }
  return out ? out : a.lanes;
}

/// "4-byte store", "atomic access".
std::string kindText(const WarpState &w, const Access &a) {
  return std::to_string(a.bytes) + "-byte " + accessKind(w, w.program->ops[a.op]);
}

RawOther otherOf(const Access &other, std::uint32_t lanes) {
  return {other.block, other.warp, lanes, other.op};
}

std::string opcodeAt(const WarpState &w, std::uint32_t op) {
  return w.program->point(op) + ", " + std::string(w.program->lines[w.program->ops[op].line].opcode);
}

} // namespace

void BlockRaces::report(Touch &t, const Access &other, std::uint64_t word, bool isShared) {
  WarpState &w = t.w;
  const char *id = isShared ? "race.shared" : "race.global";
  if (countRace(w, t.op, id, other.op))
    return;
  std::uint32_t lanes = 0;
  for (std::uint32_t e = w.exec; e; e &= e - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(e));
    const std::uint64_t first = (t.m.contiguous ? t.m.first + l * std::uint64_t(t.m.bytes)
                                 : t.m.uniform  ? t.m.first
                                                : t.m.at[l]) -
                                t.origin;
    if (first < word + 4 && word < first + t.m.bytes)
      lanes |= 1u << l;
  }
  const std::uint32_t otherLanes = lanesAt(other, word);
  const bool sameBlock = other.block == w.block->linear;
  std::string where;
  if (isShared)
    where = sharedName(*w.program, word);
  else if (const Allocation *a = w.block->worker.launch.memory->holding(word, 1))
    where = a->name() + "+" + std::to_string(word - a->begin);
  std::string text = kindText(w, t.access) + " of " + where + " (" + lanesText(lanes).substr(1) +
                     ") is not ordered with the " + kindText(w, other) + " by ";
  if (!sameBlock)
    text += "block " + blockText(other.block, w.block->worker.launch.grid) + " ";
  text += "warp " + std::to_string(other.warp) + lanesText(otherLanes) + " at " + opcodeAt(w, other.op) + ": ";
  if (sameBlock)
    text += isShared && !t.access.strong && !other.strong ? "no barrier lies between them"
                                                          : "no barrier, and no release and acquire, lies between them";
  else
    text += "blocks run in any order; only atomics, or a release and an acquire of scope .gpu, order them";
  reportRace(w, t.op, id, lanes, std::move(text), otherOf(other, otherLanes));
}

void BlockRaces::reportLanes(Touch &t, const Access &other, std::uint64_t at, unsigned lane, std::uint32_t otherLanes) {
  WarpState &w = t.w;
  if (countRace(w, t.op, "race.warp", other.op))
    return;
  const std::uint32_t lanes = lane < warpSize ? 1u << lane : w.exec;
  if (!otherLanes)
    otherLanes = other.lanes;
  reportRace(w, t.op, "race.warp", lanes,
             kindText(w, t.access) + " of " + sharedName(*w.program, at) + " (" + lanesText(lanes).substr(1) +
                 ") is not ordered with the " + kindText(w, other) + " by" + lanesText(otherLanes) +
                 " of the same warp at " + opcodeAt(w, other.op) +
                 ": lanes may run apart; no bar.warp.sync lies between them",
             otherOf(other, otherLanes));
}

} // namespace kiln::emulator
