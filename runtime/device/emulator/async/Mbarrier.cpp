// mbarrier: the counting, and the findings.  The instructions are in MbarrierOps.cpp.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

/// Announced and delivered bytes may differ by so much.
static constexpr std::int64_t mostTx = (1 << 20) - 1;

Mbarrier &MbarrierTable::make(std::uint32_t offset) {
  const auto [at, isNew] = objects.try_emplace(offset);
  Mbarrier fresh;
  fresh.valid = true;
  fresh.number = isNew ? static_cast<std::uint32_t>(objects.size() - 1) : at->second.number;
  fresh.bulkIssued = at->second.bulkIssued;
  low = std::min(low, offset);
  high = std::max(high, offset + objectBytes);
  return at->second = std::move(fresh);
}

Mbarrier *MbarrierTable::search(std::uint64_t first, std::uint64_t n, std::uint32_t &offset) {
  const std::uint64_t from = first & ~std::uint64_t(objectBytes - 1);
  for (std::uint64_t o = from; o < first + n; o += objectBytes)
    if (Mbarrier *b = find(static_cast<std::uint32_t>(o))) {
      offset = static_cast<std::uint32_t>(o);
      return b;
    }
  return nullptr;
}

static std::string nameOf(const BlockState &from, MbarrierPlace place) {
  std::string name = "mbarrier " + sharedName(*from.worker.launch.program, place.offset);
  if (place.owner != &from)
    name += " of block " + blockText(place.owner->linear, from.worker.launch.grid);
  return name;
}

bool locateMbarrier(WarpState &w, const Op &op, unsigned lane, std::uint64_t address, bool remote,
                    MbarrierPlace &place) {
  const std::uint32_t bit = 1u << lane;
  const bool isGeneric = (op.flags & access::spaceMask) == access::generic;
  const std::uint64_t window = isGeneric ? windowBase(SharedWindow) : 0, at = address - window;
  auto fail = [&](const char *id, const std::string &why) {
    reportFinding(w, op, id, bit,
                  format("the mbarrier at 0x%llx (lane %u) ", static_cast<unsigned long long>(address), lane) + why,
                  true);
    return false;
  };
  if (at >= 16 * sharedRankBytes)
    return fail("oob.shared", "is not in shared memory");
  place.owner = blockOfShared(*w.block, at);
  if (!place.owner)
    return fail("oob.remote", "is in the shared memory of block rank " + std::to_string(at / sharedRankBytes) +
                                  ", which is not in the cluster");
  if (at % MbarrierTable::objectBytes)
    return fail("misaligned", "is not aligned to 8 bytes");
  place.offset = static_cast<std::uint32_t>(at % sharedRankBytes);
  const BlockState &owner = *place.owner;
  if (place.offset < owner.sharedBegin || place.offset + MbarrierTable::objectBytes > owner.sharedEnd)
    return fail("oob.shared", place.offset < owner.sharedBegin
                                  ? "is before the start of the block's shared memory"
                                  : "is " + std::to_string(place.offset + 8 - owner.sharedEnd) +
                                        " bytes past the end of the block's shared memory");
  if (place.owner != w.block && !remote)
    return fail("mbarrier.remote_wait", "is in the shared memory of block " +
                                            blockText(owner.linear, w.block->worker.launch.grid) +
                                            "; this instruction works on the own block's only");
  return !reportIfExited(w, op, bit, owner);
}

Mbarrier *useMbarrier(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, ObjectUse use) {
  Mbarrier *b = place.owner->async ? place.owner->async->mbarriers.find(place.offset) : nullptr;
  if (!b) {
    reportFinding(w, op, "mbarrier.uninit", lanes, nameOf(*w.block, place) + " has not been initialised", true);
    return nullptr;
  }
  if (w.block->races)
    w.block->races->recordObject(w, op, lanes, reinterpret_cast<std::uint64_t>(place.owner->shared) + place.offset,
                                 MbarrierTable::objectBytes, use);
  return b;
}

AsyncAgent bulkAgent(MbarrierPlace place, Mbarrier &b) {
  b.bulkInFlight.push_back(++b.bulkIssued);
  const std::uint32_t number = b.number % (warpSize * warpSize);
  return {agentRow(place.owner->linear, AgentKind::Mbarrier, number / warpSize), b.bulkIssued,
          static_cast<std::uint8_t>(number % warpSize), true};
}

