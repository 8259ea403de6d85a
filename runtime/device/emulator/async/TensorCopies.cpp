// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor: boxes of tensors.
#include "runtime/device/emulator/async/BoxWalk.h"
#include "runtime/device/emulator/async/BulkCopies.h"
#include "runtime/device/emulator/async/BulkTransfer.h"
#include "runtime/device/emulator/async/TensorMap.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kiln::emulator {

namespace {

constexpr unsigned boxAlignment = 128, mapAlignment = 64;
/// Boxes start at multiples of so many bytes of a row, and stores write so many or none.
constexpr unsigned rowUnit = 16;

/// One lane's box.
struct TensorBox {
  TensorMapRecipe map;
  std::uint64_t mapAddress = 0; ///< in global memory; 0: a parameter, which nobody changes
  std::int32_t coordinates[TensorMapRecipe::maxRank] = {};

  std::string at() const {
    std::string text;
    for (unsigned i = 0; i < map.rank; ++i)
      text += (i ? ", " : "(") + std::to_string(coordinates[i]);
    return text + ")";
  }
};

/// The tensor map's bytes; nullptr after a fatal finding.
const std::byte *mapBytes(WarpState &w, const Op &op, unsigned l, std::uint64_t address, bool &inGlobal) {
  if (!checkAligned(w, op, l, address, mapAlignment))
    return nullptr;
  const Launch &launch = w.block->worker.launch;
  const std::uint64_t window = address >> windowShift;
  inGlobal = window != ParamWindow;
  if (window == ParamWindow) {
    const std::uint64_t offset = address & windowOffsetMask, size = launch.parameters.size();
    if (offset <= size && size - offset >= TensorMap::size)
      return launch.parameters.data() + offset;
  } else if (launch.memory->holding(address, TensorMap::size)) {
    return reinterpret_cast<const std::byte *>(address);
  }
  bool freed = false;
  const std::string where = window == SharedWindow  ? "in shared memory"
                            : window == LocalWindow ? "in local memory"
                            : window == ParamWindow ? "outside the kernel's parameters"
                                                    : launch.memory->describe(address, TensorMap::size, freed);
  reportFinding(w, op, freed ? "use_after_free" : "tma.descriptor", 1u << l,
                format("the tensor map at 0x%llx (lane %u) is ", static_cast<unsigned long long>(address), l) + where +
                    "; it must be 128 bytes of global or constant memory or of the kernel's parameters",
                true);
  return nullptr;
}

bool readBox(WarpState &w, const Op &op, unsigned l, TensorBox &box) {
  const std::uint64_t address = bulkAddress(w, op, bulkSlot::From, l);
  bool inGlobal = false;
  const std::byte *bytes = mapBytes(w, op, l, address, inGlobal);
  if (!bytes)
    return false;
  box.mapAddress = inGlobal ? address : 0;
  std::string why;
  if (!decodeMap(bytes, box.map, why)) {
    reportFinding(w, op, "tma.descriptor", 1u << l, why + " (lane " + std::to_string(l) + ")", true);
    return false;
  }
  const unsigned rank = rankOf(op);
  if (box.map.rank != rank) {
    reportFinding(w, op, "tma.box", 1u << l,
                  "the instruction has " + std::to_string(rank) + " coordinates, the tensor map (lane " +
                      std::to_string(l) + ") is of rank " + std::to_string(box.map.rank),
                  true);
    return false;
  }
  for (unsigned i = 0; i < rank; ++i)
    box.coordinates[i] = static_cast<std::int32_t>(bulkOperand(w, op, bulkSlot::Coordinates + i, l));
  const std::int64_t start = std::int64_t(box.coordinates[0]) * tensorMapTypeBytes(box.map.type);
  if (start % rowUnit == 0)
    return true;
  reportFinding(w, op, "tma.coordinate", 1u << l,
                "the box at " + box.at() + " (lane " + std::to_string(l) + ") starts " + std::to_string(start) +
                    " bytes from the start of the row, not a multiple of 16: coordinate 0 must be a multiple of " +
                    std::to_string(rowUnit / tensorMapTypeBytes(box.map.type)) + " for elements of type " +
                    std::string(tensorMapTypeName(box.map.type)),
                true);
  return false;
}

/// Looks up the buffers that the box's elements lie in: a side for each that is met.
class BoxBuffers {
public:
  BoxBuffers(WarpState &w, const Op &op, unsigned l, bool write) : w(w), op(op), l(l), write(write) {}

