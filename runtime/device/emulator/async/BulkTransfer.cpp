#include "runtime/device/emulator/async/BulkTransfer.h"

#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/matrix/Wgmma.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/Counting.h"

#include <algorithm>
#include <cstring>

namespace kiln::emulator {

// --- operands -------------------------------------------------------------------

template <typename T> static T laneOf(const Warp &w, Slot slot, unsigned l) {
  return reinterpret_cast<const T *>(w.registers + slot)[l];
}

std::uint32_t bulkOperand(const Warp &w, const Op &op, unsigned which, unsigned l) {
  return laneOf<std::uint32_t>(w, w.pool[op.aux + which], l);
}

std::uint64_t bulkAddress(const Warp &w, const Op &op, unsigned which, unsigned l) {
  const std::uint16_t narrow = which == bulkSlot::To     ? bulkFlag::to32
                               : which == bulkSlot::From ? bulkFlag::from32
                                                         : bulkFlag::barrier32;
  const Slot base = w.pool[op.aux + which];
  const auto add = laneOf<std::uint64_t>(w, w.pool[op.aux + which + 1], l);
  return op.flags & narrow ? static_cast<std::uint32_t>(laneOf<std::uint32_t>(w, base, l) + add)
                           : laneOf<std::uint64_t>(w, base, l) + add;
}

// --- moving ---------------------------------------------------------------------

MemorySide sharedSide(const BlockState &block) {
  return {block.sharedBits, reinterpret_cast<std::uint64_t>(block.shared)};
}

MemorySide globalSide(const BlockState &block, const Allocation &allocation) {
  const GlobalMemory &memory = *block.worker.launch.memory;
  if (allocation.defined || !memory.tracking())
    return {};
  return {memory.definedBits(), memory.base()};
}

static bool hasValue(MemorySide side, std::uint64_t address, std::uint64_t bytes) {
  return !side.bits || allDefined(side.bits, address - side.origin, bytes);
}

void moveDefined(MemorySide side, std::uint64_t from, MemorySide into, std::uint64_t to, std::uint64_t bytes,
                 bool both) {
  if (!into.bits)
    return;
  if (hasValue(side, from, bytes)) {
    if (!both)
      markDefined(into.bits, to - into.origin, bytes);
    return;
  }
  for (std::uint64_t b = 0; b < bytes; ++b)
    if (!hasValue(side, from + b, 1))
      clearDefined(into.bits, to + b - into.origin, 1);
    else if (!both)
      markDefined(into.bits, to + b - into.origin, 1);
}

static std::byte *hostBytes(std::uint64_t address) {
  return reinterpret_cast<std::byte *>(address);
}

static void moveTransfer(const BulkTransfer &t, std::uint64_t to, MemorySide side, Combine combine) {
  for (const BulkPiece &p : t.pieces) {
    std::byte *place = hostBytes(to + p.to);
    if (!p.from) {
      for (std::uint32_t at = 0; at < p.bytes; at += sizeof t.filling)
        std::memcpy(place + at, &t.filling, std::min<std::size_t>(sizeof t.filling, p.bytes - at));
      moveDefined({}, 0, side, to + p.to, p.bytes, false);
      continue;
    }
    if (combine)
      combine(place, hostBytes(p.from), p.bytes);
    else
      std::memmove(place, hostBytes(p.from), p.bytes);
    if (t.convert)
      t.convert(place, p.bytes);
    moveDefined(t.sides[p.side], p.from, side, to + p.to, p.bytes, combine != nullptr);
  }
}

Next LoadWork::deliver() {
  const BlockState &owner = *place.owner;
  moveTransfer(*transfer, reinterpret_cast<std::uint64_t>(owner.shared), sharedSide(owner), combine);
  return completeTx(place, tx, *this, agent);
}

Next StoreRead::deliver() {
  write->data.resize(bytes);
  MemorySide side;
  side.origin = reinterpret_cast<std::uint64_t>(write->data.data());
  if (block.sharedBits) {
    write->defined.assign(bytes / 64 + 1, 0);
    side.bits = write->defined.data();
  }
  moveTransfer(transfer, side.origin, side, nullptr);
  return issueAsync(std::move(write));
}

Next StoreWrite::deliver() {
  MemorySide from;
  from.origin = reinterpret_cast<std::uint64_t>(data.data());
  from.bits = defined.empty() ? nullptr : defined.data();
  auto move = [&](std::uint64_t source, std::uint64_t to, std::uint32_t bytes, MemorySide side) {
    if (combine)
      combine(hostBytes(to), data.data() + source, bytes);
    else
      std::memcpy(hostBytes(to), data.data() + source, bytes);
    moveDefined(from, from.origin + source, side, to, bytes, combine != nullptr);
  };
  for (const Piece &p : pieces) {
    if (byteMask == wholeMask) {
      move(p.from, p.to, p.bytes, sides[p.side]);
      continue;
    }
    for (std::uint32_t b = 0; b < p.bytes; ++b)
      if (byteMask >> b % 16 & 1)
        move(p.from + b, p.to + b, 1, sides[p.side]);
  }
  ++block.worker.progress;
  return Next::Advance;
}

void addRange(std::vector<AsyncRange> &ranges, std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0)
    return;
  if (!ranges.empty() && ranges.back().address + ranges.back().bytes == address)
    ranges.back().bytes += bytes;
  else
    ranges.push_back({address, bytes});
}

