// Who knows of whom: releases, acquires, barriers, fences.
#include "runtime/device/emulator/Executor.h"
#include "runtime/device/emulator/MemoryFaults.h"
#include "runtime/device/emulator/Races.h"

#include <algorithm>

namespace kiln::emulator {

static void joinRow(ClockRow &into, const ClockRow &from) {
  for (unsigned i = 0; i < warpSize; ++i)
    into[i] = std::max(into[i], from[i]);
}

void joinKnowledge(Knowledge &into, const Knowledge &from) {
  for (const auto &[block, row] : from)
    joinRow(into[block], row);
}

static std::shared_ptr<const Knowledge> joined(const std::shared_ptr<const Knowledge> &a,
                                               const std::shared_ptr<const Knowledge> &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  auto both = std::make_shared<Knowledge>(*a);
  joinKnowledge(*both, *b);
  return both;
}

/// Of a block's shared memory.  Thousands of blocks may be resident, so these are small.
static RaceTable sharedTable() {
  return RaceTable(std::size_t(1) << 20, 9);
}

BlockRaces::BlockRaces(LaunchRaces &launch, std::size_t warps, std::uint32_t sharedBytes)
    : launch(launch), clocks(warps), shared(sharedTable()), cells((sharedBytes + 3) / 4 + 1, 0),
      laneWrote(sharedBytes + 4, 0), laneRead(sharedBytes + 4, 0) {}

void BlockRaces::start() {
  for (unsigned w = 0; w < clocks.size(); ++w) {
    clocks[w] = {};
    clocks[w].own[w] = 1;
  }
  for (BarrierClock &b : barriers)
    b = {};
  published.clear();
  if (shared.wornOut()) {
    shared = sharedTable();
    std::fill(cells.begin(), cells.end(), 0);
  }
  shared.reset();
}

void BlockRaces::arrive(WarpState &w, unsigned barrier) {
  WarpClocks &c = clocks[w.index];
  joinRow(barriers[barrier].own, c.own);
  barriers[barrier].others = joined(barriers[barrier].others, c.others);
  bump(w.index);
}

void BlockRaces::leave(WarpState &w, unsigned barrier) {
  WarpClocks &c = clocks[w.index];
  joinRow(c.own, barriers[barrier].own);
  c.others = joined(c.others, barriers[barrier].others);
}

void BlockRaces::completed(unsigned barrier, std::uint32_t waited, std::uint32_t alive) {
  // Whoever goes on knows everything that happened in the block so far: nothing of it can collide any more.
  bool all = waited == alive;
  for (unsigned w = 0; all && w < clocks.size(); ++w)
    all = barriers[barrier].own[w] >= clocks[w].lastAccess;
  if (all)
    shared.reset();
  barriers[barrier] = {};
}

Knowledge BlockRaces::everything(unsigned warp, std::uint64_t block) const {
  Knowledge out;
  if (clocks[warp].others)
    out = *clocks[warp].others;
  joinRow(out[block], clocks[warp].own);
  return out;
}

void BlockRaces::join(unsigned warp, const Knowledge &k, std::uint64_t block, bool all) {
  WarpClocks &c = clocks[warp];
  if (const auto own = k.find(block); own != k.end())
    joinRow(c.own, own->second);
  if (!all || k.empty() || (k.size() == 1 && k.begin()->first == block))
    return;
  auto others = c.others ? std::make_shared<Knowledge>(*c.others) : std::make_shared<Knowledge>();
  joinKnowledge(*others, k);
  others->erase(block);
  c.others = std::move(others);
}

void BlockRaces::fence(WarpState &w, bool narrow) {
  const std::uint64_t block = w.block->linear;
  WarpClocks &c = clocks[w.index];
  join(w.index, c.pendingNarrow, block, false);
  join(w.index, c.pendingWide, block, !narrow);
  if (!narrow)
    c.pendingWide.clear();
  c.pendingNarrow.clear();
  c.fenced = true;
  c.fenceNarrow = {{block, c.own}};
  if (!narrow)
    c.fenceWide = everything(w.index, block);
  bump(w.index);
}

/// A strong access at one location.
void BlockRaces::synchronise(WarpState &w, const Op &op, const StrongAccess &s, Published *at,
                             std::unordered_map<std::uint64_t, Published> &places) {
  const std::uint64_t block = w.block->linear;
  WarpClocks &c = clocks[w.index];
  if (s.reads && at) {
    if (op.flags & access::acquire) {
      join(w.index, at->wide, block, s.wide);
      if (const auto own = at->narrow.find(block); own != at->narrow.end())
        joinRow(c.own, own->second);
      bump(w.index);
    } else {
      if (s.wide)
        joinKnowledge(c.pendingWide, at->wide);
      for (const Knowledge *k : {&at->wide, &at->narrow})
        if (const auto own = k->find(block); own != k->end())
          joinRow(c.pendingNarrow[block], own->second);
    }
  }
  if (!s.writes)
    return;
  const bool releases = op.flags & access::release;
  if (!releases && !c.fenced) {
    if (at && !s.reads) // a store of a value that nothing was released with
      places.erase(s.address);
    return;
  }
  Published &p = at ? *at : places[s.address];
  if (!s.reads)
    p = {};
  if (releases) {
    joinRow(p.narrow[block], c.own);
    if (s.wide)
      joinKnowledge(p.wide, everything(w.index, block));
    bump(w.index);
  } else {
    joinKnowledge(p.narrow, c.fenceNarrow);
    if (s.wide)
      joinKnowledge(p.wide, c.fenceWide);
  }
}

} // namespace kiln::emulator
