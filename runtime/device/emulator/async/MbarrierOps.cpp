// The mbarrier instructions, lane by lane: section 3.2 of the emulator specification.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include <cstring>

namespace kiln::emulator {

namespace {

constexpr std::uint32_t mostArrivals = (1 << 20) - 1;
/// What the 8 bytes of an object hold, and what they hold after mbarrier.inval.
constexpr std::uint64_t objectBits = 0x6D62617272696572, gone = 0xDEADBEEFDEADBEEF;

/// Calls f(lane, its object) for every executing lane until it returns Fault.
template <typename Fn> Next eachObject(WarpState &w, const Op &op, bool remote, Fn f) {
  for (std::uint32_t m = w.exec; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    MbarrierPlace place;
    if (!locateMbarrier(w, op, l, laneAddress(w, op, l), remote, place))
      return Next::Fault;
    if (f(l, place) == Next::Fault)
      return Next::Fault;
  }
  return Next::Advance;
}

// A state token: 1010, 12 bits of the object's offset, 28 bits of the phase, 20 bits of pending arrivals.
constexpr std::uint64_t tokenTag = 0xA;
constexpr std::uint64_t phaseMask = (1 << 28) - 1;
std::uint64_t tokenOf(MbarrierPlace place, const Mbarrier &b) {
  return tokenTag << 60 | std::uint64_t(place.offset / 8 & 0xFFF) << 48 | (b.phase & phaseMask) << 20 | b.pending;
}

std::uint64_t hostOf(MbarrierPlace place) {
  return reinterpret_cast<std::uint64_t>(place.owner->shared) + place.offset;
}

std::string laneText(unsigned l) {
  return " (lane " + std::to_string(l) + ")";
}

/// Whether the phase that the lane waits for is over.
bool isOver(WarpState &w, const Op &op, unsigned l, MbarrierPlace place, const Mbarrier &b) {
  if (op.flags & mbarrierFlag::parity)
    return (b.phase & 1) != (lanesOf<std::uint32_t>(w, op.s[1])[l] & 1);
  const std::uint64_t token = lanesOf<std::uint64_t>(w, op.s[1])[l];
  const std::uint64_t age = (b.phase - (token >> 20)) & phaseMask;
  const bool foreign = token >> 60 != tokenTag || (token >> 48 & 0xFFF) != (place.offset / 8 & 0xFFF);
  if ((foreign || age > 1) && !countFinding(w, op, "mbarrier.state"))
    reportFinding(w, op, "mbarrier.state", 1u << l,
                  foreign ? "the state" + laneText(l) + " is none that an arrival at this mbarrier gave"
                          : "the state" + laneText(l) + " is of phase " + std::to_string(token >> 20 & phaseMask) +
                                ", the barrier is in phase " + std::to_string(b.phase) +
                                "; only that phase and the one before can be waited for",
                  false);
  return foreign || age != 0;
}

} // namespace

Next mbarrierInit(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const std::uint32_t *counts = lanesOf<std::uint32_t>(w, op.s[1]);
  return eachObject(w, op, false, [&](unsigned l, MbarrierPlace place) {
    if (counts[l] == 0 || counts[l] > mostArrivals) {
      reportFinding(w, op, "mbarrier.count", 1u << l,
                    "an mbarrier of " + std::to_string(counts[l]) + " arrivals" + laneText(l) + "; it must be 1 to " +
                        std::to_string(mostArrivals),
                    true);
      return Next::Fault;
    }
    BlockState &block = *w.block;
    MbarrierTable &table = block.async->mbarriers;
    if (const Mbarrier *old = table.find(place.offset); old && !countFinding(w, op, "mbarrier.reinit"))
      reportFinding(w, op, "mbarrier.reinit", 1u << l,
                    "mbarrier " + sharedName(*w.program, place.offset) + " was initialised at " +
                        w.program->point(old->initOp) + " and not given back with mbarrier.inval since",
                    false);
    if (block.races)
      block.races->recordObject(w, op, 1u << l, hostOf(place), MbarrierTable::objectBytes, ObjectUse::Write);
    Mbarrier &b = table.make(place.offset);
    b.expected = b.pending = counts[l];
    b.initOp = b.txOp = static_cast<std::uint32_t>(&op - w.program->ops.data());
    b.txWarp = w.index;
    std::memcpy(block.shared + place.offset, &objectBits, 8);
    if (block.sharedBits)
      markDefined(block.sharedBits, place.offset, 8);
    ++block.worker.progress;
    return Next::Advance;
  });
}

Next mbarrierInval(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachObject(w, op, false, [&](unsigned l, MbarrierPlace place) {
    BlockState &block = *w.block;
    Mbarrier *b = useMbarrier(w, op, 1u << l, place);
    if (!b)
      return Next::Fault;
    if (block.races)
      block.races->recordObject(w, op, 1u << l, hostOf(place), MbarrierTable::objectBytes, ObjectUse::Write);
    b->valid = false;
    std::memcpy(block.shared + place.offset, &gone, 8);
    if (block.sharedBits)
      clearDefined(block.sharedBits, place.offset, 8);
    ++block.worker.progress;
    return Next::Advance;
  });
}

Next mbarrierArrive(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const std::uint32_t *operand = op.s[1] == noSlot ? nullptr : lanesOf<std::uint32_t>(w, op.s[1]);
  const bool announces = op.flags & mbarrierFlag::expectTx;
  BlockRaces *races = w.block->races;
  // The lanes release together: what the warp did so far goes into every phase that they arrive at.
  const Mbarrier *last = nullptr;
  std::uint64_t lastPhase = 0;
  return eachObject(w, op, op.flags & mbarrierFlag::remote, [&](unsigned l, MbarrierPlace place) {
    const std::uint32_t bit = 1u << l;
    Mbarrier *b = useMbarrier(w, op, bit, place);
    if (!b)
      return Next::Fault;
    if (announces && !expectTx(w, op, bit, place, *b, operand[l]))
      return Next::Fault;
    const std::uint32_t count = operand && !announces ? operand[l] : 1;
    if (count == 0 || count > mostArrivals) {
      reportFinding(w, op, "mbarrier.count", bit,
                    "arrives " + std::to_string(count) + " times" + laneText(l) + "; it must be 1 to " +
                        std::to_string(mostArrivals),
                    true);
      return Next::Fault;
    }
    if (op.d != noSlot && op.d != trashSlot)
      lanesOf<std::uint64_t>(w, op.d)[l] = tokenOf(place, *b);
    if (op.flags & mbarrierFlag::drop) {
      if (count > b->expected && !countFinding(w, op, "mbarrier.underflow"))
        reportFinding(w, op, "mbarrier.underflow", bit,
                      "drops " + std::to_string(count) + " arrivals of mbarrier " +
                          sharedName(*w.program, place.offset) + ", which expects " + std::to_string(b->expected),
                      false);
      b->expected -= std::min(count, b->expected);
    }
    if (b == last && b->phase != lastPhase && !countFinding(w, op, "mbarrier.underflow"))
      reportFinding(w, op, "mbarrier.underflow", bit,
                    "lanes of one instruction arrive at mbarrier " + sharedName(*w.program, place.offset) +
                        " in two phases: after lanes before" + laneText(l) + " no arrival was pending in phase " +
                        std::to_string(lastPhase) + " (" + std::to_string(b->expected) + " expected; initialised at " +
                        w.program->point(b->initOp) + ")",
                    false);
    if (b != last || b->phase != lastPhase) {
      if (races)
        races->releaseTo(w, b->releasing, op.flags & mbarrierFlag::relaxed);
      last = b;
      lastPhase = b->phase;
    }
    if (arriveAtMbarrier(w, op, bit, place, *b, count) && op.flags & mbarrierFlag::noComplete &&
        !countFinding(w, op, "mbarrier.no_complete"))
      reportFinding(w, op, "mbarrier.no_complete", bit,
                    "this arrival must not complete a phase, but it completed phase " + std::to_string(b->phase - 1) +
                        " of mbarrier " + sharedName(*w.program, place.offset),
                    false);
    return Next::Advance;
  });
}

Next mbarrierExpectTx(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const std::uint32_t *bytes = lanesOf<std::uint32_t>(w, op.s[1]);
  return eachObject(w, op, op.flags & mbarrierFlag::remote, [&](unsigned l, MbarrierPlace place) {
    Mbarrier *b = useMbarrier(w, op, 1u << l, place);
    return b && expectTx(w, op, 1u << l, place, *b, bytes[l]) ? Next::Advance : Next::Fault;
  });
}

Next mbarrierCompleteTx(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const std::uint32_t *bytes = lanesOf<std::uint32_t>(w, op.s[1]);
  return eachObject(w, op, op.flags & mbarrierFlag::remote, [&](unsigned l, MbarrierPlace place) {
    if (!useMbarrier(w, op, 1u << l, place))
      return Next::Fault;
    return countTx(w, op, 1u << l, place, bytes[l], 0);
  });
}

Next mbarrierWait(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  BlockState &block = *w.block;
  const bool forced = w.forced, tries = op.flags & mbarrierFlag::tries;
  w.forced = false;
  std::uint32_t *p = lanesOf<std::uint32_t>(w, op.d);
  std::uint32_t over = 0, at = 0;
  bool several = false;
  Mbarrier *last = nullptr;
  const Mbarrier *acquired = nullptr;
  const Next next = eachObject(w, op, false, [&](unsigned l, MbarrierPlace place) {
    several |= w.exec & ((1u << l) - 1) && place.offset != at;
    const bool same = last && place.offset == at;
    at = place.offset;
    Mbarrier *b = same ? last : useMbarrier(w, op, 1u << l, place);
    if (!b)
      return Next::Fault;
    if (isOver(w, op, l, place, *b)) {
      over |= 1u << l;
      b->observed = true;
      b->unseenBytes = false;
      if (block.timeline)
        block.timeline->observedPhases(place.offset, b->phase);
      if (block.races && acquired != b) {
        acquired = b;
        block.races->acquireFrom(w, b->released, op.flags & mbarrierFlag::relaxed);
      }
    }
    last = b;
    return Next::Advance;
  });
  if (next == Next::Fault)
    return next;
  if (!over && tries && !forced) {
    w.uncounted = w.exec;
    Split &s = detach(w, w.pc);
    s.state = SplitState::Mbarrier;
    s.waitsFor = several ? ~std::uint32_t(0) : at;
    return Next::Switch;
  }
  for (std::uint32_t m = w.exec; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    p[l] = over >> l & 1 ? ~0u : 0u;
  }
  if (over != w.exec)
    ++block.worker.polls;
  return Next::Advance;
}

Next mbarrierPendingCount(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const std::uint64_t *tokens = lanesOf<std::uint64_t>(w, op.s[1]);
  std::uint32_t *d = lanesOf<std::uint32_t>(w, op.d);
  for (std::uint32_t m = w.exec; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    const std::uint64_t token = tokens[l];
    if (token >> 60 != tokenTag && !countFinding(w, op, "mbarrier.state"))
      reportFinding(w, op, "mbarrier.state", 1u << l,
                    "the state" + laneText(l) + " is none that an arrival at an mbarrier gave", false);
    d[l] = static_cast<std::uint32_t>(token & mostArrivals);
  }
  return Next::Advance;
}

} // namespace kiln::emulator