  /// Every row of the box lies in a buffer; false after a fatal finding.
  bool check(const TensorBox &box, const BoxWalk &walk) {
    for (std::uint64_t i = 0; i < walk.rows; ++i) {
      const BoxRow row = walk.row(i);
      if (row.begin == row.end)
        continue;
      const std::uint64_t first = row.global + std::uint64_t(row.begin) * walk.elementBytes;
      const std::uint64_t bytes = std::uint64_t(row.end - row.begin) * walk.elementBytes;
      if (!find(first, bytes))
        return refuse(box, first, bytes);
    }
    return true;
  }
  /// Index into `sides` of a piece that was checked.
  std::uint32_t sideOf(std::uint64_t address, std::uint64_t bytes) {
    find(address, bytes);
    return current;
  }
  std::vector<MemorySide> sides;

private:
  bool find(std::uint64_t address, std::uint64_t bytes) {
    if (last && address >= last->begin && address + bytes <= last->end())
      return true;
    const Allocation *a = w.block->worker.launch.memory->holding(address, bytes);
    if (!a || (write && !a->writable))
      return false;
    last = a;
    const auto known = std::find(met.begin(), met.end(), a);
    current = static_cast<std::uint32_t>(known - met.begin());
    if (known == met.end()) {
      met.push_back(a);
      sides.push_back(globalSide(*w.block, *a));
    }
    return true;
  }
  bool refuse(const TensorBox &box, std::uint64_t first, std::uint64_t bytes) {
    const GlobalMemory &memory = *w.block->worker.launch.memory;
    if (const Allocation *a = memory.holding(first, bytes))
      return reportReadOnly(w, op, ("constant " + a->name()).c_str());
    bool freed = false;
    std::string where = memory.describe(first, bytes, freed);
    if (where == "in no buffer")
      where += format(", at 0x%llx", static_cast<unsigned long long>(first));
    reportFinding(w, op, freed ? "use_after_free" : "oob.global", 1u << l,
                  std::to_string(bytes) + " bytes of the box at " + box.at() + " (lane " + std::to_string(l) +
                      "), inside the tensor that the map describes" +
                      (write ? " (stores write whole units of 16 bytes of a row)" : "") + ", are " + where,
                  true);
    return false;
  }

  WarpState &w;
  const Op &op;
  unsigned l;
  bool write;
  const Allocation *last = nullptr;
  std::uint32_t current = 0;
  std::vector<const Allocation *> met;
};

/// Bytes of shared memory that the box takes: a swizzle may use the gap after a short row, also after the last.
std::uint64_t sharedSpan(const TensorBox &box, const BoxWalk &walk) {
  return box.map.swizzle == TensorMapSwizzle::None ? walk.spanBytes : walk.rows * walk.pitch;
}

// --- elements on their way into shared memory ----------------------------------

/// To nearest, ties to even; NaNs become one.
void toTf32(std::byte *data, std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += 4) {
    std::uint32_t v;
    std::memcpy(&v, data + at, 4);
    v = (v & 0x7fffffffu) > 0x7f800000u ? 0x7fffe000u : (v + 0xfffu + (v >> 13 & 1)) & 0xffffe000u;
    std::memcpy(data + at, &v, 4);
  }
}
/// An H200 keeps subnormals in loads of *_ftz types.
Convert convertOf(TensorMapType type) {
  return type == TensorMapType::Tf32 || type == TensorMapType::Tf32Ftz ? toTf32 : nullptr;
}

/// Every 16 bits of what lies outside the tensor.
constexpr std::uint64_t nanFilling = 0x7FF77FF77FF77FF7;

