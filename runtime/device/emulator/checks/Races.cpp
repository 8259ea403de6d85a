// Accesses meet the cells of the words that they touch.
#include "runtime/device/emulator/checks/RaceTouch.h"
#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include <algorithm>
#include <utility>

namespace kiln::emulator {

namespace {

/// laneRead: more than one lane.
constexpr std::uint8_t severalLanes = 0xFF;

class Locked {
public:
  Locked(LaunchRaces::Shard &shard, bool needed) : shard(needed ? &shard : nullptr) {
    while (this->shard && this->shard->busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Locked() {
    if (shard)
      shard->busy.clear(std::memory_order_release);
  }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

private:
  LaunchRaces::Shard *shard;
};

/// Calls f(lane, n) with the runs of executing lanes whose accesses follow each other: those of lanes lane..lane+n-1.
/// repeats: lanes that access the same bytes as the one before belong to its run, and n counts it once.
template <typename Fn> void eachRun(const LaneAccess &m, std::uint32_t lanes, bool repeats, Fn f) {
  while (lanes) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
    const std::uint64_t first = m.at[lane];
    std::uint64_t last = first;
    unsigned n = 1, l = lane + 1;
    for (; l < warpSize && lanes >> l & 1; ++l) {
      if (m.at[l] == last + m.bytes)
        ++n;
      else if (!repeats || m.at[l] != last)
        break;
      last = m.at[l];
    }
    f(lane, n);
    lanes &= l < warpSize ? ~std::uint32_t(0) << l : 0;
  }
}

/// The bytes of word `word` (a multiple of 4) that [first, first + n) covers.
inline std::uint8_t bytesOf(std::uint64_t word, std::uint64_t first, std::uint64_t n) {
  const std::uint64_t low = std::max(word, first) - word, high = std::min(word + 4, first + n) - word;
  return static_cast<std::uint8_t>((1u << high) - (1u << low));
}

/// Whether `n` cells say the same; if so, what.  Everything before `first` is the same as 0.
inline bool sayTheSame(const std::uint32_t *cells, std::size_t n, std::uint32_t first, std::uint32_t &state) {
  std::uint32_t different = 0, highest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    different |= cells[i] ^ cells[0];
    highest = std::max(highest, cells[i]);
  }
  state = highest < first ? 0 : cells[0];
  return different == 0 || highest < first;
}

} // namespace

void LaunchRaces::start(unsigned workers) {
  locked = workers > 1;
  const std::size_t wanted = locked ? 64 : 1;
  // Numbers of earlier launches, whose shards may have been others, must lie below all new ones.
  std::uint32_t first = 1;
  wornOut = false;
  for (const auto &shard : shards) {
    first = std::max(first, shard->table.nextState());
    wornOut |= shard->table.wornOut();
  }
  if (shards.size() != wanted || wornOut) {
    shards.clear();
    for (std::size_t i = 0; i < wanted; ++i)
      shards.push_back(std::make_unique<Shard>());
  }
  // At first so many states that they are about four thirds as large as the memory in use.
  const std::size_t states = (memory ? memory->used() : 0) / 3 * 4 / RaceTable::bytesOfState;
  for (const auto &shard : shards) {
    shard->table.startAt(wornOut ? 1 : first);
    shard->table.setLimit(std::clamp(states, smallest, mostStates) / wanted);
  }
  published.clear();
  mostShared = 0;
}

BlockRaces *BlockRaces::homeOf(std::uint64_t address) {
  if (address - sharedFirst < sharedBytes)
    return this;
  for (BlockRaces *p : peers)
    if (address - p->sharedFirst < p->sharedBytes)
      return p;
  return nullptr;
}

void LaunchRaces::makeRoom(Shard &shard) {
  // Accesses of blocks that have left stay: nothing orders other blocks after them.
  shard.table.sweep(
      [&](auto f) {
        memory->eachLive([&](const Allocation &a) {
          constexpr std::uint64_t chunk = std::uint64_t(1) << shardBits;
          for (std::uint64_t at = a.begin; at < a.end();) {
            const std::uint64_t end = std::min((at | (chunk - 1)) + 1, a.end());
            if (&shardOf(at) == &shard)
              f(std::span(cells + (at - base) / 4, cells + (end - base + 3) / 4));
            at = end;
          }
        });
      },
      [](const Access &) { return false; });
  if (shard.table.crowded() && !shard.table.grow(mostStates / shards.size()))
    shard.table.reset();
}

std::size_t LaunchRaces::bytes() const {
  std::size_t sum = 0;
  for (const auto &shard : shards)
    sum += shard->table.bytes();
  return sum;
}

void LaunchRaces::noteShared(std::size_t held) {
  std::size_t seen = mostShared.load(std::memory_order_relaxed);
  while (held > seen && !mostShared.compare_exchange_weak(seen, held)) {
  }
}

void BlockRaces::record(WarpState &w, const Op &op, const LaneAccess &m, AccessRole role) {
  const unsigned space = op.flags & access::spaceMask;
  if (space == access::local || space == access::constant || space == access::param)
    return;
  const std::uint64_t at = m.contiguous || m.uniform ? m.first : m.at[__builtin_ctz(w.exec)];
  BlockRaces *const home = homeOf(at);
  if (!home && (at - launch.base >= launch.bytesOfMemory || !launch.cells))
    return; // generic addresses of local memory and parameters
  settleSides(w);
  Touch t{*this, w, op, &m, {}, {clocks[w.index], w}, home, home ? home->sharedFirst : 0};
  Access &a = t.access;
  a.row = linear;
  a.op = static_cast<std::uint32_t>(&op - w.program->ops.data());
  a.lanes = w.exec;
  a.warp = static_cast<std::uint8_t>(w.index);
  a.bytes = static_cast<std::uint8_t>(m.bytes);
  a.write = role != AccessRole::Read;
  a.read = role != AccessRole::Write;
  a.strong = role == AccessRole::Atomic || op.flags & access::strong;
  a.wide = a.strong && !(op.flags & access::ctaScope);
  a.regular = m.contiguous;
  a.first = m.first - t.origin;
  // What it acquires counts for the access itself, what it releases is what came before it.
  if (a.strong)
    synchroniseAll(t, home);
  a.clock = clocks[w.index].own[w.index];
  a.syncs = w.syncs;
  t.sameLanes = !clocks[w.index].sides.empty();
  if (!home)
    recordGlobal(t);
  else if (!home->block->async || !home->touchesObject(t))
    home->recordShared(t);
}

void BlockRaces::synchroniseAll(Touch &t, bool inShared) {
  // Without several blocks on one worker nobody could acquire through global memory.
  if (!inShared && launch.locked)
    return;
  auto &places = inShared ? t.home->published : launch.published;
  const WarpClocks &c = clocks[t.w.index];
  if (places.empty() && !c.fenced && !(t.op.flags & (access::acquire | access::release)))
    return;
  eachLane(t.w.exec, [&](unsigned l) {
    const std::uint64_t at = t.m->address(l);
    const auto found = places.find(at);
    synchronise(t.w, t.op, {at, t.access.read, t.access.write, t.access.wide},
                found == places.end() ? nullptr : &found->second, places);
  });
}

void BlockRaces::recordShared(Touch &t) {
  makeRoom();
  if (&t.self == this) {
    WarpClocks &c = clocks[t.w.index];
    c.lastAccess = t.access.clock;
    c.lastWrite = t.access.write ? t.access.clock : c.lastWrite;
  } else {
    outsiders[t.access.row][t.access.warp] = t.access.clock;
    noteOutsider(t);
  }
  t.number = shared.number(t.access, false, t.sameLanes);
  const LaneAccess &m = *t.m;
  if (m.contiguous)
    touchShared(t, m.first - t.origin, warpSize * m.bytes, 0, m.bytes);
  else if (m.uniform)
    touchShared(t, m.first - t.origin, m.bytes,
                t.access.lanes & (t.access.lanes - 1) ? severalLanes
                                                      : static_cast<unsigned>(__builtin_ctz(t.access.lanes)),
                m.bytes);
  else
    eachRun(m, t.w.exec, false, [&](unsigned l, unsigned n) {
      touchShared(t, m.at[l] - t.origin, n * std::uint64_t(m.bytes), l, m.bytes);
    });
}

/// Whether it is remembered which lanes made an access: of the warp's own ones, and of what it copies with cp.async.
static bool ofLanes(const Access &a) {
  return !a.async() || kindOfRow(a.row) == AgentKind::CopyAsync;
}

/// Bytes [first, first + bytes) of shared memory, `laneBytes` a lane from `lane` on; severalLanes: each by all lanes.
void BlockRaces::touchShared(Touch &t, std::uint64_t first, std::uint64_t bytes, unsigned lane, unsigned laneBytes) {
  // The common case: whole words of one state.
  std::uint32_t state;
  if (laneBytes >= 4 && lane != severalLanes && sayTheSame(&cells[first / 4], bytes / 4, shared.firstState(), state)) {
    const Transition step = shared.apply(state, t.number, 15, t.order);
    if (!(step.collides | step.laneWrites | step.laneReads | step.readBefore)) [[likely]] {
      std::fill_n(&cells[first / 4], bytes / 4, step.next);
      if (!ofLanes(t.access))
        return;
      std::uint8_t *to = (t.access.write ? laneWrote : laneRead).data() + first;
      const unsigned shift = static_cast<unsigned>(__builtin_ctz(laneBytes)) - 2;
      for (unsigned i = 0; i < bytes / 4; ++i) {
        const std::uint32_t four = (lane + (i >> shift)) * 0x01010101u;
        __builtin_memcpy(to + i * std::size_t(4), &four, 4);
      }
      return;
    }
  }
  std::uint32_t last = ~0u;
  std::uint8_t lastMask = 0;
  Transition step;
  const std::uint64_t end = first + bytes;
  for (std::uint64_t word = first & ~std::uint64_t(3); word < end; word += 4) {
    const std::uint8_t mask = bytesOf(word, first, bytes);
    std::uint32_t &cell = cells[word / 4];
    if (cell != last || mask != lastMask) {
      last = cell;
      lastMask = mask;
      step = shared.apply(cell, t.number, mask, t.order);
    }
    cell = step.next;
    if (step.collides) [[unlikely]]
      report(t, shared.access(step.collides - 1), word, true, step.unseen);
    // Atomics of lanes go in some order anyway.
    if ((step.laneWrites | step.laneReads | step.readBefore) || mask != 15 || laneBytes < 4) {
      for (unsigned i = 0; i < 4; ++i)
        if (mask >> i & 1) {
          const std::uint64_t at = word + i;
          lanesInByte(t, step, at,
                      lane == severalLanes ? lane : lane + static_cast<unsigned>((at - first) / laneBytes));
        }
    } else if (ofLanes(t.access)) {
      const auto l = static_cast<std::uint8_t>(lane == severalLanes ? lane : lane + (word - first) / laneBytes);
      std::uint8_t *to = (t.access.write ? laneWrote : laneRead).data() + word;
      to[0] = to[1] = to[2] = to[3] = l;
    }
  }
}

void BlockRaces::lanesInByte(Touch &t, const Transition &step, std::uint64_t at, unsigned lane) {
  const unsigned bit = 1u << (at & 3);
  auto differs = [&](std::uint8_t then) { return then != lane || then == severalLanes; };
  auto lanesOf = [](std::uint8_t then) { return then == severalLanes ? 0u : 1u << (then & 31); };
  if (step.laneWrites & bit && differs(laneWrote[at]))
    reportLanes(t, shared.access(step.sameWarp - 1), at, lane, lanesOf(laneWrote[at]));
  else if (step.laneReads & bit && differs(laneRead[at]))
    reportLanes(t, shared.access(step.sameWarp - 1), at, lane, lanesOf(laneRead[at]));
  if (!ofLanes(t.access))
    return;
  const auto l = static_cast<std::uint8_t>(lane);
  if (t.access.write)
    laneWrote[at] = l;
  else
    laneRead[at] = step.readBefore & bit && laneRead[at] != l ? severalLanes : l;
}

/// Bytes [first, first + n) of a memory whose cells these are, without regard to lanes.  The cells of global memory
/// begin at `*globalBase`, null: shared memory.
inline void BlockRaces::touchWords(Touch &t, RaceTable &table, std::uint32_t *cells, std::uint64_t first,
                                   std::uint64_t n, const std::uint64_t *globalBase) {
  std::uint32_t state;
  if ((first | n) % 4 == 0 && sayTheSame(&cells[first / 4], n / 4, table.firstState(), state)) {
    const Transition step = table.apply(state, t.number, 15, t.order);
    if (!step.collides) [[likely]] {
      if (step.next != state || !state)
        std::fill_n(&cells[first / 4], n / 4, step.next);
      return;
    }
  }
  std::uint32_t last = ~0u;
  std::uint8_t lastMask = 0;
  Transition step;
  for (std::uint64_t word = first & ~std::uint64_t(3); word < first + n; word += 4) {
    const std::uint8_t mask = bytesOf(word, first, n);
    std::uint32_t &cell = cells[word / 4];
    if (cell != last || mask != lastMask) {
      last = cell;
      lastMask = mask;
      step = table.apply(cell, t.number, mask, t.order);
    }
    if (cell != step.next)
      cell = step.next;
    if (step.collides) [[unlikely]]
      report(t, table.access(step.collides - 1), word + (globalBase ? *globalBase : 0), !globalBase, step.unseen);
  }
}

void BlockRaces::touchGlobal(Touch &t, std::uint64_t first, std::uint64_t bytes) {
  constexpr std::uint64_t shardBytes = std::uint64_t(1) << LaunchRaces::shardBits;
  while (bytes) {
    const std::uint64_t n = std::min(bytes, shardBytes - first % shardBytes);
    LaunchRaces::Shard &shard = launch.shardOf(first);
    const Locked lock(shard, launch.locked);
    RaceTable &table = shard.table;
    if (table.full())
      launch.makeRoom(shard);
    if (t.numberedBy != &table || !table.holds(t.number)) {
      const std::uint64_t bit = std::uint64_t(1) << (first >> LaunchRaces::shardBits) % launch.shards.size();
      t.number = table.number(t.access, t.fresh && !(t.numberedShards & bit), t.sameLanes);
      t.numberedBy = &table;
      t.numberedShards |= bit;
    }
    touchWords(t, table, launch.cells, first - launch.base, n, &launch.base);
    first += n;
    bytes -= n;
  }
}

void BlockRaces::recordGlobal(Touch &t) {
  const LaneAccess &m = *t.m;
  if (m.contiguous)
    touchGlobal(t, m.first, warpSize * std::uint64_t(m.bytes));
  else if (m.uniform)
    touchGlobal(t, m.first, m.bytes);
  else
    eachRun(m, t.w.exec, true, [&](unsigned l, unsigned n) { touchGlobal(t, m.at[l], n * std::uint64_t(m.bytes)); });
}

// --- Agents that are no warps: here, because they touch words as these do ------

void BlockRaces::recordAsync(std::span<WarpState *const> issuers, const Op &op, const AsyncAgent &agent,
                             std::span<const AsyncRange> ranges, bool write) {
  WarpState &w = *issuers[0];
  Touch t{*this, w, op, nullptr, {}, WarpOrder(linear, issuers.size() > 1 ? fullMask : w.exec)};
  Access &a = t.access;
  t.sameLanes = true;
  for (WarpState *i : issuers) {
    settleSides(*i);
    WarpClocks &c = clocks[i->index];
    // What its lanes have done together counts for what comes first (Order::apart), so it must tell accesses apart.
    if (std::exchange(c.syncs, i->syncs) != i->syncs)
      bump(i->index);
    t.order.add(c, *i);
    a.syncs += c.own[i->index];
  }
  const std::uint8_t oneLane = issuers.size() == 1 && !(w.exec & (w.exec - 1))
                                   ? static_cast<std::uint8_t>(__builtin_ctz(w.exec))
                                   : AsyncRange::issuer;
  a.row = agent.row;
  a.warp = agent.index;
  a.clock = agent.epoch;
  a.first = linear;
  a.issuer = static_cast<std::uint8_t>(w.index);
  a.op = static_cast<std::uint32_t>(&op - w.program->ops.data());
  a.lanes = w.exec;
  a.write = write;
  a.read = !write || agent.atomic;
  a.strong = a.wide = write && agent.atomic;
  a.asyncProxy = agent.asyncProxy;
  // Writes of one agent and epoch may overlap, which is a race: they must be told apart.
  t.fresh = write;
  for (const AsyncRange &range : ranges) {
    if (!range.bytes)
      continue;
    BlockRaces *const home = homeOf(range.address);
    if (home) {
      t.order.proxy = sharedProxyBit;
      t.origin = home->sharedFirst;
      if (home != t.home) {
        t.home = home;
        home->makeRoom();
        t.number = home->shared.number(a, t.fresh);
        t.numberedBy = nullptr;
        std::uint32_t &last = home->outsiders[a.row][a.warp];
        last = std::max(last, a.clock);
        if (home != this)
          home->noteOutsider(t);
      }
      if (home->block->async && home->touchesObject(t, range))
        continue;
      const std::uint64_t first = range.address - home->sharedFirst;
      constexpr unsigned allBytes = 1u << 31;
      if (range.lane != AsyncRange::issuer)
        home->touchShared(t, first, range.bytes, range.lane, range.laneBytes);
      else if (oneLane != AsyncRange::issuer)
        home->touchShared(t, first, range.bytes, oneLane, allBytes);
      else
        touchWords(t, home->shared, home->cells.data(), first, range.bytes, nullptr);
    } else if (range.address - launch.base < launch.bytesOfMemory && launch.cells) {
      t.order.proxy = agent.ofMap ? mapProxyBit : globalProxyBit;
      t.home = nullptr;
      t.origin = 0;
      touchGlobal(t, range.address, range.bytes);
    }
  }
}

} // namespace kiln::emulator
