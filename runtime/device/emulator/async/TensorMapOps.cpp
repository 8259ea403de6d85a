// tensormap.replace and tensormap.cp_fenceproxy: kernels that change tensor maps.  They access the 128 bytes as
// ordinary loads and stores do; copies see them through a proxy of their own (BlockRaces::releaseMaps).  And st.bulk,
// an ordinary store too.
#include "runtime/device/emulator/async/BulkCopies.h"
#include "runtime/device/emulator/async/BulkTransfer.h"
#include "runtime/device/emulator/async/TensorMap.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/Counting.h"

#include <cstring>
#include <optional>

namespace kiln::emulator {

namespace {

constexpr unsigned mapAlignment = 64;

/// Bytes that lane l may change.
struct PlaceToWrite {
  std::byte *bytes = nullptr;
  MemorySide side;
};

std::uint64_t addressOf(const Warp &w, const Op &op, unsigned l) {
  const auto displacement = static_cast<std::uint64_t>(op.imm);
  return op.flags & access::base32
             ? static_cast<std::uint32_t>(reinterpret_cast<const std::uint32_t *>(w.registers + op.s[0])[l] +
                                          displacement)
             : reinterpret_cast<const std::uint64_t *>(w.registers + op.s[0])[l] + displacement;
}

std::optional<PlaceToWrite> placeOf(WarpState &w, const Op &op, unsigned l, std::uint64_t bytes, unsigned alignment) {
  const std::uint64_t address = addressOf(w, op, l);
  if (!checkAligned(w, op, l, address, alignment))
    return {};
  const unsigned space = op.flags & access::spaceMask;
  const std::uint64_t window = windowBase(SharedWindow);
  const bool isShared = space == access::shared || (space == access::generic && address >> windowShift == SharedWindow);
  if (isShared) {
    BlockState *owner = nullptr;
    std::uint32_t offset = 0;
    if (!checkShared(w, op, l, space == access::generic ? address - window : address, bytes, false, owner, offset))
      return {};
    return PlaceToWrite{owner->shared + offset, sharedSide(*owner)};
  }
  const Allocation *allocation = nullptr;
  if (!checkGlobal(w, op, l, address, bytes, true, allocation))
    return {};
  return PlaceToWrite{reinterpret_cast<std::byte *>(address), globalSide(*w.block, *allocation)};
}

/// Lane l accesses `count` bytes, a multiple of 8, at a host address.
void recordBytes(WarpState &w, const Op &op, unsigned l, const std::byte *bytes, std::uint64_t count, AccessRole role) {
  BlockRaces *races = w.block->races;
  if (!races)
    return;
  const unsigned piece = count % 16 ? 8 : 16;
  const std::uint32_t exec = std::exchange(w.exec, 1u << l);
  for (std::uint64_t at = 0; at < count; at += piece) {
    std::uint64_t addresses[warpSize] = {};
    addresses[l] = reinterpret_cast<std::uint64_t>(bytes) + at;
    races->record(w, op, {addresses, addresses[l], false, false, piece}, role);
  }
  w.exec = exec;
}

} // namespace

Next replaceMap(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) {
    const std::uint64_t value = op.flags & mapValue64
                                    ? reinterpret_cast<const std::uint64_t *>(w.registers + op.s[1])[l]
                                    : reinterpret_cast<const std::uint32_t *>(w.registers + op.s[1])[l];
    const auto place = placeOf(w, op, l, TensorMap::size, mapAlignment);
    if (!place)
      return Next::Fault;
    recordBytes(w, op, l, place->bytes, TensorMap::size, AccessRole::Write);
    std::string why;
    if (!replaceMapField(place->bytes, static_cast<MapField>(op.aux & 0xFF), op.aux >> 8, value, why)) {
      reportFinding(w, op, "tma.descriptor", 1u << l, why + " (lane " + std::to_string(l) + ")", true);
      return Next::Fault;
    }
    if (place->side.bits)
      markDefined(place->side.bits, reinterpret_cast<std::uint64_t>(place->bytes) - place->side.origin,
                  TensorMap::size);
    ++w.block->worker.progress;
    return Next::Advance;
  });
}

Next copyMap(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  // The lanes do it together: once for each pair of addresses, which should be one.
  std::uint64_t lastFrom = 0, lastTo = 0;
  bool first = true;
  const Next next = eachLane(w, [&](unsigned l) {
    const std::uint64_t from = bulkAddress(w, op, bulkSlot::From, l), to = bulkAddress(w, op, bulkSlot::To, l);
    if (!std::exchange(first, false) && from == lastFrom && to == lastTo)
      return Next::Advance;
    lastFrom = from;
    lastTo = to;
    BlockState *owner = nullptr;
    std::uint32_t offset = 0;
    const Allocation *allocation = nullptr;
    if (!checkAligned(w, op, l, from, mapAlignment) || !checkAligned(w, op, l, to, mapAlignment) ||
        !checkShared(w, op, l, from, TensorMap::size, false, owner, offset) ||
        !checkGlobal(w, op, l, to, TensorMap::size, true, allocation))
      return Next::Fault;
    const std::byte *source = owner->shared + offset;
    auto *bytes = reinterpret_cast<std::byte *>(to);
    recordBytes(w, op, l, source, TensorMap::size, AccessRole::Read);
    recordBytes(w, op, l, bytes, TensorMap::size, AccessRole::Write);
    std::memcpy(bytes, source, TensorMap::size);
    moveDefined(sharedSide(*owner), reinterpret_cast<std::uint64_t>(source), globalSide(*w.block, *allocation), to,
                TensorMap::size);
    ++w.block->worker.progress;
    return Next::Advance;
  });
  if (next == Next::Advance && w.block->races)
    w.block->races->releaseMaps(w);
  return next;
}

Next bulkFill(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) {
    const std::uint64_t bytes = reinterpret_cast<const std::uint64_t *>(w.registers + op.s[1])[l];
    constexpr unsigned unit = 8;
    if (bytes % unit) {
      reportFinding(w, op, "misaligned", 1u << l,
                    "a size of " + std::to_string(bytes) + " bytes (lane " + std::to_string(l) +
                        ") is not a multiple of 8",
                    true);
      return Next::Fault;
    }
    const std::uint64_t address = addressOf(w, op, l);
    if ((op.flags & access::spaceMask) == access::generic && address >> windowShift != SharedWindow) {
      reportFinding(w, op, "oob.shared", 1u << l,
                    "fills memory that is not shared memory (lane " + std::to_string(l) + ")", true);
      return Next::Fault;
    }
    const auto place = placeOf(w, op, l, bytes, unit);
    if (!place)
      return Next::Fault;
    recordBytes(w, op, l, place->bytes, bytes, AccessRole::Write);
    std::memset(place->bytes, 0, bytes);
    if (place->side.bits)
      markDefined(place->side.bits, reinterpret_cast<std::uint64_t>(place->bytes) - place->side.origin, bytes);
    const AsyncRange range{reinterpret_cast<std::uint64_t>(place->bytes), bytes};
    countBulk(w, CountedSpace::Shared, AccessKind::BulkLoad, {&range, 1});
    ++w.block->worker.progress;
    return Next::Advance;
  });
}

} // namespace kiln::emulator