void joinRanges(std::vector<AsyncRange> &ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const AsyncRange &a, const AsyncRange &b) { return a.address < b.address; });
  std::vector<AsyncRange> out;
  for (const AsyncRange &r : ranges)
    addRange(out, r.address, r.bytes);
  ranges = std::move(out);
}

// --- checks ---------------------------------------------------------------------

/// Calls a function that words a finding for the lanes in `exec` as if lane l were alone.
template <typename Fn> static bool forLane(WarpState &w, unsigned l, std::uint64_t address, Fn f) {
  std::uint64_t at[warpSize] = {};
  at[l] = address;
  const std::uint32_t exec = std::exchange(w.exec, 1u << l);
  f(at);
  w.exec = exec;
  return false;
}

bool checkAligned(WarpState &w, const Op &op, unsigned l, std::uint64_t address, unsigned bytes) {
  return address % bytes == 0 ||
         forLane(w, l, address, [&](const std::uint64_t *at) { reportMisaligned(w, op, at, bytes); });
}

bool checkShared(WarpState &w, const Op &op, unsigned l, std::uint64_t address, std::uint64_t bytes, bool remote,
                 BlockState *&owner, std::uint32_t &offset) {
  owner = address < 16 * sharedRankBytes ? blockOfShared(*w.block, address) : nullptr;
  offset = static_cast<std::uint32_t>(address % sharedRankBytes);
  const bool reachable = owner && (remote || owner == w.block);
  if (reachable && offset >= owner->sharedBegin && offset <= owner->sharedEnd && bytes <= owner->sharedEnd - offset)
    return true;
  if (owner && !reachable) {
    reportFinding(w, op, "oob.shared", 1u << l,
                  "the copy (lane " + std::to_string(l) + ") names shared memory of block rank " +
                      std::to_string(address / sharedRankBytes) + ", but works on the own block's only",
                  true);
    return false;
  }
  // The bounds are the same in every block of the cluster.
  return forLane(w, l, owner ? offset : address, [&](const std::uint64_t *at) {
    reportSharedBounds(w, op, at, static_cast<unsigned>(std::min<std::uint64_t>(bytes, ~0u)), 0);
  });
}