/// The phase is over.
static void completePhase(MbarrierPlace place, Mbarrier &b) {
  BlockState &owner = *place.owner;
  b.phase += 1;
  b.pending = b.expected;
  b.unseenBytes |= b.bulkIssued != 0 && b.delivered != 0;
  b.announced = b.delivered = 0;
  b.observed = false;
  if (owner.races) {
    // Whoever waits for it has waited for the bulk operations whose bytes are all counted.
    const std::uint32_t number = b.number % (warpSize * warpSize);
    const std::uint32_t done =
        b.bulkInFlight.empty() ? b.bulkIssued : *std::min_element(b.bulkInFlight.begin(), b.bulkInFlight.end()) - 1;
    if (done)
      b.releasing[agentRow(owner.linear, AgentKind::Mbarrier, number / warpSize)][number % warpSize] = done;
    joinKnowledge(b.released, b.releasing);
    b.releasing.clear();
  }
  ++owner.worker.progress;
  for (WarpState &w : owner.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i)
      if (Split &s = w.splits[i];
          s.state == SplitState::Mbarrier && (s.waitsFor == place.offset || s.waitsFor == ~std::uint32_t(0)))
        s.state = SplitState::Ready;
}

bool arriveAtMbarrier(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, Mbarrier &b,
                      std::uint32_t count) {
  ++w.block->worker.progress;
  if (!b.observed && b.phase > 0 && !countFinding(w, op, "mbarrier.overrun"))
    reportNote(w, op, "mbarrier.overrun", lanes,
               nameOf(*w.block, place) + ": phase " + std::to_string(b.phase) +
                   " is arrived at before anyone has seen that phase " + std::to_string(b.phase - 1) + " is over");
  if (count > b.pending) {
    if (!countFinding(w, op, "mbarrier.underflow"))
      reportFinding(w, op, "mbarrier.underflow", lanes,
                    nameOf(*w.block, place) + ": arrives " + std::to_string(count) + " times with only " +
                        std::to_string(b.pending) + " of " + std::to_string(b.expected) +
                        " arrivals pending in phase " + std::to_string(b.phase) + " (initialised at " +
                        w.program->point(b.initOp) + ")",
                    false);
    b.pending = 0;
  } else {
    b.pending -= count;
  }
  if (b.pending != 0 || b.tx != 0)
    return false;
  completePhase(place, b);
  return true;
}

bool expectTx(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, Mbarrier &b, std::uint32_t bytes) {
  b.tx += bytes;
  b.announced += bytes;
  b.txOp = static_cast<std::uint32_t>(&op - w.program->ops.data());
  b.txWarp = w.index;
  ++w.block->worker.progress;
  if (b.tx <= mostTx)
    return true;
  reportFinding(w, op, "mbarrier.tx_count", lanes,
                nameOf(*w.block, place) + " expects " + std::to_string(b.tx) + " bytes, more than " +
                    std::to_string(mostTx),
                true);
  return false;
}

Next countTx(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, std::uint32_t bytes,
             std::uint32_t bulkNumber) {
  Mbarrier *b = place.owner->async->mbarriers.find(place.offset);
  if (!b) {
    reportFinding(w, op, "mbarrier.uninit", lanes,
                  nameOf(*w.block, place) + " was given back or overwritten before this operation was complete", true);
    return Next::Fault;
  }
  if (b->tx - std::int64_t(bytes) < -mostTx) {
    reportFinding(w, op, "mbarrier.tx_count", lanes,
                  nameOf(*w.block, place) + ": " + std::to_string(bytes - b->tx) +
                      " bytes more have come than were expected; the limit is " + std::to_string(mostTx),
                  true);
    return Next::Fault;
  }
  b->txOp = static_cast<std::uint32_t>(&op - w.program->ops.data());
  b->txWarp = w.index;
  ++w.block->worker.progress;
  // A copy writes piece by piece.  If too few bytes were expected, the phase is over when the copy has brought that
  // many, and the rest counts for the next one: so nobody who waits has waited for this copy.
  std::uint32_t rest = 0;
  if (b->pending == 0 && b->tx > 0 && b->tx < std::int64_t(bytes)) {
    rest = static_cast<std::uint32_t>(bytes - b->tx);
    b->tx = 0;
    completePhase(place, *b);
    b->tx -= rest;
    b->delivered = rest;
    std::erase(b->bulkInFlight, bulkNumber);
    return Next::Advance;
  }
  b->tx -= bytes;
  b->delivered += bytes;
  std::erase(b->bulkInFlight, bulkNumber);
  if (b->pending == 0 && b->tx == 0)
    completePhase(place, *b);
  return Next::Advance;
}

