// bar and barrier: section 1.6 of the emulator specification.  Arrival is counted in warps of 32 threads.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/RegisterPool.h"

#include <cstdio>

namespace kiln::emulator {

namespace {

std::uint32_t *lanes(WarpState &w, Slot slot) {
  return reinterpret_cast<std::uint32_t *>(w.registers + slot);
}

bool complete(const BlockState &block, const BarrierState &b) {
  return b.count ? b.arrived >= b.count : (block.warpsAlive & ~b.warps) == 0;
}

void finish(BlockState &block, unsigned id) {
  BarrierState &b = block.barriers[id];
  std::uint32_t waited = 0;
  for (WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      Split &s = w.splits[i];
      if (s.state != SplitState::Barrier || s.barrier != id)
        continue;
      const Op &op = w.program->ops[s.pc];
      if (b.kind == ArrivalKind::Reduce && op.d != noSlot) {
        const auto how = static_cast<BarrierReduction>(op.flags);
        const std::uint32_t value = how == BarrierReduction::Popc  ? b.popc
                                    : how == BarrierReduction::And ? (b.all ? ~0u : 0u)
                                                                   : (b.any ? ~0u : 0u);
        std::uint32_t *d = lanes(w, op.d);
        for (std::uint32_t m = s.mask; m; m &= m - 1)
          d[__builtin_ctz(m)] = value;
      }
      s.pc += 1;
      s.state = SplitState::Ready;
      waited |= 1u << w.index;
    }
  if (block.races) {
    for (std::uint32_t m = waited; m; m &= m - 1)
      block.races->leave(block.warps[static_cast<unsigned>(__builtin_ctz(m))], id);
    block.races->completed(id, waited, block.warpsAlive);
  }
  b = {};
  ++block.worker.progress;
}

std::string warpList(std::uint32_t mask) {
  std::string text;
  for (; mask; mask &= mask - 1)
    text += (text.empty() ? "" : ",") + std::to_string(__builtin_ctz(mask));
  return text;
}

std::string progressText(const BlockState &block, const BarrierState &b) {
  const std::string who = b.warps ? ": warps " + warpList(b.warps) : "";
  if (b.count)
    return std::to_string(b.arrived) + " of " + std::to_string(b.count) + " threads arrived" + who;
  return std::to_string(__builtin_popcount(b.warps)) + " of " +
         std::to_string(__builtin_popcount(block.warpsAlive | b.warps)) + " warps arrived" + who;
}

void warpArrives(WarpState &w, const Op &op, ArrivalKind kind, unsigned id, BarrierState &b) {
  const std::uint32_t bit = 1u << w.index;
  if (b.warps & bit) {
    const std::string text = "warp arrived at " + w.program->point(b.lastPc[w.index]) + " and again before barrier " +
                             std::to_string(id) + " completed (" + progressText(*w.block, b) + ")";
    // A warp that stands in for another one's first arrival: both are counted, and it waits for the rest.  Of two
    // arrivals that do not wait the second may belong to the next generation, and nothing keeps it from this one.
    if (kind != ArrivalKind::Arrive && !(b.waiting & bit))
      reportNote(w, op, "barrier.twice", w.exec, text + "; both arrivals count, and it waits now");
    else
      reportFinding(w, op, "barrier.twice", w.exec, text, false);
  }
  b.warps |= bit;
  b.waiting = kind == ArrivalKind::Arrive ? b.waiting & ~bit : b.waiting | bit;
  b.arrived += warpSize;
  b.pending[w.index] = 0;
  b.lastPc[w.index] = w.pc;
}

void arriveGroup(WarpState &w, const Op &op, ArrivalKind kind, unsigned id, std::uint32_t count, std::uint32_t group,
                 Slot predicate) {
  BlockState &block = *w.block;
  BarrierState &b = block.barriers[id];
  if (!b.open) {
    b = {};
    b.open = true;
    b.kind = kind;
    b.count = count;
    b.openedPc = w.pc;
  } else {
    if (b.count != count)
      reportFinding(w, op, "barrier.count", group,
                    "barrier " + std::to_string(id) + " opened with " + (b.count ? std::to_string(b.count) : "all") +
                        " threads at " + w.program->point(b.openedPc) + ", now " +
                        (count ? std::to_string(count) : "all"),
                    false);
    if ((b.kind == ArrivalKind::Reduce) != (kind == ArrivalKind::Reduce))
      reportFinding(w, op, "barrier.mixed", group,
                    std::string(kind == ArrivalKind::Reduce ? "red"
                                : kind == ArrivalKind::Sync ? "sync"
                                                            : "arrive") +
                        " joins a generation opened by " +
                        (b.kind == ArrivalKind::Reduce ? "red"
                         : b.kind == ArrivalKind::Sync ? "sync"
                                                       : "arrive") +
                        " at " + w.program->point(b.openedPc),
                    false);
  }
  if (kind == ArrivalKind::Reduce) {
    b.kind = ArrivalKind::Reduce;
    const std::uint32_t *p = lanes(w, predicate);
    for (std::uint32_t m = group; m; m &= m - 1) {
      const bool yes = p[__builtin_ctz(m)] != 0;
      b.popc += yes;
      b.all &= yes;
      b.any |= yes;
    }
  }
  if (block.races)
    block.races->arrive(w, id);
  std::uint32_t &pending = b.pending[w.index];
  pending |= group;
  ++block.worker.progress;
  if (!(w.alive & ~pending))
    warpArrives(w, op, kind, id, b);
}

} // namespace

Next arriveAtBarrier(WarpState &w, const Op &op, ArrivalKind kind, Slot idSlot, Slot countSlot, Slot predicate) {
  BlockState &block = *w.block;
  const std::uint32_t *ids = lanes(w, idSlot);
  const std::uint32_t *counts = countSlot == noSlot ? nullptr : lanes(w, countSlot);
  const std::uint32_t limit = static_cast<std::uint32_t>(block.warps.size()) * warpSize;
  std::uint32_t touched = 0, blocked = 0;
  const std::uint32_t exec = w.exec;
  struct Group {
    std::uint32_t id, mask;
  } groups[warpSize];
  unsigned numGroups = 0;
  for (std::uint32_t todo = exec; todo;) {
    const unsigned first = static_cast<unsigned>(__builtin_ctz(todo));
    std::uint32_t group = 0;
    for (std::uint32_t m = todo; m; m &= m - 1) {
      const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
      if (ids[l] == ids[first] && (!counts || counts[l] == counts[first]))
        group |= 1u << l;
    }
    todo &= ~group;
    const std::uint32_t id = ids[first];
    if (id > 15) {
      reportFinding(w, op, "barrier.id", group, "barrier number " + std::to_string(id) + " is not in 0..15", true);
      return Next::Fault;
    }
    std::uint32_t count = counts ? counts[first] : 0;
    if (counts && (count == 0 || count % warpSize || count > limit)) {
      reportFinding(w, op, "barrier.count", group,
                    "barrier " + std::to_string(id) + " with " + std::to_string(count) +
                        " threads: the count must be a multiple of 32 from 32 to " + std::to_string(limit) +
                        ", the threads of the block",
                    false);
      count = count == 0 ? 0 : (count + warpSize - 1) / warpSize * warpSize;
    }
    w.exec = group;
    arriveGroup(w, op, kind, id, count, group, predicate);
    touched |= 1u << id;
    if (kind != ArrivalKind::Arrive) {
      blocked |= group;
      groups[numGroups++] = {id, group};
    }
  }
  w.exec = exec;
  if (kind == ArrivalKind::Arrive) {
    for (; touched; touched &= touched - 1) {
      const unsigned id = static_cast<unsigned>(__builtin_ctz(touched));
      if (complete(block, block.barriers[id]))
        finish(block, id);
    }
    return Next::Advance;
  }
  // The arrived lanes wait as splits of their own, one a barrier.
  w.exec = blocked;
  Split &s = detach(w, w.pc);
  s.mask = groups[0].mask;
  s.state = SplitState::Barrier;
  s.barrier = static_cast<std::uint8_t>(groups[0].id);
  const unsigned depth = s.depth;
  for (unsigned i = 1; i < numGroups; ++i) {
    Split &more = addSplit(w, w.pc, groups[i].mask, depth);
    more.state = SplitState::Barrier;
    more.barrier = static_cast<std::uint8_t>(groups[i].id);
  }
  for (; touched; touched &= touched - 1) {
    const unsigned id = static_cast<unsigned>(__builtin_ctz(touched));
    if (complete(block, block.barriers[id]))
      finish(block, id);
  }
  return Next::Switch;
}

void recheckBarriers(BlockState &block) {
  for (unsigned id = 0; id < 16; ++id) {
    BarrierState &b = block.barriers[id];
    if (!b.open)
      continue;
    for (WarpState &w : block.warps)
      if (b.pending[w.index] && !(w.alive & ~b.pending[w.index])) {
        b.warps |= 1u << w.index;
        b.arrived += warpSize;
        b.pending[w.index] = 0;
        b.lastPc[w.index] = b.openedPc;
      }
    if (complete(block, b))
      finish(block, id);
  }
  if (block.worker.launch.program->usesCluster)
    recheckClusterBarrier(block.cluster);
}

std::string describeWaiting(const BlockState &block) {
  std::string text;
  for (const WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      const Split &s = w.splits[i];
      text += text.empty() ? "" : "; ";
      if (!block.cluster.isAlone())
        text += "block " + blockText(block.linear, block.worker.launch.grid) + " ";
      text += "warp " + std::to_string(w.index);
      if (s.mask != w.alive) {
        char lanesText[32];
        std::snprintf(lanesText, sizeof lanesText, " lanes 0x%08x", s.mask);
        text += lanesText;
      }
      if (s.state == SplitState::Barrier)
        text += " waits bar " + std::to_string(s.barrier) + " (" + progressText(block, block.barriers[s.barrier]) + ")";
      else if (s.state == SplitState::Cluster)
        text += describeClusterWait(block.cluster);
      else if (s.state == SplitState::AsyncGroup || s.state == SplitState::Mbarrier)
        text += describeAsyncWait(block, w, s);
      else if (s.state == SplitState::Registers)
        text += describeRegisterWait(block, w, s);
      else if (s.state == SplitState::Parked)
        text += " waits for other lanes";
      else
        text += " runs";
      text += " at " + w.program->point(s.pc);
    }
  return text;
}

} // namespace kiln::emulator
