#include "compiler/layout/MemoryAccess.h"

#include "compiler/layout/Checks.h"
#include "compiler/layout/TileLayout.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

unsigned maxAccessBytes(const Target &target) {
  return target.has(Capability::Wide256) ? 32 : 16;
}

std::uint32_t layoutVector(const LinearLayout &layout, unsigned dim, std::uint32_t maxElements) {
  Span registers(layout.columns(InDim::Register));
  BitVector touched = 0;
  for (InDim d : {InDim::Lane, InDim::Warp, InDim::Block})
    for (BitVector c : layout.columns(d))
      touched |= c;
  unsigned k = 0;
  while (k < layout.log2Shape(dim) && std::uint64_t(2) << k <= maxElements && !(touched & layout.unit(dim, k)) &&
         registers.contains(layout.unit(dim, k)))
    ++k;
  return 1u << k;
}

std::uint32_t vectorElements(const LinearLayout &layout, unsigned dim, unsigned bits, std::uint32_t contiguity,
                             std::uint32_t divisibilityBytes, std::uint32_t maskConstancy, unsigned maxBytes) {
  unsigned bytes = storageBytes(bits);
  std::uint32_t most = std::min({maxBytes / bytes, contiguity, divisibilityBytes / bytes, maskConstancy});
  return layoutVector(layout, dim, std::bit_floor(std::max(1u, most)));
}

/// Parts of 2^logBytes bytes that one access of a warp touches.
static std::uint32_t partsTouched(const LinearLayout &layout, unsigned dim, unsigned logElements, unsigned bits,
                                  unsigned logBytes) {
  Span span;
  auto offer = [&](BitVector flatIndex) { span.add(flatIndex * storageBytes(bits) >> logBytes); };
  for (BitVector c : layout.columns(InDim::Lane))
    offer(c);
  for (unsigned i = 0; i < logElements; ++i)
    offer(layout.unit(dim, i));
  return 1u << span.dim();
}

std::uint32_t sectors(const LinearLayout &layout, unsigned dim, unsigned logElements, unsigned bits) {
  return partsTouched(layout, dim, logElements, bits, 5);
}

std::uint32_t lines(const LinearLayout &layout, unsigned dim, unsigned logElements, unsigned bits) {
  return partsTouched(layout, dim, logElements, bits, 7);
}

Result<Blocked> coalesce(std::span<const std::int64_t> shape, std::span<const std::int64_t> contiguity,
                         std::int64_t divisibilityBytes, unsigned bits, std::int64_t warps) {
  KILN_ASSIGN(TileShape tile, splitExtents(shape));
  KILN_TRY(checkElementBits(bits));
  if (shape.empty())
    return Status::invalid("L02: a scalar has no blocked layout", "load it once and splat it");
  KILN_TRY(checkLength("contiguity", contiguity, shape.size()));
  KILN_ASSIGN(unsigned logWarps, log2Of("L03", "warps", warps));
  if (logWarps > maxBitsPerInput)
    return Status::invalid(format("L18: 2^%u warps exceed the limit of 2^%u", logWarps, maxBitsPerInput),
                           "use at most 32 warps a block");
  std::size_t rank = shape.size();
  Blocked out;
  for (std::size_t d = 0; d < rank; ++d)
    out.order.push_back(static_cast<std::int64_t>(d));
  // Most contiguous dimension first, the higher dimension wins ties.
  std::sort(out.order.begin(), out.order.end(), [&](std::int64_t a, std::int64_t b) {
    return contiguity[a] != contiguity[b] ? contiguity[a] > contiguity[b] : a > b;
  });
  std::int64_t fastest = out.order[0], bytes = storageBytes(bits), elements = 1;
  for (std::uint32_t extent : tile.core)
    elements *= extent;
  std::int64_t share = std::max<std::int64_t>(1, elements / (warpSize * warps));
  std::int64_t vector = std::min({16 / bytes, contiguity[fastest], std::max<std::int64_t>(1, divisibilityBytes / bytes),
                                  share, static_cast<std::int64_t>(tile.core[fastest])});
  out.sizePerThread.assign(rank, 1);
  out.threadsPerWarp.assign(rank, 1);
  out.warpsPerCTA.assign(rank, 1);
  out.sizePerThread[fastest] =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, vector))));
  auto fill = [&](std::int64_t total, Sizes &into, bool lanesTaken) {
    std::int64_t left = total;
    for (std::int64_t d : out.order) {
      std::int64_t used = out.sizePerThread[d] * (lanesTaken ? out.threadsPerWarp[d] : 1);
      into[d] = std::min(left, std::max<std::int64_t>(1, tile.core[d] / used));
      left /= into[d];
    }
    into[out.order.back()] *= left;
  };
  fill(warpSize, out.threadsPerWarp, false);
  fill(warps, out.warpsPerCTA, true);
  return out;
}

Owners::Owners(const LinearLayout &layout) {
  auto free = layout.freeMasks();
  registers = free[index(InDim::Register)];
  lanes = free[index(InDim::Lane)];
  warps = free[index(InDim::Warp)];
  blocks = free[index(InDim::Block)];
}

Actors actorsOf(MemoryOp op, const LinearLayout &layout) {
  Actors out;
  bool copies = !Owners(layout).everyThread();
  switch (op) {
  case MemoryOp::Load: // copies read the same address in one request
    break;
  case MemoryOp::VolatileLoad:
  case MemoryOp::AtomicWithResult:
    out.ownersOnly = out.broadcast = copies;
    break;
  case MemoryOp::Store:
  case MemoryOp::AsyncCopy:
  case MemoryOp::Atomic:
  case MemoryOp::Print:
    out.ownersOnly = copies;
    break;
  case MemoryOp::BulkCopy:
    out.electOne = true;
    out.distinctRegisters = false;
    break;
  }
  return out;
}

OwnerBroadcast ownerBroadcast(const LinearLayout &layout) {
  OwnerBroadcast out;
  Owners owners(layout);
  for (unsigned j = 0; j < laneBits; ++j)
    out.ownerLane[j] = unitVector(j);
  if (owners.everyThread())
    return out;
  out.none = false;
  if (owners.warps || owners.blocks) {
    out.scratch = true;
    return out;
  }
  unsigned at = layout.hardwareStart(InDim::Lane);
  Columns map = layout.ownerMap();
  for (unsigned j = 0; j < layout.bits(InDim::Lane) && j < laneBits; ++j) {
    BitVector owner = map[at + j];
    if (owner & lowMask(at))
      out.scratch = true; // the owner holds it in another register: a conversion, not one shuffle
    out.ownerLane[j] = owner >> at & lowMask(laneBits);
  }
  out.shuffle = !out.scratch;
  return out;
}

} // namespace kiln::layout