bool checkGlobal(WarpState &w, const Op &op, unsigned l, std::uint64_t address, std::uint64_t bytes, bool write,
                 const Allocation *&allocation) {
  allocation = w.block->worker.launch.memory->holding(address, bytes);
  if (allocation && (!write || allocation->writable))
    return true;
  return forLane(w, l, address, [&](const std::uint64_t *at) {
    std::uint64_t *bits = nullptr, origin = 0;
    resolveGlobal(w, op, at, static_cast<unsigned>(bytes), write, bits, origin);
  });
}

// --- loads ----------------------------------------------------------------------

bool locateTargets(WarpState &w, const Op &op, unsigned l, std::uint64_t span, unsigned alignment,
                   std::vector<LoadTarget> &targets) {
  const std::uint64_t to = bulkAddress(w, op, bulkSlot::To, l), barrier = bulkAddress(w, op, bulkSlot::Barrier, l);
  const bool remote = !(op.flags & bulkFlag::ownBlock);
  if (!checkAligned(w, op, l, to, alignment))
    return false;
  auto add = [&](std::uint64_t toAddress, std::uint64_t barrierAddress) {
    LoadTarget t;
    if (!checkShared(w, op, l, toAddress, span, remote, t.owner, t.offset) ||
        !locateMbarrier(w, op, l, barrierAddress, remote, t.place) ||
        (t.owner != w.block && reportIfExited(w, op, 1u << l, *t.owner)))
      return false;
    if (t.place.owner != t.owner) {
      reportFinding(w, op, "mbarrier.other_block", 1u << l,
                    "the destination (lane " + std::to_string(l) + ") is in block " +
                        blockText(t.owner->linear, w.block->worker.launch.grid) + ", the mbarrier in block " +
                        blockText(t.place.owner->linear, w.block->worker.launch.grid) +
                        "; both must be in one block's shared memory",
                    true);
      return false;
    }
    targets.push_back(t);
    return true;
  };
  if (!(op.flags & bulkFlag::multicast))
    return add(to, barrier);
  for (std::uint32_t mask = bulkOperand(w, op, bulkSlot::Mask, l) & 0xFFFF; mask; mask &= mask - 1) {
    const std::uint64_t rank = static_cast<std::uint64_t>(__builtin_ctz(mask)) * sharedRankBytes;
    if (!add(rank + to % sharedRankBytes, rank + barrier % sharedRankBytes))
      return false;
  }
  return true;
}

/// The copy reads its tensor map.
static void recordMap(WarpState &w, const Op &op, AsyncAgent agent, std::uint64_t map) {
  if (!map)
    return;
  agent.ofMap = true;
  const AsyncRange range{map, TensorMap::size};
  w.block->races->recordAsync(w, op, agent, {&range, 1}, false);
}

Next issueLoads(WarpState &w, const Op &op, unsigned l, const std::vector<LoadTarget> &targets, const Load &load) {
  bool first = true;
  if (!targets.empty()) // a multicast reads once
    countBulk(w, load.fromShared ? CountedSpace::Shared : CountedSpace::Global,
              load.fromShared ? AccessKind::BulkStore : AccessKind::BulkLoad, load.sources);
  for (const LoadTarget &t : targets) {
    auto work = std::make_unique<LoadWork>(w, op, 1u << l);
    Mbarrier *b = useMbarrier(w, op, 1u << l, t.place, load.offsets.empty() ? ObjectUse::Use : ObjectUse::Complete);
    if (!b)
      return Next::Fault;
    work->place = t.place;
    work->transfer = load.transfer;
    work->combine = load.combine;
    work->tx = load.tx;
    work->agent = bulkAgent(t.place, *b);
    if (BlockRaces *races = w.block->races) {
      const OnlyLane issuer(w, l);
      // One read for all blocks of a multicast.
      if (std::exchange(first, false)) {
        recordMap(w, op, work->agent, load.map);
        races->recordAsync(w, op, work->agent, load.sources, false);
      }
      std::vector<AsyncRange> ranges = load.offsets;
      for (AsyncRange &r : ranges)
        r.address += reinterpret_cast<std::uint64_t>(t.owner->shared);
      AsyncAgent writer = work->agent;
      writer.atomic = load.combine != nullptr;
      races->recordAsync(w, op, writer, ranges, true);
      if (t.owner->wgmma)
        noteBulkWrite(*t.owner, load.offsets, w, op, load.swizzle);
    }
    countAsyncBytes(w, load.tx);
    countBulk(w, CountedSpace::Shared, AccessKind::BulkLoad, load.offsets);
    if (issueAsync(std::move(work)) == Next::Fault)
      return Next::Fault;
  }
  return Next::Advance;
}