Next loadBox(WarpState &w, const Op &op, unsigned l) {
  TensorBox box;
  if (!readBox(w, op, l, box))
    return Next::Fault;
  const BoxWalk walk(box.map, box.coordinates);
  std::vector<LoadTarget> targets;
  BoxBuffers buffers(w, op, l, false);
  if (!locateTargets(w, op, l, sharedSpan(box, walk), boxAlignment, targets))
    return Next::Fault;
  if (targets.empty())
    return Next::Advance;
  if (!buffers.check(box, walk))
    return Next::Fault;
  auto transfer = std::make_shared<BulkTransfer>();
  transfer->convert = convertOf(box.map.type);
  transfer->filling = box.map.fill == TensorMapFill::Nan ? nanFilling : 0;
  Load load;
  load.tx = static_cast<std::uint32_t>(walk.denseBytes);
  walk.eachPiece(targets[0].offset, [&](const BoxPiece &p) {
    transfer->pieces.push_back({p.global, p.shared, p.bytes, p.inside ? buffers.sideOf(p.global, p.bytes) : 0});
    addRange(load.offsets, p.shared, p.bytes);
    if (p.inside)
      addRange(load.sources, p.global, p.bytes);
  });
  if (!buffers.sides.empty())
    transfer->sides = std::move(buffers.sides);
  joinRanges(load.offsets);
  load.transfer = std::move(transfer);
  load.map = box.mapAddress;
  load.swizzle = box.map.swizzle;
  return issueLoads(w, op, l, targets, load);
}

/// The box's start is not negative; the copy goes on if it is.
void checkStart(WarpState &w, const Op &op, unsigned l, const TensorBox &box) {
  for (unsigned i = 0; i < box.map.rank; ++i)
    if (box.coordinates[i] < 0 && !countFinding(w, op, "tma.coordinate"))
      reportFinding(w, op, "tma.coordinate", 1u << l,
                    "stores a box at " + box.at() + " (lane " + std::to_string(l) + "): coordinate " +
                        std::to_string(i) + " is " + std::to_string(box.coordinates[i]) +
                        "; a store may start past the end of the tensor, but not before its start",
                    false);
}

Next storeBox(WarpState &w, const Op &op, std::uint32_t lanes) {
  const auto l = static_cast<unsigned>(__builtin_ctz(lanes));
  TensorBox box;
  if (!readBox(w, op, l, box))
    return Next::Fault;
  auto store = std::make_unique<StoreRead>(w, op, lanes);
  if (const ReduceOp reduce = reduceOf(op); reduce != ReduceOp::None) {
    store->write->combine = combineOf(reduce, box.map.type);
    if (!store->write->combine) {
      reportFinding(w, op, "tma.type", 1u << l,
                    "there is no reduction '" + std::string(reduceOpName(reduce)) + "' of elements of type " +
                        std::string(tensorMapTypeName(box.map.type)) + " (lane " + std::to_string(l) + ")",
                    true);
      return Next::Fault;
    }
  }
  const BoxWalk walk(box.map, box.coordinates, rowUnit);
  const std::uint64_t from = bulkAddress(w, op, bulkSlot::To, l);
  BlockState *own = nullptr;
  std::uint32_t offset = 0;
  BoxBuffers buffers(w, op, l, true);
  if (!checkAligned(w, op, l, from, boxAlignment) ||
      !checkShared(w, op, l, from, sharedSpan(box, walk), false, own, offset) || !buffers.check(box, walk))
    return Next::Fault;
  checkStart(w, op, l, box);
  const auto shared = reinterpret_cast<std::uint64_t>(w.block->shared);
  std::vector<AsyncRange> sources, destinations;
  walk.eachPiece(offset, [&](const BoxPiece &p) {
    if (!p.inside)
      return;
    store->transfer.pieces.push_back({shared + p.shared, store->bytes, p.bytes, 0});
    store->write->pieces.push_back({store->bytes, p.global, p.bytes, buffers.sideOf(p.global, p.bytes)});
    store->bytes += p.bytes;
    addRange(sources, shared + p.shared, p.bytes);
    addRange(destinations, p.global, p.bytes);
  });
  store->transfer.sides = {sharedSide(*w.block)};
  store->write->sides = std::move(buffers.sides);
  joinRanges(sources);
  return issueStore(w, op, lanes, std::move(store), {sources, destinations, box.mapAddress});
}

} // namespace

Next tensorLoad(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) { return loadBox(w, op, l); });
}

Next tensorStore(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachStore(w, op, [&](std::uint32_t lanes) { return storeBox(w, op, lanes); });
}

Next tensorPrefetch(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  return eachLane(w, [&](unsigned l) {
    TensorBox box;
    return readBox(w, op, l, box) ? Next::Advance : Next::Fault;
  });
}

} // namespace kiln::emulator
