#include "compiler/passes/barriers/SharedFootprint.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/tile_gpu/Exchange.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <bit>

using namespace mlir;

namespace kiln {

using namespace tile_gpu;
using layout::Access;
using layout::applyColumns;

namespace {

constexpr uint32_t allLanes = ~uint32_t(0);
constexpr uint64_t everywhere = ~uint64_t(0);
/// Of more buffers than this, one by an unknown index counts as all their bytes.
constexpr unsigned mostSlots = 64;
/// No target has as much shared memory.
constexpr uint64_t mostBytes = uint64_t(1) << 24;

uint32_t allWarps(Operation *op) {
  const Warps warps = warpsOf(op);
  const uint32_t all = warps.count >= 32 ? ~uint32_t(0) : (uint32_t(1) << warps.count) - 1;
  return all << warps.first;
}

Result<uint64_t> offsetOf(LocalAllocOp alloc) {
  if (!alloc.getOffset())
    return Status(StatusCode::CompileError, "a buffer has no place in shared memory yet", "run allocate-shared first");
  return uint64_t(*alloc.getOffset());
}

/// The slots of the local_alloc that a buffer may be: its first byte, the slots' stride, and which.
struct Slots {
  LocalAllocOp alloc;
  uint64_t base = 0, stride = 0;
  unsigned first = 0, last = 0;
  std::optional<SlotNumber> number;
  std::optional<int64_t> constant;
};

/// Nothing if the buffer cannot be followed to one local_alloc.
Result<std::optional<Slots>> slotsOf(Value buffer) {
  std::optional<unsigned> index;
  std::optional<SlotNumber> number;
  for (;;) {
    Operation *op = buffer.getDefiningOp();
    if (auto transpose = dyn_cast_or_null<LocalTransposeOp>(op)) {
      buffer = transpose.getBuffer();
    } else if (auto view = dyn_cast_or_null<LocalSubviewOp>(op)) {
      if (APInt value; !index && view.getBuffer().getType().getCount() > 1) {
        if (matchPattern(view.getIndex(), m_ConstantInt(&value)))
          index = static_cast<unsigned>(value.getLimitedValue());
        else
          number = SlotNumber::of(view.getIndex());
      }
      buffer = view.getBuffer();
    } else if (auto alloc = dyn_cast_or_null<LocalAllocOp>(op)) {
      auto type = cast<BufferType>(alloc.getType());
      KILN_ASSIGN(const layout::SharedTile tile, type.lowered());
      Slots slots;
      slots.alloc = alloc;
      slots.number = number;
      KILN_ASSIGN(slots.base, offsetOf(alloc));
      slots.stride = llvm::alignTo(tile.bytes(), tile.alignment());
      const unsigned most = static_cast<unsigned>(type.getCount()) - 1;
      slots.first = index && *index <= most ? *index : 0;
      slots.last = index && *index <= most ? *index : most;
      if (index && *index <= most)
        slots.constant = *index;
      return std::optional(slots);
    } else {
      return std::optional<Slots>();
    }
  }
}

/// One element at a time, by its owner: which of them a copy moves together changes nothing.
Access byElement(const layout::LinearLayout &core, const layout::SharedTile &shared) {
  Access out;
  out.bytes = std::max(8u, shared.bits()) / 8;
  const auto offsets = [&](layout::InDim in) {
    std::vector<layout::Mask> columns;
    for (unsigned i = 0; i < core.bits(in); ++i)
      columns.push_back(layout::coordsOf(shared.inverse(), core.column(in, i)));
    return columns;
  };
  out.registerOffset = offsets(layout::InDim::Register);
  out.lane = offsets(layout::InDim::Lane);
  out.warp = offsets(layout::InDim::Warp);
  for (unsigned i = 0; i < core.bits(layout::InDim::Register); ++i)
    if (!(core.freeMask(layout::InDim::Register) >> i & 1))
      out.instruction.push_back(layout::Mask(1) << i);
  out.lanePredicate = core.freeMask(layout::InDim::Lane);
  out.warpPredicate = core.freeMask(layout::InDim::Warp);
  return out;
}

/// Of a buffer that a wait publishes.
struct Published {
  bool written = false;
  Type by; ///< the threads that this tile's layout says; null: anyone
};

/// The buffers that a wait for groups of an agent publishes: those that it names, else all that the agent ever fills;
/// and all that it ever reads.  Of operations that it names, if it does.
llvm::MapVector<Value, Published> publishedBy(Operation *wait, const tile::MemoryOrdering &ordering) {
  llvm::MapVector<Value, Published> out;
  for (Value buffer : ordering.ready)
    out[buffer].written = true;
  const auto add = [&](Operation *op) {
    for (const tile::MemoryAccess &access : tile::accessesOf(op))
      if (access.in<SharedMemory>() && access.inFlight && access.agent == *ordering.awaits && access.memory &&
          (access.writes ? ordering.ready.empty() && !ordering.readsOnly : access.reads)) {
        auto [it, fresh] = out.insert({access.memory, {access.writes, access.tile}});
        if (!fresh)
          it->second = {it->second.written || access.writes, it->second.by == access.tile ? it->second.by : Type()};
      }
  };
  if (ordering.awaited.empty())
    wait->getParentOfType<func::FuncOp>().walk(add);
  else
    llvm::for_each(ordering.awaited, add);
  return out;
}

} // namespace

/// Marks the places of one access, repetition by repetition.
struct SharedFootprint::Builder {
  SharedFootprint &out;