// --- stores ---------------------------------------------------------------------

bool storeTheSame(const WarpState &w, const Op &op, unsigned l, unsigned other) {
  const std::uint32_t *open = w.block->async->groups[w.index].open[static_cast<unsigned>(GroupSeries::Bulk)];
  auto same = [&](unsigned which) { return bulkOperand(w, op, which, l) == bulkOperand(w, op, which, other); };
  bool all = open[l] == open[other];
  for (const unsigned which : {bulkSlot::To, bulkSlot::From})
    all = all && bulkAddress(w, op, which, l) == bulkAddress(w, op, which, other);
  if (rankOf(op) == 0)
    return all && same(bulkSlot::Size) && (!(op.flags & bulkFlag::byteMask) || same(bulkSlot::Mask));
  for (unsigned i = 0; i < rankOf(op); ++i)
    all = all && same(bulkSlot::Coordinates + i);
  return all;
}

Next issueStore(WarpState &w, const Op &op, std::uint32_t lanes, std::unique_ptr<StoreRead> store,
                const StoreRanges &ranges) {
  BlockState &block = *w.block;
  const auto shared = reinterpret_cast<std::uint64_t>(block.shared);
  std::uint64_t low = ~std::uint64_t(0), high = 0;
  for (const AsyncRange &r : ranges.sources) {
    low = std::min(low, r.address - shared);
    high = std::max(high, r.address - shared + r.bytes);
  }
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    const AsyncAgent reader = bulkGroupAgent(w, l, AgentKind::BulkRead, store->group + 1);
    AsyncAgent writer = bulkGroupAgent(w, l, AgentKind::BulkWrite, store->group + 1);
    writer.atomic = store->write->combine != nullptr;
    if (BlockRaces *races = block.races) {
      const OnlyLane issuer(w, l);
      recordMap(w, op, reader, ranges.map);
      races->recordAsync(w, op, reader, ranges.sources, false);
      // The bytes are written once, by the last lane: where one lane waits for the warp it is usually the first.
      if (!(m & (m - 1)))
        races->recordAsync(w, op, writer, ranges.destinations, true);
    }
    store->agent = reader;
    store->write->agent = writer;
    if (low < high) {
      PendingStore pending;
      pending.op = static_cast<std::uint32_t>(&op - w.program->ops.data());
      pending.group = store->group;
      pending.offset = static_cast<std::uint32_t>(low);
      pending.bytes = static_cast<std::uint32_t>(high - low);
      pending.warp = static_cast<std::uint8_t>(w.index);
      pending.lane = static_cast<std::uint8_t>(l);
      block.async->pendingStores.push_back(pending);
    }
    countAsyncBytes(w, store->bytes);
    countBulk(w, CountedSpace::Shared, AccessKind::BulkStore, ranges.sources);
    countBulk(w, CountedSpace::Global, AccessKind::BulkStore, ranges.destinations);
  }
  return issueAsync(std::move(store));
}

AsyncAgent bulkGroupAgent(const WarpState &w, unsigned l, AgentKind kind, std::uint32_t epoch) {
  return {agentRow(w.block->linear, kind, w.index), epoch, static_cast<std::uint8_t>(l), true};
}

} // namespace kiln::emulator
