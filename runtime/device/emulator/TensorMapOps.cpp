// tensormap.replace and tensormap.cp_fenceproxy: kernels that change tensor maps.  They access the 128 bytes as
// ordinary loads and stores do; copies see them through a proxy of their own (BlockRaces::releaseMaps).
#include "runtime/device/emulator/BulkCopies.h"
#include "runtime/device/emulator/BulkTransfer.h"
#include "runtime/device/emulator/DefinedBits.h"
#include "runtime/device/emulator/MemoryFaults.h"
#include "runtime/device/emulator/TensorMap.h"

#include <cstring>
#include <optional>

namespace kiln::emulator {

namespace {

constexpr unsigned mapAlignment = 64;

/// 128 bytes that lane l may change.
struct MapPlace {
  std::byte *bytes = nullptr;
  MemorySide side;
};

std::optional<MapPlace> placeOf(WarpState &w, const Op &op, unsigned l, std::uint64_t address) {
  if (!checkAligned(w, op, l, address, mapAlignment))
    return {};
  const unsigned space = op.flags & access::spaceMask;
  const std::uint64_t window = windowBase(SharedWindow);
  const bool isShared = space == access::shared || (space == access::generic && address >> windowShift == SharedWindow);
  if (isShared) {
    BlockState *owner = nullptr;
    std::uint32_t offset = 0;
    if (!checkShared(w, op, l, space == access::generic ? address - window : address, TensorMap::size, false, owner,
                     offset))
      return {};
    return MapPlace{owner->shared + offset, sharedSide(*owner)};
  }
  const Allocation *allocation = nullptr;
  if (!checkGlobal(w, op, l, address, TensorMap::size, true, allocation))
    return {};
  return MapPlace{reinterpret_cast<std::byte *>(address), globalSide(*w.block, *allocation)};
}

/// Lane l accesses the 128 bytes at a host address.
void recordBytes(WarpState &w, const Op &op, unsigned l, const std::byte *bytes, AccessRole role) {
  BlockRaces *races = w.block->races;
  if (!races)
    return;
  constexpr unsigned piece = 16;
  const std::uint32_t exec = std::exchange(w.exec, 1u << l);
  for (unsigned at = 0; at < TensorMap::size; at += piece) {
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
    const auto displacement = static_cast<std::uint64_t>(op.imm);
    const std::uint64_t address =
        op.flags & access::base32
            ? static_cast<std::uint32_t>(reinterpret_cast<const std::uint32_t *>(w.registers + op.s[0])[l] +
                                         displacement)
            : reinterpret_cast<const std::uint64_t *>(w.registers + op.s[0])[l] + displacement;
    const std::uint64_t value = op.flags & mapValue64
                                    ? reinterpret_cast<const std::uint64_t *>(w.registers + op.s[1])[l]
                                    : reinterpret_cast<const std::uint32_t *>(w.registers + op.s[1])[l];
    const auto place = placeOf(w, op, l, address);
    if (!place)
      return Next::Fault;
    recordBytes(w, op, l, place->bytes, AccessRole::Write);
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
    recordBytes(w, op, l, source, AccessRole::Read);
    recordBytes(w, op, l, bytes, AccessRole::Write);
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

} // namespace kiln::emulator
