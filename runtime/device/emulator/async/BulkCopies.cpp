#include "runtime/device/emulator/async/BulkCopies.h"

#include "runtime/device/emulator/async/BulkTransfer.h"

#include <algorithm>

namespace kiln::emulator {

/// Addresses and the size are multiples of this.
static constexpr std::uint32_t bulkUnit = 16;

static bool bulkSize(WarpState &w, const Op &op, unsigned l, std::uint32_t &bytes) {
  bytes = bulkOperand(w, op, bulkSlot::Size, l);
  if (bytes % bulkUnit == 0)
    return true;
  reportFinding(
      w, op, "misaligned", 1u << l,
      "a size of " + std::to_string(bytes) + " bytes (lane " + std::to_string(l) + ") is not a multiple of 16", true);
  return false;
}

static std::uint64_t hostOf(const BlockState &block, std::uint32_t offset) {
  return reinterpret_cast<std::uint64_t>(block.shared) + offset;
}

Next bulkLoad(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) {
    const std::uint64_t from = bulkAddress(w, op, bulkSlot::From, l);
    std::uint32_t bytes = 0;
    std::vector<LoadTarget> targets;
    const Allocation *source = nullptr;
    if (!bulkSize(w, op, l, bytes) || !checkAligned(w, op, l, from, bulkUnit) ||
        !locateTargets(w, op, l, bytes, bulkUnit, targets) ||
        (bytes && !checkGlobal(w, op, l, from, bytes, false, source)))
      return Next::Fault;
    auto transfer = std::make_shared<BulkTransfer>();
    Load load;
    load.tx = bytes;
    if (bytes && !targets.empty()) {
      transfer->sides = {globalSide(*w.block, *source)};
      transfer->pieces = {{from, targets[0].offset, bytes, 0}};
      load.sources = {{from, bytes}};
      load.offsets = {{targets[0].offset, bytes}};
    }
    load.transfer = std::move(transfer);
    return issueLoads(w, op, l, targets, load);
  });
}

Next bulkToCluster(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) {
    const std::uint64_t from = bulkAddress(w, op, bulkSlot::From, l);
    std::uint32_t bytes = 0, offset = 0;
    BlockState *own = nullptr;
    std::vector<LoadTarget> targets;
    if (!bulkSize(w, op, l, bytes) || !checkAligned(w, op, l, from, bulkUnit) ||
        !checkShared(w, op, l, from, bytes, false, own, offset) || !locateTargets(w, op, l, bytes, bulkUnit, targets))
      return Next::Fault;
    auto transfer = std::make_shared<BulkTransfer>();
    Load load;
    load.tx = bytes;
    load.fromShared = true;
    if (reduceOf(op) != ReduceOp::None)
      load.combine = combineOf(reduceOf(op), reduceTypeOf(op));
    if (bytes) {
      transfer->sides = {sharedSide(*w.block)};
      transfer->pieces = {{hostOf(*w.block, offset), targets[0].offset, bytes, 0}};
      load.sources = {{hostOf(*w.block, offset), bytes}};
      load.offsets = {{targets[0].offset, bytes}};
    }
    load.transfer = std::move(transfer);
    return issueLoads(w, op, l, targets, load);
  });
}

Next bulkStore(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachStore(w, op, [&](std::uint32_t lanes) {
    const auto l = static_cast<unsigned>(__builtin_ctz(lanes));
    const std::uint64_t from = bulkAddress(w, op, bulkSlot::From, l), to = bulkAddress(w, op, bulkSlot::To, l);
    std::uint32_t bytes = 0, offset = 0;
    BlockState *own = nullptr;
    const Allocation *destination = nullptr;
    if (!bulkSize(w, op, l, bytes) || !checkAligned(w, op, l, from, bulkUnit) ||
        !checkAligned(w, op, l, to, bulkUnit) || !checkShared(w, op, l, from, bytes, false, own, offset) ||
        (bytes && !checkGlobal(w, op, l, to, bytes, true, destination)))
      return Next::Fault;
    auto store = std::make_unique<StoreRead>(w, op, lanes);
    std::vector<AsyncRange> sources, destinations;
    if (reduceOf(op) != ReduceOp::None)
      store->write->combine = combineOf(reduceOf(op), reduceTypeOf(op));
    if (op.flags & bulkFlag::byteMask)
      store->write->byteMask = static_cast<std::uint16_t>(bulkOperand(w, op, bulkSlot::Mask, l));
    if (bytes) {
      store->bytes = bytes;
      store->transfer.sides = {sharedSide(*w.block)};
      store->transfer.pieces = {{hostOf(*w.block, offset), 0, bytes, 0}};
      store->write->sides = {globalSide(*w.block, *destination)};
      store->write->pieces = {{0, to, bytes, 0}};
      addRange(sources, hostOf(*w.block, offset), bytes);
      if (store->write->byteMask == StoreWrite::wholeMask)
        addRange(destinations, to, bytes);
      else
        for (std::uint32_t b = 0; b < bytes; ++b)
          if (store->write->byteMask >> b % 16 & 1)
            addRange(destinations, to + b, 1);
    }
    return issueStore(w, op, lanes, std::move(store), {sources, destinations});
  });
}

Next bulkCommit(Warp &warp, const Op &) {
  commitGroup(static_cast<WarpState &>(warp), GroupSeries::Bulk);
  return Next::Advance;
}

Next bulkWait(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const bool readsOnly = op.flags & bulkFlag::reads;
  const auto keep = static_cast<std::uint32_t>(std::min<std::int64_t>(op.imm, ~std::uint32_t(0)));
  for (const AsyncKind kind : {AsyncKind::BulkRead, AsyncKind::BulkWrite}) {
    if (kind == AsyncKind::BulkWrite && readsOnly)
      break;
    if (const Next next = waitForGroups(w, op, GroupSeries::Bulk, kind, keep); next != Next::Advance)
      return next;
  }
  AsyncState &a = *w.block->async;
  const std::uint32_t *open = a.groups[w.index].open[static_cast<unsigned>(GroupSeries::Bulk)];
  auto limitOf = [&](unsigned l) { return open[l] > keep ? open[l] - keep : 0; };
  std::erase_if(a.pendingStores, [&](const PendingStore &s) {
    return s.warp == w.index && w.exec >> s.lane & 1 && s.group < limitOf(s.lane);
  });
  BlockRaces *races = w.block->races;
  return eachLane(w, [&](unsigned l) {
    const std::uint32_t epoch = limitOf(l);
    if (!races || epoch == 0)
      return Next::Advance;
    const OnlyLane waiting(w, l);
    races->observe(w, bulkGroupAgent(w, l, AgentKind::BulkRead, epoch));
    if (!readsOnly)
      races->observe(w, bulkGroupAgent(w, l, AgentKind::BulkWrite, epoch));
    return Next::Advance;
  });
}

} // namespace kiln::emulator
