#include "runtime/device/emulator/async/RemoteAsync.h"

#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/memory/DefinedBits.h"

#include <cstring>

namespace kiln::emulator {

namespace {

constexpr unsigned mostBytes = 16;

/// One lane's value on its way.
struct LaneStore {
  std::uint32_t to = 0; ///< offset in the owner's shared memory
  std::byte value[mostBytes];
};

/// The lanes of one instruction that complete one mbarrier.
class RemoteStores final : public AsyncWork {
public:
  RemoteStores(WarpState &issuer, const Op &op, std::uint32_t lanes, MbarrierPlace place, unsigned bytes,
               Combine combine)
      : AsyncWork(issuer, op, lanes, AsyncKind::Bulk), place(place), bytes(bytes), combine(combine) {}
  Next deliver() override {
    BlockState &owner = *place.owner;
    if (reportIfExited(issuer(), op, lanes, owner))
      return Next::Fault;
    for (unsigned i = 0; i < count; ++i) {
      LaneStore &s = stores[i];
      std::byte *const to = owner.shared + s.to;
      if (combine) {
        std::uint64_t old = 0, operand = 0;
        std::memcpy(&old, to, bytes);
        std::memcpy(&operand, s.value, bytes);
        const std::uint64_t fresh = combine(old, operand);
        std::memcpy(s.value, &fresh, bytes);
      }
      std::memcpy(to, s.value, bytes);
      if (owner.sharedBits)
        markDefined(owner.sharedBits, s.to, bytes);
    }
    return completeTx(place, count * bytes, *this, agent);
  }
  LaneStore stores[warpSize];
  unsigned count = 0;

private:
  MbarrierPlace place;
  unsigned bytes;
  Combine combine;
};

/// Where the lanes write, and which mbarriers they complete.
struct Destinations {
  std::uint64_t at[warpSize] = {}; ///< device addresses
  MbarrierPlace places[warpSize];
  std::uint32_t offset(unsigned l) const { return static_cast<std::uint32_t>(at[l] % sharedRankBytes); }
  std::uint64_t host(unsigned l) const { return reinterpret_cast<std::uint64_t>(places[l].owner->shared) + offset(l); }
};

/// False after a fatal finding.
bool resolve(WarpState &w, const Op &op, unsigned bytes, Destinations &d) {
  const std::uint32_t exec = w.exec;
  const bool isGeneric = (op.flags & access::spaceMask) == access::generic;
  const std::uint64_t window = isGeneric ? windowBase(SharedWindow) : 0;
  std::uint64_t any = 0;
  eachLane(exec, [&](unsigned l) { any |= d.at[l] = laneAddress(w, op, l); });
  if (any & (bytes - 1))
    return reportMisaligned(w, op, d.at, bytes);
  bool good = true;
  for (std::uint32_t m = exec; m && good; m &= m - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(m));
    w.exec = 1u << l;
    const BlockState *owner = resolveShared(w, op, d.at, bytes, window);
    const std::uint64_t mbarrier =
        laneValue(w, op.s[1], l, op.flags & remoteFlag::mbarrierBase32) + laneValue(w, op.s[3], l, false);
    good = owner && locateMbarrier(w, op, l, op.flags & remoteFlag::mbarrierBase32 ? mbarrier & 0xFFFFFFFFu : mbarrier,
                                   true, d.places[l]);
    if (good && d.places[l].owner != owner) {
      const Dim3 grid = w.block->worker.launch.grid;
      reportFinding(w, op, "async.other_block", w.exec,
                    "writes to the shared memory of block " + blockText(owner->linear, grid) +
                        " but completes an mbarrier of block " + blockText(d.places[l].owner->linear, grid) +
                        "; both must be in the same block",
                    true);
      good = false;
    }
  }
  w.exec = exec;
  return good;
}

/// A reduction reads what is there.
void checkDefined(WarpState &w, const Op &op, unsigned bytes, const Destinations &d) {
  const std::uint32_t exec = w.exec;
  eachLane(exec, [&](unsigned l) {
    const BlockState &owner = *d.places[l].owner;
    if (!owner.sharedBits || allDefined(owner.sharedBits, d.offset(l), bytes))
      return;
    w.exec = 1u << l;
    reportUninitialised(w, op, nullptr, d.host(l), 0, bytes, ~0u, owner.sharedBits,
                        reinterpret_cast<std::uint64_t>(owner.shared));
  });
  w.exec = exec;
}

Next issue(Warp &warp, const Op &op, Combine combine) {
  auto &w = static_cast<WarpState &>(warp);
  BlockState &block = *w.block;
  const unsigned elements = op.flags >> access::countShift & access::countMask,
                 elementBytes = op.flags & remoteFlag::wide ? 8 : 4, bytes = elements * elementBytes;
  Destinations d;
  if (!resolve(w, op, bytes, d))
    return Next::Fault;
  if (combine)
    checkDefined(w, op, bytes, d);
  const std::uint32_t exec = w.exec;
  ++block.worker.progress;
  Next next = Next::Advance;
  for (std::uint32_t todo = exec; todo && next == Next::Advance;) {
    const MbarrierPlace place = d.places[__builtin_ctz(todo)];
    std::uint32_t group = 0;
    eachLane(todo, [&](unsigned l) {
      group |= std::uint32_t(d.places[l].owner == place.owner && d.places[l].offset == place.offset) << l;
    });
    todo &= ~group;
    Mbarrier *b = useMbarrier(w, op, group, place, ObjectUse::Complete);
    if (!b)
      return Next::Fault;
    auto work = std::make_unique<RemoteStores>(w, op, group, place, bytes, combine);
    work->agent = bulkAgent(place, *b);
    work->agent.asyncProxy = false;
    work->agent.atomic = combine != nullptr;
    std::vector<AsyncRange> ranges;
    eachLane(group, [&](unsigned l) {
      LaneStore &s = work->stores[work->count++];
      s.to = d.offset(l);
      for (unsigned e = 0; e < elements; ++e) {
        const std::uint64_t v = laneValue(w, elements == 1 ? op.s[2] : w.pool[op.aux + e], l, elementBytes == 4);
        std::memcpy(s.value + e * elementBytes, &v, elementBytes);
      }
      ranges.push_back({d.host(l), bytes, static_cast<std::uint8_t>(l), static_cast<std::uint8_t>(bytes)});
    });
    if (block.races) {
      w.exec = group;
      block.races->recordAsync(w, op, work->agent, ranges, true);
      w.exec = exec;
    }
    next = issueAsync(std::move(work));
  }
  return next;
}

} // namespace

Next storeAsync(Warp &w, const Op &op) {
  return issue(w, op, nullptr);
}
Next reduceAsync(Warp &w, const Op &op, Combine combine) {
  return issue(w, op, combine);
}

} // namespace kiln::emulator