  void open(uint64_t begin, uint64_t end, unsigned cellBytes) {
    out.begin = begin;
    out.end = end;
    out.cellBytes = cellBytes;
    out.cells.assign((end - begin + cellBytes - 1) / cellBytes, {});
  }
  void everyone(Operation *op, uint64_t begin, uint64_t end) {
    out.begin = begin;
    out.end = end;
    out.cells.clear();
    out.everyone = {allWarps(op), allLanes};
  }

  struct Frame {
    uint64_t base = 0; ///< byte of offset 0
    unsigned warpBits = 0;
    uint64_t warpBytes = 0;  ///< from one warp's region to the next
    unsigned placeBits = 32; ///< offset bits from here on number the pass
    uint32_t pass = 0;
    bool predicated = false;                    ///< passes are chosen lane by lane
    const layout::SharedTile *buffer = nullptr; ///< null: places lie one after the other
  };

  void access(const Access &a, const Frame &f) {
    // A matrix instruction moves rows of 16 bytes for other lanes than those that name them: all lanes take part.
    const bool matrix = isMatrix(a.form);
    const uint32_t rows = matrix ? uint32_t(8) << a.matrices.size() : layout::warpSize;
    const uint32_t elements = (matrix ? 16 : a.bytes) / out.cellBytes;
    for (uint32_t warp = 0; warp < uint32_t(1) << f.warpBits; ++warp) {
      if (warp & a.warpPredicate)
        continue;
      for (uint32_t row = 0; row < rows; ++row) {
        if (row & a.lanePredicate)
          continue;
        const uint32_t thread = applyColumns(a.warp, warp) ^ applyColumns(matrix ? a.rowOffset : a.lane, row);
        for (uint32_t i = 0; i < uint32_t(1) << a.instruction.size(); ++i) {
          const uint32_t constant = applyColumns(a.registerOffset, applyColumns(a.instruction, i));
          const uint64_t offset = thread ^ constant;
          if ((f.predicated ? offset : constant) >> f.placeBits != f.pass)
            continue;
          mark(f, warp, offset & ((uint64_t(1) << f.placeBits) - 1), elements, matrix ? allLanes : uint32_t(1) << row);
        }
      }
    }
  }

  void mark(const Frame &f, uint32_t warp, uint64_t place, uint32_t elements, uint32_t lanes) {
    for (uint32_t s = 0; s < elements; ++s) {
      const uint64_t at = f.buffer ? byteOf(f.buffer->fields(), place + s) / out.cellBytes : place + s;
      const uint64_t cell = (f.base - out.begin + warp * f.warpBytes) / out.cellBytes + at;
      if (cell < out.cells.size()) {
        out.cells[cell].warps |= uint32_t(1) << warp;
        out.cells[cell].lanes |= lanes;
      }
    }
  }

