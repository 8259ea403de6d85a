#include "runtime/device/emulator/async/AsyncCopies.h"
#include "runtime/device/emulator/execute/LaneValues.h"

#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kiln::emulator {

namespace {

/// Epochs of cp.async of a warp: a group has so many, one more after every cp.async.mbarrier.arrive.
constexpr std::uint32_t epochsOfGroup = 4096;

/// One lane's copy: `source` bytes from global memory, zeros up to the copy's size.
struct LaneCopy {
  std::uint64_t from = 0;
  std::uint32_t to = 0; ///< offset in shared memory
  std::uint8_t source = 0;
  bool defined = false; ///< all of the buffer is
};

class CopyWork final : public AsyncWork {
public:
  CopyWork(WarpState &issuer, const Op &op, std::uint32_t lanes) : AsyncWork(issuer, op, lanes, AsyncKind::Copy) {
    bytes = (op.flags >> access::countShift & access::countMask) * 4u;
  }
  Next deliver() override {
    std::byte *shared = block.shared;
    std::uint64_t *bits = block.sharedBits;
    const GlobalMemory &memory = *block.worker.launch.memory;
    for (unsigned i = 0; i < count; ++i) {
      const LaneCopy &c = copies[i];
      // Through a buffer: other blocks may write to the source meanwhile, but every byte must come from it once.
      std::byte value[16] = {};
      if (c.source) // of nothing the address may be null
        std::memcpy(value, reinterpret_cast<const void *>(c.from), c.source);
      std::memcpy(shared + c.to, value, bytes);
      if (!bits)
        continue;
      if (c.defined || !c.source || allDefined(memory.definedBits(), c.from - memory.base(), c.source)) {
        markDefined(bits, c.to, bytes);
        continue;
      }
      for (unsigned b = 0; b < bytes; ++b)
        if (b >= c.source || allDefined(memory.definedBits(), c.from + b - memory.base(), 1))
          markDefined(bits, c.to + b, 1);
        else
          clearDefined(bits, c.to + b, 1);
    }
    return Next::Advance;
  }
  LaneCopy copies[warpSize];
  unsigned count = 0, bytes = 0;
};

class CopyArrival final : public AsyncWork {
public:
  CopyArrival(WarpState &issuer, const Op &op, std::uint32_t lanes, MbarrierPlace place)
      : AsyncWork(issuer, op, lanes, AsyncKind::CopyArrive), place(place) {}
  bool ready() const override { return !block.async->queue.hasEarlier(*this, AsyncKind::Copy); }
  Next deliver() override { return arriveAsync(place, *this, static_cast<std::uint32_t>(__builtin_popcount(lanes))); }
  MbarrierPlace place;
};

AsyncAgent agentOf(const WarpState &w, std::uint32_t epoch) {
  return {agentRow(w.block->linear, AgentKind::CopyAsync), epoch, static_cast<std::uint8_t>(w.index), false};
}

/// The lanes of `exec` whose open group is that of its first lane.
std::uint32_t sameGroup(const AsyncGroups &groups, std::uint32_t exec) {
  const std::uint32_t *open = groups.open[static_cast<unsigned>(GroupSeries::Copy)];
  const std::uint32_t first = open[__builtin_ctz(exec)];
  std::uint32_t out = 0;
  for (unsigned l = 0; l < warpSize; ++l)
    out |= std::uint32_t(open[l] == first) << l;
  return out & exec;
}

/// The epoch of what a lane copies now.
std::uint32_t epochOf(const AsyncGroups &groups, unsigned lane) {
  return groups.open[static_cast<unsigned>(GroupSeries::Copy)][lane] * epochsOfGroup + groups.copyArrivals[lane] + 1;
}

/// What every lane of a cp.async copies, checked; false after a fatal finding.
bool resolveCopies(WarpState &w, const Op &op, LaneCopy (&out)[warpSize]) {
  BlockState &block = *w.block;
  const unsigned bytes = (op.flags >> access::countShift & access::countMask) * 4u;
  const std::uint32_t exec = w.exec;
  std::uint64_t to[warpSize] = {}, from[warpSize] = {};
  const std::uint64_t window =
      (op.flags & access::spaceMask) == access::generic ? windowBase(SharedWindow) : std::uint64_t(0);
  const std::uint64_t *base = lanesOf<std::uint64_t>(w, op.s[1]), *add = lanesOf<std::uint64_t>(w, op.s[3]);
  std::uint64_t misaligned = 0;
  bool inside = true;
  eachLane(exec, [&](unsigned l) {
    to[l] = op.flags & access::base32
                ? static_cast<std::uint32_t>(lanesOf<std::uint32_t>(w, op.s[0])[l] + static_cast<std::uint32_t>(op.imm))
                : lanesOf<std::uint64_t>(w, op.s[0])[l] + static_cast<std::uint64_t>(op.imm);
    from[l] = base[l] + add[l];
    misaligned |= to[l];
    const std::uint64_t at = to[l] - window, offset = at % sharedRankBytes;
    inside = inside && at < 16 * sharedRankBytes && blockOfShared(block, at) == &block && offset >= block.sharedBegin &&
             offset + bytes <= block.sharedEnd;
    out[l].to = static_cast<std::uint32_t>(offset);
    out[l].source = static_cast<std::uint8_t>(bytes);
  });
  if (misaligned & (bytes - 1))
    return reportMisaligned(w, op, to, bytes);
  if (!inside)
    return reportSharedBounds(w, op, to, bytes, window);
  if (op.flags & copyFlag::ignoreSource) {
    eachLane(exec, [&](unsigned l) { out[l].source = lanesOf<std::uint32_t>(w, op.s[2])[l] ? 0 : out[l].source; });
  } else if (op.flags & copyFlag::sourceSize) {
    std::uint32_t tooMany = 0;
    const std::uint32_t *sizes = lanesOf<std::uint32_t>(w, op.s[2]);
    eachLane(exec, [&](unsigned l) {
      tooMany |= std::uint32_t(sizes[l] > bytes) << l;
      out[l].source = static_cast<std::uint8_t>(std::min(sizes[l], bytes));
    });
    if (tooMany && !countFinding(w, op, "async.size"))
      reportFinding(w, op, "async.size", tooMany,
                    "copies " + std::to_string(bytes) + " bytes of which " +
                        std::to_string(sizes[__builtin_ctz(tooMany)]) + " (lane " +
                        std::to_string(__builtin_ctz(tooMany)) + ") come from global memory: more than there are",
                    false);
  }
  // Lanes that copy equally many bytes are checked together; those without source bytes not at all.
  AccessCache &cache = w.caches[op.cache];
  const GlobalMemory &memory = *block.worker.launch.memory;
  std::uint32_t todo = exec;
  while (todo) {
    const std::uint8_t n = out[__builtin_ctz(todo)].source;
    std::uint32_t group = 0;
    eachLane(todo, [&](unsigned l) { group |= std::uint32_t(out[l].source == n) << l; });
    todo &= ~group;
    if (n == 0)
      continue;
    std::uint64_t low = ~std::uint64_t(0), high = 0, any = 0;
    eachLane(group, [&](unsigned l) {
      low = std::min(low, from[l]);
      high = std::max(high, from[l]);
      any |= from[l];
      out[l].from = from[l];
    });
    w.exec = group;
    if (any & (bytes - 1))
      return reportMisaligned(w, op, from, bytes);
    if (low < cache.begin || high >= cache.end || cache.end - high < n) {
      bool good = true;
      eachLane(group, [&](unsigned l) { good = good && memory.holding(from[l], n); });
      const Allocation *one = good ? memory.holding(low, n) : nullptr;
      if (!good) {
        std::uint64_t *bits = nullptr, origin = 0;
        return resolveGlobal(w, op, from, n, false, bits, origin);
      }
      if (high - one->begin <= one->size - n) { // one buffer for all
        cache.begin = one->begin;
        cache.end = one->end();
        cache.writable = one->writable;
        cache.defined = one->defined || !memory.tracking();
      } else {
        eachLane(group,
                 [&](unsigned l) { out[l].defined = memory.holding(from[l], n)->defined || !memory.tracking(); });
        continue;
      }
    }
    eachLane(group, [&](unsigned l) { out[l].defined = cache.defined; });
  }
  w.exec = exec;
  return true;
}

/// The ranges that the lanes read in global memory, those that follow each other as one.
std::vector<AsyncRange> sourcesOf(std::uint32_t lanes, const LaneCopy (&copies)[warpSize]) {
  std::vector<AsyncRange> out;
  eachLane(lanes, [&](unsigned l) {
    const LaneCopy &c = copies[l];
    if (!c.source)
      return;
    if (!out.empty() && out.back().address + out.back().bytes == c.from)
      out.back().bytes += c.source;
    else
      out.push_back({c.from, c.source});
  });
  return out;
}

/// The ranges that they write in shared memory, one for lanes whose bytes follow each other, and which lane writes
/// what.
std::vector<AsyncRange> destinationsOf(const BlockState &block, std::uint32_t lanes, unsigned bytes,
                                       const LaneCopy (&copies)[warpSize]) {
  std::vector<AsyncRange> out;
  eachLane(lanes, [&](unsigned l) {
    const std::uint64_t at = reinterpret_cast<std::uint64_t>(block.shared) + copies[l].to;
    if (!out.empty() && out.back().address + out.back().bytes == at && out.back().lane + out.back().bytes / bytes == l)
      out.back().bytes += bytes;
    else
      out.push_back({at, bytes, static_cast<std::uint8_t>(l), static_cast<std::uint8_t>(bytes)});
  });
  return out;
}

/// Lanes that copy different things to one place with one instruction.
void checkSameBytes(WarpState &w, const Op &op, std::uint32_t lanes, const LaneCopy (&copies)[warpSize]) {
  std::int64_t last = -1;
  bool rising = true;
  eachLane(lanes, [&](unsigned l) {
    rising &= last < copies[l].to;
    last = copies[l].to;
  });
  if (rising)
    return;
  for (std::uint32_t e = lanes; e; e &= e - 1) {
    const auto a = static_cast<unsigned>(__builtin_ctz(e));
    for (std::uint32_t others = e & (e - 1); others; others &= others - 1) {
      const auto b = static_cast<unsigned>(__builtin_ctz(others));
      const LaneCopy &x = copies[a], &y = copies[b];
      if (x.to == y.to && (x.source != y.source || (x.source && x.from != y.from)))
        return w.block->races->reportSameBytes(w, op, a, b, reinterpret_cast<std::uint64_t>(w.block->shared) + x.to);
    }
  }
}

void recordCopies(WarpState &w, const Op &op, const AsyncAgent &agent, std::uint32_t lanes, unsigned bytes,
                  const LaneCopy (&copies)[warpSize]) {
  checkSameBytes(w, op, lanes, copies);
  w.block->races->recordAsync(w, op, agent, sourcesOf(lanes, copies), false);
  w.block->races->recordAsync(w, op, agent, destinationsOf(*w.block, lanes, bytes, copies), true);
}

} // namespace

