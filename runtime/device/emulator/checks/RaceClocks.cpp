// Who knows of whom: releases, acquires, barriers, fences.
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include <algorithm>

namespace kiln::emulator {

void Knowledge::join(const Knowledge &from) {
  auto at = rows.begin();
  for (const Entry &e : from.rows) {
    while (at != rows.end() && at->first < e.first)
      ++at;
    if (at != rows.end() && at->first == e.first)
      joinRow(at->second, e.second);
    else
      at = rows.insert(at, e);
  }
}

bool Knowledge::covers(const Knowledge &from, std::uint64_t except) const {
  auto at = rows.begin();
  for (const Entry &e : from.rows) {
    if (e.first == except)
      continue;
    while (at != rows.end() && at->first < e.first)
      ++at;
    if (at == rows.end() || at->first != e.first || !coversRow(at->second, e.second))
      return false;
  }
  return true;
}

static std::shared_ptr<const Knowledge> joined(const std::shared_ptr<const Knowledge> &a,
                                               const std::shared_ptr<const Knowledge> &b) {
  if (!b || a == b)
    return a;
  if (!a || b->covers(*a))
    return b;
  if (a->covers(*b))
    return a;
  auto both = std::make_shared<Knowledge>(*a);
  joinKnowledge(*both, *b);
  return both;
}

/// Of a block's shared memory.  Thousands of blocks may be resident, so these are small: at first they hold so many
/// states that they are about three times as large as the memory (BlockRaces::makeRoom).
static RaceTable sharedTable(std::uint64_t sharedBytes) {
  return RaceTable(std::max<std::size_t>(3 * sharedBytes / RaceTable::bytesOfState, 512), 9);
}

BlockRaces::BlockRaces(LaunchRaces &launch, std::size_t warps, std::uint32_t sharedBytes)
    : launch(launch), sharedBytes(sharedBytes), clocks(warps), shared(sharedTable(sharedBytes)),
      cells((sharedBytes + 3) / 4 + 1, 0), laneWrote(sharedBytes + 4, 0), laneRead(sharedBytes + 4, 0) {}

BlockRaces::~BlockRaces() {
  launch.noteShared(bytes());
}

std::size_t BlockRaces::bytes() const {
  return shared.bytes() + cells.capacity() * sizeof(cells[0]) + laneWrote.capacity() + laneRead.capacity();
}

void BlockRaces::start(BlockState &b) {
  launch.noteShared(bytes());
  block = &b;
  linear = b.linear;
  sharedFirst = reinterpret_cast<std::uint64_t>(b.shared);
  peers.clear();
  outsiders.clear();
  outsideUses.clear();
  for (unsigned w = 0; w < clocks.size(); ++w) {
    clocks[w] = {};
    clocks[w].own[w] = 1;
  }
  for (BarrierClock &barrier : barriers)
    barrier = {};
  published.clear();
  if (shared.wornOut()) {
    shared = sharedTable(sharedBytes);
    std::fill(cells.begin(), cells.end(), 0);
  }
  shared.reset();
}

void BlockRaces::arrive(WarpState &w, unsigned barrier) {
  joinSides(w);
  WarpClocks &c = clocks[w.index];
  joinRow(barriers[barrier].own, c.own);
  barriers[barrier].others = joined(barriers[barrier].others, c.others);
  bump(w.index);
}

void BlockRaces::leave(WarpState &w, unsigned barrier) {
  WarpClocks &c = clocks[w.index];
  c.met = std::max(c.met, barriers[barrier].own[w.index]);
  joinRow(c.own, barriers[barrier].own);
  c.others = joined(c.others, barriers[barrier].others);
  bump(w.index);
}

bool BlockRaces::everythingIsKnown(const ClockRow &own, const Knowledge *others) const {
  for (unsigned w = 0; w < clocks.size(); ++w)
    if (own[w] < clocks[w].lastAccess)
      return false;
  if (!outsiders.empty() && !(others && others->covers(outsiders)))
    return false;
  if (!block->worker.launch.program->usesAsyncProxy)
    return true;
  // What the async proxy may not see yet is remembered, or a missing fence would be forgiven.
  for (unsigned w = 0; w < clocks.size(); ++w) {
    const std::uint32_t last = block->worker.launch.strictProxy ? clocks[w].lastAccess : clocks[w].lastWrite;
    if (last && !(others && others->reaches(linear | sharedProxyBit, w, last)))
      return false;
  }
  for (const auto &[row, clock] : outsiders) {
    const AgentKind kind = kindOfRow(row);
    if (kind != AgentKind::Warp && kind != AgentKind::CopyAsync)
      continue;
    const ClockRow *visible = others->find(row | sharedProxyBit);
    if (!visible || !coversRow(*visible, clock))
      return false;
  }
  return true;
}

void BlockRaces::completed(unsigned barrier, std::uint32_t waited, std::uint32_t alive) {
  // If whoever goes on knows everything that happened in the block's shared memory, nothing of it can collide any more.
  BarrierClock &b = barriers[barrier];
  if (waited == alive && peers.empty() && everythingIsKnown(b.own, b.others.get())) {
    shared.reset();
    outsiders.clear();
  }
  b = {};
}

bool BlockRaces::settled(const Access &a) const {
  const Launch &launched = block->worker.launch;
  const bool mayBeUnseen = (a.write || launched.strictProxy) && !a.asyncProxy && launched.program->usesAsyncProxy;
  auto inBlock = [&](const BlockRaces &races) {
    for (const WarpState &w : races.block->warps) {
      const WarpClocks &c = races.clocks[w.index];
      const bool goesOn = a.row == races.linear && a.warp == w.index && a.clock >= c.own[w.index];
      auto knows = [&](std::uint64_t row) { return c.knows(races.linear, w.index, w.alive, row, a.warp, a.clock); };
      if (!w.exited() && (goesOn || !knows(a.row) || (mayBeUnseen && !knows(a.row | sharedProxyBit))))
        return false;
    }
    return true;
  };
  return inBlock(*this) && std::all_of(peers.begin(), peers.end(), [&](const BlockRaces *p) { return inBlock(*p); });
}

void BlockRaces::makeRoom() {
  constexpr std::size_t mostStates = std::size_t(1) << 20;
  if (!shared.full())
    return;
  shared.sweep([this](auto f) { f(std::span(cells)); }, [this](const Access &a) { return settled(a); });
  // Sweeps must stay rare.  A table that cannot grow any more forgets.
  if (shared.crowded() && !shared.grow(mostStates))
    shared.reset();
}

void BlockRaces::joinCluster(std::span<BlockRaces *const> blocks) {
  peers.clear();
  for (BlockRaces *b : blocks)
    if (b != this)
      peers.push_back(b);
}

Knowledge BlockRaces::everything(const WarpState &w) const {
  const WarpClocks &c = clocks[w.index];
  Knowledge out;
  if (c.others)
    out = *c.others;
  joinRow(out[linear], c.own);
  for (const WarpClocks::Side &s : c.sides)
    if (!(w.exec & ~s.lanes))
      out.join(s.known);
  return out;
}

void BlockRaces::acquire(WarpState &w, const Knowledge &k, bool ownCopies) {
  settleSides(w);
  WarpClocks &c = clocks[w.index];
  bump(w.index);
  if (k.empty())
    return;
  const bool alone = !(w.alive & (w.alive - 1));
  if (w.exec == w.alive && (!ownCopies || alone))
    return join(w.index, k);
  if (const ClockRow *own = k.find(linear))
    c.met = std::max(c.met, (*own)[w.index]);
  for (WarpClocks::Side &s : c.sides)
    if (s.lanes == w.exec && s.ownCopies == ownCopies)
      return s.known.join(k);
  c.sides.push_back({w.exec, w.syncs, ownCopies, k});
}

void BlockRaces::joinSides(WarpState &w) {
  WarpClocks &c = clocks[w.index];
  if (c.sides.empty())
    return;
  for (const WarpClocks::Side &s : c.sides)
    join(w.index, s.known);
  c.sides.clear();
  bump(w.index);
}

void BlockRaces::settleSides(WarpState &w) {
  const WarpClocks &c = clocks[w.index];
  if (!c.sides.empty() && c.sides.front().syncs != w.syncs)
    joinSides(w);
}

void BlockRaces::join(unsigned warp, const Knowledge &k) {
  WarpClocks &c = clocks[warp];
  if (const ClockRow *own = k.find(linear)) {
    c.met = std::max(c.met, (*own)[warp]);
    joinRow(c.own, *own);
  }
  const Knowledge nothing;
  if ((c.others ? *c.others : nothing).covers(k, linear))
    return;
  auto others = c.others ? std::make_shared<Knowledge>(*c.others) : std::make_shared<Knowledge>();
  others->join(k);
  others->erase(linear);
  c.others = std::move(others);
}

void BlockRaces::fence(WarpState &w, bool narrow) {
  WarpClocks &c = clocks[w.index];
  acquire(w, c.pendingNarrow);
  c.pendingNarrow.clear();
  if (!narrow) {
    acquire(w, c.pendingWide);
    c.pendingWide.clear();
  }
  c.fenced = true;
  c.fenceNarrow = everything(w);
  if (!narrow)
    c.fenceWide = c.fenceNarrow;
  bump(w.index);
}

/// A strong access at one location.
void BlockRaces::synchronise(WarpState &w, const Op &op, const StrongAccess &s, Published *at,
                             std::unordered_map<std::uint64_t, Published> &places) {
  WarpClocks &c = clocks[w.index];
  if (s.reads && at) {
    const bool acquires = op.flags & access::acquire;
    if (s.wide)
      acquires ? acquire(w, at->wide) : c.pendingWide.join(at->wide);
    if (const auto own = at->narrow.find(linear); own != at->narrow.end())
      acquires ? acquire(w, own->second) : c.pendingNarrow.join(own->second);
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
    const Knowledge all = everything(w);
    p.narrow[linear].join(all);
    if (s.wide)
      p.wide.join(all);
    bump(w.index);
  } else {
    p.narrow[linear].join(c.fenceNarrow);
    if (s.wide)
      p.wide.join(c.fenceWide);
  }
}

} // namespace kiln::emulator