  Status exchange(Operation *op, const tile::MemoryAccess &access) {
    KILN_ASSIGN(const layout::TileConversionPlan plan, exchangePlan(op, access));
    auto alloc = access.memory.getDefiningOp<LocalAllocOp>();
    if (!alloc) {
      everyone(op, 0, everywhere);
      return {};
    }
    out.alloc = alloc;
    KILN_ASSIGN(const uint64_t base, offsetOf(alloc));
    const layout::SharedPlan &shared = plan.core.shared;
    open(base, base + plan.scratchBytes, plan.core.storageBytes);
    const ExchangePass at = exchangePass(plan, access.exchange->pass);
    Frame f;
    f.warpBits = plan.core.warpBits;
    f.warpBytes = shared.scope == layout::Scope::Warp ? shared.regionBytes : 0;
    f.placeBits = shared.regionBits - shared.passBits;
    f.pass = at.corePass;
    f.predicated = shared.predicatedPasses;
    for (unsigned j = 0; j < at.repetitions; ++j) {
      f.base = base + j * plan.core.scratchBytes;
      this->access(access.writes ? shared.store : shared.load, f);
    }
    return {};
  }

  /// Who touches which part of a buffer.
  enum class By { Plan, Element, Everyone };

  Status local(Operation *op, Value buffer, Type tile, By by) {
    if (const auto barriers = dyn_cast<MbarriersType>(buffer.getType()))
      if (auto alloc = buffer.getDefiningOp<LocalAllocOp>()) {
        out.alloc = alloc;
        KILN_ASSIGN(const uint64_t base, offsetOf(alloc));
        everyone(op, base, base + static_cast<uint64_t>(barriers.getCount()) * MbarriersType::bytesOfOne);
        return {};
      }
    if (!isa<BufferType>(buffer.getType())) { // scratch without a step of a plan
      everyone(op, 0, everywhere);
      return {};
    }
    KILN_ASSIGN(const std::optional<Slots> slots, slotsOf(buffer));
    if (!slots) {
      everyone(op, 0, everywhere);
      return {};
    }
    KILN_ASSIGN(const layout::SharedTile shared, cast<BufferType>(buffer.getType()).lowered());
    const uint64_t begin = slots->base + slots->first * slots->stride;
    const uint64_t end = slots->base + slots->last * slots->stride + shared.bytes();
    if (end > mostBytes)
      return Status(StatusCode::CompileError, "a buffer ends at byte " + std::to_string(end) + " of shared memory",
                    "use smaller or fewer buffers; allocate-shared says what the target has");
    out.alloc = slots->alloc;
    out.number = slots->number;
    out.constant = slots->constant;
    if (by == By::Everyone || slots->last - slots->first >= mostSlots) {
      everyone(op, begin, end);
      return {};
    }
    KILN_ASSIGN(const layout::TileLayout distributed, layoutOf(tile));
    const layout::LinearLayout &core = distributed.core();
    Access access;
    if (by == By::Element) {
      access = byElement(core, shared);
    } else {
      KILN_ASSIGN(const Target *target, targetOf(op));
      KILN_ASSIGN(layout::LocalAccessPlan plan,
                  layout::planLocalAccess(core, shared.core(), planBits(tile), *target, out.write));
      access = std::move(plan.access);
    }
    open(begin, end, std::max(8u, shared.bits()) / 8);
    Frame f;
    f.warpBits = core.bits(layout::InDim::Warp);
    f.buffer = &shared;
    for (unsigned slot = slots->first; slot <= slots->last; ++slot)
      for (unsigned rep = 0; rep < shared.tile().repetitions(); ++rep) {
        f.base = slots->base + slot * slots->stride + shared.repetitionByte(rep);
        this->access(access, f);
      }
    return {};
  }