Next copyAsync(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  BlockState &block = *w.block;
  LaneCopy copies[warpSize];
  if (!resolveCopies(w, op, copies))
    return Next::Fault;
  const AsyncGroups &groups = block.async->groups[w.index];
  const bool seeded = block.worker.launch.seeded();
  ++block.worker.progress;
  for (std::uint32_t todo = w.exec; todo;) {
    const std::uint32_t lanes = sameGroup(groups, todo);
    todo &= ~lanes;
    std::optional<CopyWork> local;
    std::unique_ptr<CopyWork> kept;
    if (seeded)
      kept = std::make_unique<CopyWork>(w, op, lanes);
    CopyWork &work = seeded ? *kept : local.emplace(w, op, lanes);
    work.agent = agentOf(w, epochOf(groups, static_cast<unsigned>(__builtin_ctz(lanes))));
    eachLane(lanes, [&](unsigned l) { work.copies[work.count++] = copies[l]; });
    if (block.races)
      recordCopies(w, op, work.agent, lanes, work.bytes, copies);
    if (seeded)
      issueAsync(std::move(kept));
    else
      work.deliver();
  }
  return Next::Advance;
}

Next copyCommit(Warp &warp, const Op &) {
  auto &w = static_cast<WarpState &>(warp);
  commitGroup(w, GroupSeries::Copy);
  std::uint32_t *arrivals = w.block->async->groups[w.index].copyArrivals;
  eachLane(w.exec, [&](unsigned l) { arrivals[l] = 0; });
  return Next::Advance;
}