/// For the picture of the block: what waits for the phase has waited for the work.
static void noteFlight(MbarrierPlace place, const AsyncWork &by) {
  if (by.block.timeline && place.owner == &by.block)
    if (const Mbarrier *b = by.block.async->mbarriers.find(place.offset))
      by.block.timeline->completes(by.flight, place.offset, b->phase);
}

Next completeTx(MbarrierPlace place, std::uint32_t bytes, const AsyncWork &by, const AsyncAgent &agent) {
  noteFlight(place, by);
  return countTx(by.issuer(), by.op, by.lanes, place, bytes, agent.epoch);
}

Next arriveAsync(MbarrierPlace place, const AsyncWork &by, std::uint32_t count) {
  WarpState &w = by.issuer();
  noteFlight(place, by);
  Mbarrier *b = place.owner->async->mbarriers.find(place.offset);
  if (!b) {
    reportFinding(w, by.op, "mbarrier.uninit", by.lanes,
                  nameOf(*w.block, place) + " was given back or overwritten before the copies were complete", true);
    return Next::Fault;
  }
  if (w.block->races) {
    std::uint32_t &known = b->releasing[by.agent.row][by.agent.index];
    known = std::max(known, by.agent.epoch);
  }
  arriveAtMbarrier(w, by.op, by.lanes, place, *b, count);
  return Next::Advance;
}

void checkMbarriersAtExit(BlockState &block) {
  std::vector<std::uint32_t> offsets;
  for (const auto &[offset, b] : block.async->mbarriers.all())
    if (b.valid && (b.tx != 0 || b.unseenBytes))
      offsets.push_back(offset);
  std::sort(offsets.begin(), offsets.end());
  for (const std::uint32_t offset : offsets) {
    const Mbarrier &b = *block.async->mbarriers.find(offset);
    WarpState &w = block.warps[std::min<std::size_t>(b.txWarp, block.warps.size() - 1)];
    const Op &op = w.program->ops[b.txOp];
    if (b.tx == 0) {
      // Had it been a little slower, it would have written into memory that belongs to somebody else by then.
      reportFinding(w, op, "async.exit_pending", fullMask,
                    "the block ends while copies that complete " + nameOf(block, {&block, offset}) +
                        " may still write: nobody has waited for its phase " + std::to_string(b.phase - 1) +
                        " (initialised at " + w.program->point(b.initOp) + ")",
                    false);
      continue;
    }
    const std::int64_t bytes = b.tx > 0 ? b.tx : -b.tx;
    reportFinding(w, op, "mbarrier.tx_mismatch", fullMask,
                  "the block ends while " + nameOf(block, {&block, offset}) + " is in phase " +
                      std::to_string(b.phase) + " with " + std::to_string(bytes) + " bytes " +
                      (b.tx > 0 ? "missing" : "too many") + ": " + std::to_string(b.announced) + " expected, " +
                      std::to_string(b.delivered) + " delivered (initialised at " + w.program->point(b.initOp) + ")",
                  false);
  }
}

std::string describeMbarrier(const BlockState &block, std::uint32_t offset) {
  Mbarrier *b = block.async->mbarriers.find(offset);
  if (!b)
    return " waits for several mbarriers";
  std::string text = " waits for mbarrier " + sharedName(*block.worker.launch.program, offset) + " phase " +
                     std::to_string(b->phase) + " (" + std::to_string(b->pending) + " of " +
                     std::to_string(b->expected) + " arrivals pending";
  if (b->tx)
    text += ", " + std::to_string(b->tx > 0 ? b->tx : -b->tx) + " bytes " + (b->tx > 0 ? "missing" : "too many") +
            ", last counted at " + block.worker.launch.program->point(b->txOp);
  return text + ")";
}

bool checkRawAccess(WarpState &w, const Op &op, std::uint32_t lanes, BlockState &owner, std::uint64_t first,
                    std::uint64_t bytes, bool write) {
  std::uint32_t offset = 0;
  const Mbarrier *b = owner.async->mbarriers.overlapping(first, bytes, offset);
  if (!b)
    return false;
  if (!countFinding(w, op, "mbarrier.raw_access"))
    reportFinding(w, op, "mbarrier.raw_access", lanes,
                  std::string(write ? "writes to " : "reads ") + nameOf(*w.block, {&owner, offset}) +
                      ", initialised at " + w.program->point(b->initOp) +
                      "; only mbarrier instructions may do so until mbarrier.inval",
                  false);
  return true;
}

} // namespace kiln::emulator