  Status fill(Operation *op, const tile::MemoryAccess &access) {
    if (!access.memory) {
      everyone(op, 0, everywhere);
      return {};
    }
    if (access.exchange)
      return exchange(op, access);
    const bool byPlan = access.agent == tile::Agent::Threads;
    return local(op, access.memory, access.tile, !access.tile ? By::Everyone : byPlan ? By::Plan : By::Element);
  }
};

Result<std::vector<SharedFootprint>> SharedFootprint::of(Operation *op, Waits waits) {
  std::vector<SharedFootprint> all;
  if (op->getNumRegions() > 0)
    return all;
  if (const auto ordering = tile::orderingOf(op); ordering && ordering->awaits)
    for (const auto &[buffer, what] : publishedBy(op, *ordering)) {
      SharedFootprint &one = all.emplace_back();
      one.write = what.written;
      const bool known = what.by && (waits == Waits::OfOwners || !what.written);
      KILN_TRY(Builder{one}.local(op, buffer, what.by, known ? Builder::By::Element : Builder::By::Everyone));
    }
  for (const tile::MemoryAccess &access : tile::accessesOf(op)) {
    if (!access.in<SharedMemory>())
      continue;
    SharedFootprint &one = all.emplace_back();
    one.write = access.writes;
    one.elected = isElected(op);
    KILN_TRY(Builder{one}.fill(op, access));
  }
  return all;
}

Result<std::vector<SharedFootprint>> SharedFootprint::releasedBy(Operation *op) {
  std::vector<SharedFootprint> all;
  if (const auto ordering = tile::orderingOf(op); ordering && ordering->handoff && ordering->waits)
    for (Value buffer : ordering->ready) {
      SharedFootprint &one = all.emplace_back();
      one.write = true;
      KILN_TRY(Builder{one}.local(op, buffer, Type(), Builder::By::Everyone));
    }
  return all;
}

const SharedFootprint::Cell *SharedFootprint::cellAt(uint64_t byte) const {
  if (byte < begin || byte >= end)
    return nullptr;
  return cells.empty() ? &everyone : &cells[(byte - begin) / cellBytes];
}

Hazard SharedFootprint::against(const SharedFootprint &other, std::optional<int64_t> rounds,
                                std::optional<int64_t> round) const {
  if (!write && !other.write)
    return Hazard::None;
  if (rounds && number && other.number && alloc == other.alloc && number->differs(*other.number, *rounds))
    return Hazard::None;
  if (round && constant && other.number && alloc == other.alloc && other.number->isNot(*constant, *round))
    return Hazard::None;
  return overlap(other, 0);
}

Hazard SharedFootprint::ifShared(const SharedFootprint &other) const {
  LocalAllocOp mine = alloc, others = other.alloc;
  return write || other.write ? overlap(other, int64_t(*mine.getOffset()) - int64_t(*others.getOffset()))
                              : Hazard::None;
}

Hazard SharedFootprint::overlap(const SharedFootprint &other, int64_t shift) const {
  if (elected && other.elected)
    return Hazard::None;
  const uint64_t up = static_cast<uint64_t>(shift); // modulo 2^64: downwards too
  const uint64_t from = std::max(begin, other.begin + up), to = std::min(end, other.end + up);
  if (from >= to)
    return Hazard::None;
  const bool bothWhole = cells.empty() && other.cells.empty();
  const uint64_t step = bothWhole ? to - from
                                  : std::min(cells.empty() ? other.cellBytes : cellBytes,
                                             other.cells.empty() ? cellBytes : other.cellBytes);
  Hazard worst = Hazard::None;
  for (uint64_t byte = from; byte < to; byte += step) {
    const Cell *a = cellAt(byte), *b = other.cellAt(byte - up);
    if (!a->warps || !b->warps)
      continue;
    if (std::popcount(a->warps | b->warps) > 1)
      return Hazard::Warps;
    if (std::popcount(a->lanes | b->lanes) > 1)
      worst = Hazard::Lanes;
  }
  return worst;
}

} // namespace kiln