Next copyWait(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const auto keep = static_cast<std::uint32_t>(std::min<std::int64_t>(op.imm, ~std::uint32_t(0)));
  if (const Next next = waitForGroups(w, op, GroupSeries::Copy, AsyncKind::Copy, keep); next != Next::Advance)
    return next;
  if (BlockRaces *races = w.block->races) {
    const std::uint32_t *open = w.block->async->groups[w.index].open[static_cast<unsigned>(GroupSeries::Copy)];
    std::uint32_t limit = 0;
    eachLane(w.exec, [&](unsigned l) { limit = std::max(limit, open[l] > keep ? open[l] - keep : 0); });
    races->observe(w, agentOf(w, limit * epochsOfGroup));
  }
  return Next::Advance;
}

Next copyArrive(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  BlockState &block = *w.block;
  AsyncGroups &groups = block.async->groups[w.index];
  struct Group {
    MbarrierPlace place;
    std::uint32_t lanes = 0;
  } found[warpSize];
  unsigned count = 0;
  for (std::uint32_t m = w.exec; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    const std::uint64_t address =
        op.flags & access::base32
            ? static_cast<std::uint32_t>(lanesOf<std::uint32_t>(w, op.s[0])[l] + static_cast<std::uint32_t>(op.imm))
            : lanesOf<std::uint64_t>(w, op.s[0])[l] + static_cast<std::uint64_t>(op.imm);
    MbarrierPlace place;
    if (!locateMbarrier(w, op, l, address, false, place))
      return Next::Fault;
    unsigned i = 0;
    while (i < count && found[i].place.offset != place.offset)
      ++i;
    if (i == count)
      found[count++].place = place;
    found[i].lanes |= 1u << l;
  }
  for (unsigned i = 0; i < count; ++i) {
    Mbarrier *b = useMbarrier(w, op, found[i].lanes, found[i].place);
    if (!b)
      return Next::Fault;
    if (!(op.flags & copyArriveNoinc))
      b->pending += static_cast<std::uint32_t>(__builtin_popcount(found[i].lanes));
    auto work = std::make_unique<CopyArrival>(w, op, found[i].lanes, found[i].place);
    std::uint32_t epoch = 0;
    eachLane(found[i].lanes, [&](unsigned l) { epoch = std::max(epoch, epochOf(groups, l)); });
    work->agent = agentOf(w, epoch);
    if (issueAsync(std::move(work)) == Next::Fault)
      return Next::Fault;
  }
  eachLane(w.exec, [&](unsigned l) { ++groups.copyArrivals[l]; });
  return Next::Advance;
}

} // namespace kiln::emulator
