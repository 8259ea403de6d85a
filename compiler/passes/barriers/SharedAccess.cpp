#include "compiler/passes/barriers/SharedAccess.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/tile_gpu/Exchange.h"

#include "mlir/IR/AsmState.h"

#include <bit>

using namespace mlir;

namespace kiln::proof {

using namespace tile_gpu;
using layout::BitVector;
using layout::InDim;
using layout::Mask;

std::string textOf(Value v) {
  std::string out;
  llvm::raw_string_ostream os(out);
  if (Operation *op = v.getDefiningOp())
    op->print(os, OpPrintingFlags().useLocalScope().skipRegions());
  else
    v.printAsOperand(os, OpPrintingFlags().useLocalScope());
  return out;
}

namespace {

/// Free bits for `bits` low bits of the offset, from bit 0.
void freeBytes(Piece &piece, uint64_t bytes) {
  for (uint64_t bit = 1; bit < bytes; bit *= 2)
    piece.free.push_back({bit, 0, 0});
}

/// Any warp that executes the operation: where these are no power of two, some that do not exist as well.
void freeWarps(Piece &piece, Operation *op) {
  const Warps warps = warpsOf(op);
  for (uint32_t bit = 1; bit < warps.first + warps.count; bit *= 2)
    piece.free.push_back({0, 0, bit});
}

/// Any thread, any byte of `bytes` from base: pieces of powers of two.
void addAnywhere(SharedAccess &out, Operation *op, uint64_t base, uint64_t bytes) {
  while (bytes) {
    Piece piece;
    piece.base = base;
    piece.bytes = piece.reach = std::bit_floor(bytes);
    piece.everyLane = true;
    freeBytes(piece, piece.bytes);
    freeWarps(piece, op);
    out.pieces.push_back(piece);
    base += piece.bytes;
    bytes -= piece.bytes;
  }
}

/// All of shared memory: no target has 16 MiB.
constexpr uint64_t allBytes = uint64_t(1) << 24;

/// Keeps of an affine map what has `number` in its offset bits from .. to - 1; false if nothing has.
bool fixBits(std::vector<Place> &bits, Place &constant, unsigned from, unsigned to, uint64_t number) {
  for (unsigned bit = from; bit < to; ++bit) {
    const bool wanted = number >> (bit - from) & 1;
    auto pivot = llvm::find_if(bits, [&](const Place &p) { return p.offset >> bit & 1; });
    if (pivot == bits.end()) {
      if (bool(constant.offset >> bit & 1) != wanted)
        return false;
      continue;
    }
    const Place row = *pivot;
    bits.erase(pivot);
    for (Place &p : bits)
      if (p.offset >> bit & 1)
        p = p ^ row;
    if (bool(constant.offset >> bit & 1) != wanted)
      constant = constant ^ row;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

/// The places of one pass of a plan's side; offsets count elements until the pass is solved for.
std::optional<Piece> passOf(const layout::Access &a, const layout::ConversionPlan &plan, unsigned pass) {
  const layout::SharedPlan &shared = plan.shared;
  const unsigned placeBits = shared.regionBits - shared.passBits;
  const bool matrix = isMatrix(a.form);
  std::vector<Place> bits;
  for (Mask direction : a.instruction)
    bits.push_back({layout::applyColumns(a.registerOffset, direction), 0, 0});
  for (unsigned i = 0; i < a.warp.size(); ++i)
    if (!(a.warpPredicate >> i & 1))
      bits.push_back({a.warp[i], 0, uint32_t(1) << i});
  const std::vector<Mask> &rows = matrix ? a.rowOffset : a.lane;
  for (unsigned i = 0; i < rows.size(); ++i)
    if (!(a.lanePredicate >> i & 1))
      bits.push_back({rows[i], matrix ? 0 : uint32_t(1) << i, 0});

  Place constant;
  if (!fixBits(bits, constant, placeBits, shared.regionBits, pass))
    return std::nullopt;

  Piece piece;
  const uint64_t inside = (uint64_t(1) << placeBits) - 1;
  const bool regions = shared.scope == layout::Scope::Warp;
  auto inBytes = [&](Place p) {
    p.offset = (p.offset & inside) * plan.storageBytes;
    if (regions)
      p.offset += p.warp * shared.regionBytes;
    return p;
  };
  for (const Place &p : bits)
    piece.free.push_back(inBytes(p));
  piece.constant = inBytes(constant);
  freeBytes(piece, matrix ? 16 : a.bytes);
  piece.everyLane = matrix;
  piece.bytes = std::bit_ceil(plan.scratchBytes);
  piece.reach = plan.scratchBytes;
  return piece;
}

Status addExchange(SharedAccess &out, Operation *op, const tile::MemoryAccess &access) {
  KILN_ASSIGN(const layout::TileConversionPlan plan, exchangePlan(op, access));
  auto alloc = access.memory.getDefiningOp<LocalAllocOp>();
  if (!alloc) {
    addAnywhere(out, op, 0, allBytes);
    out.unknown = "the scratch " + textOf(access.memory);
    return {};
  }
  if (!alloc.getOffset())
    return Status(StatusCode::CompileError, "a scratch has no place in shared memory", "run allocate-shared first");
  const ExchangePass at = exchangePass(plan, access.exchange->pass);
  const layout::SharedPlan &shared = plan.core.shared;
  std::optional<Piece> piece = passOf(out.write ? shared.store : shared.load, plan.core, at.corePass);
  for (unsigned j = 0; piece && j < at.repetitions; ++j) {
    piece->base = *alloc.getOffset() + j * plan.core.scratchBytes;
    out.pieces.push_back(*piece);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// A choice among more buffers than this is taken for all their bytes.
constexpr size_t mostChoices = 64;

struct BufferPlace {
  LocalAllocOp alloc;
  std::vector<uint64_t> slots; ///< byte at which each buffer begins that it may be
};

/// What the views of a buffer are of, and the number by which one of several was taken, if it was.
std::pair<Value, Value> sourceOf(Value buffer) {
  Value index;
  for (;;) {
    if (auto view = buffer.getDefiningOp<LocalSubviewOp>()) {
      // Views of a view of one buffer have no choice left.
      if (view.getBuffer().getType().getCount() > 1)
        index = view.getIndex();
      buffer = view.getBuffer();
    } else if (auto view = buffer.getDefiningOp<LocalTransposeOp>()) {
      buffer = view.getBuffer();
    } else {
      return {buffer, index};
    }
  }
}

/// Finds the allocation.  Without one, or with a choice that is not known, `unknown` names it.
Result<BufferPlace> placeOf(Value view, std::optional<int64_t> slot, std::string &unknown) {
  BufferPlace out;
  const auto [buffer, index] = sourceOf(view);
  if (index && !slot)
    unknown = "the index " + textOf(index);
  out.alloc = buffer.getDefiningOp<LocalAllocOp>();
  if (!out.alloc) {
    unknown = "the buffer " + textOf(buffer);
    return out;
  }
  if (!out.alloc.getOffset())
    return Status(StatusCode::CompileError, "a buffer has no place in shared memory", "run allocate-shared first");
  auto type = cast<BufferType>(out.alloc.getType());
  KILN_ASSIGN(const layout::SharedTile tile, type.lowered());
  const uint64_t align = tile.alignment(), stride = (tile.bytes() + align - 1) / align * align;
  const bool inside = slot && *slot >= 0 && *slot < type.getCount();
  for (int64_t i = 0; i < type.getCount(); ++i)
    if (!inside || i == *slot)
      out.slots.push_back(*out.alloc.getOffset() + static_cast<uint64_t>(i) * stride);
  return out;
}

Status addMbarriers(SharedAccess &out, Operation *op, Value barriers) {
  auto alloc = barriers.getDefiningOp<LocalAllocOp>();
  if (!alloc) {
    addAnywhere(out, op, 0, allBytes);
    out.unknown = "the mbarriers " + textOf(barriers);
    return {};
  }
  if (!alloc.getOffset())
    return Status(StatusCode::CompileError, "mbarriers have no place in shared memory", "run allocate-shared first");
  const auto count = static_cast<uint64_t>(cast<MbarriersType>(barriers.getType()).getCount());
  addAnywhere(out, op, *alloc.getOffset(), count * MbarriersType::bytesOfOne);
  return {};
}

/// Of `tile`, its elements by their threads; of no tile, everything by everyone.
Status addLocal(SharedAccess &out, Operation *op, Value buffer, Type tile, std::optional<int64_t> chosen) {
  KILN_ASSIGN(const BufferPlace place, placeOf(buffer, chosen, out.unknown));
  if (!place.alloc) {
    addAnywhere(out, op, 0, allBytes);
    return {};
  }
  KILN_ASSIGN(const layout::SharedTile shared, cast<BufferType>(buffer.getType()).lowered());
  const uint64_t end = place.slots.back() + shared.bytes();
  if (end > allBytes)
    return Status(StatusCode::CompileError, "a buffer ends at byte " + std::to_string(end) + " of shared memory",
                  "use smaller or fewer buffers; allocate-shared says what the target has");
  if (!tile || place.slots.size() > mostChoices) {
    addAnywhere(out, op, place.slots.front(), end - place.slots.front());
    return {};
  }
  KILN_ASSIGN(const layout::TileLayout distributed, layoutOf(tile));
  const layout::LinearLayout &core = distributed.core();
  const uint64_t element = std::max(8u, shared.bits()) / 8;
  Piece piece;
  std::vector<Place> bits; // offsets count elements
  // A thread copies its own elements.  Stores and loads may be matrix instructions, which move those of other lanes.
  if (out.agent == tile::Agent::Threads) {
    KILN_ASSIGN(const Target *target, targetOf(op));
    KILN_ASSIGN(const layout::LocalAccessPlan plan,
                layout::planLocalAccess(core, shared.core(), planBits(tile), *target, out.write));
    piece.everyLane = isMatrix(plan.access.form);
  }
  for (InDim in : {InDim::Register, InDim::Lane, InDim::Warp})
    for (unsigned i = 0; i < core.bits(in); ++i) {
      // Only owners store: their free bits are 0.
      if (out.write && core.freeMask(in) >> i & 1)
        continue;
      Place p;
      p.offset = layout::coordsOf(shared.inverse(), core.column(in, i));
      p.lane = in == InDim::Lane ? uint32_t(1) << i : 0;
      p.warp = in == InDim::Warp ? uint32_t(1) << i : 0;
      bits.push_back(p);
    }
  // One piece where offsets are linear: the whole core, or each part of it that further fields number.
  const auto *padded = std::get_if<layout::Padded>(&shared.encoding().kind);
  const layout::OffsetFields &fields = shared.fields();
  const unsigned all = shared.core().totalBits(), linear = padded || fields.size() == 1 ? all : fields[1].bit;
  piece.bytes = (uint64_t(1) << linear) * element;
  piece.reach = piece.bytes;
  if (padded) {
    piece.interval = padded->interval * static_cast<int64_t>(element);
    piece.pad = padded->pad * static_cast<int64_t>(element);
    piece.reach = layout::byteOf(fields, (uint64_t(1) << all) - 1) + element;
  }
  auto inBytes = [&](Place p) {
    p.offset = (p.offset & ((uint64_t(1) << linear) - 1)) * element;
    return p;
  };
  for (uint64_t part = 0; part < uint64_t(1) << (all - linear); ++part) {
    std::vector<Place> rest = bits;
    Place constant;
    if (!fixBits(rest, constant, linear, all, part))
      continue;
    piece.constant = inBytes(constant);
    piece.free.clear();
    llvm::transform(rest, std::back_inserter(piece.free), inBytes);
    freeBytes(piece, element);
    for (uint64_t at : place.slots)
      for (unsigned rep = 0; rep < shared.tile().repetitions(); ++rep) {
        piece.base = at + shared.repetitionByte(rep) + layout::byteOf(fields, part << linear);
        out.pieces.push_back(piece);
      }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Two pieces
//===----------------------------------------------------------------------===//

/// Both maps as one system: the xor of two places' offsets, and how their threads differ.
Meet solve(const Piece &a, const Piece &b, uint64_t origin) {
  std::vector<Place> columns(a.free);
  columns.insert(columns.end(), b.free.begin(), b.free.end());
  // Wanted: a combination of columns whose offset is this, so that both are at one byte.
  Place rest = a.constant ^ b.constant;
  rest.offset ^= (a.base - origin) ^ (b.base - origin);
  std::vector<Place> kernel;
  std::vector<Place> rows; // echelon: the highest offset bits differ
  auto reduce = [&](Place p) {
    for (const Place &row : rows)
      if (p.offset >> (63 - std::countl_zero(row.offset)) & 1)
        p = p ^ row;
    return p;
  };
  for (Place p : columns) {
    p = reduce(p);
    if (p.offset == 0) {
      kernel.push_back(p);
      continue;
    }
    rows.push_back(p);
    llvm::sort(rows, [](const Place &x, const Place &y) { return x.offset > y.offset; });
  }
  rest = reduce(rest);
  if (rest.offset != 0)
    return Meet::Never;
  // The places where they meet: `rest` and everything that the kernel adds to it.
  auto differs = [&](auto part) {
    return part(rest) != 0 || llvm::any_of(kernel, [&](const Place &k) { return part(k) != 0; });
  };
  if (differs([](const Place &p) { return p.warp; }))
    return Meet::Warps;
  if (a.everyLane || b.everyLane || differs([](const Place &p) { return p.lane; }))
    return Meet::Lanes;
  return Meet::Thread;
}

/// Calls visit(byte, place) for every place of a piece.
void enumerate(const Piece &piece, llvm::function_ref<void(uint64_t, const Place &)> visit) {
  Place at = piece.constant;
  const uint64_t count = uint64_t(1) << piece.free.size();
  for (uint64_t i = 0;;) {
    uint64_t o = at.offset;
    if (piece.interval)
      o += o / static_cast<uint64_t>(piece.interval) * static_cast<uint64_t>(piece.pad);
    visit(piece.base + o, at);
    if (++i == count)
      return;
    at = at ^ piece.free[static_cast<size_t>(std::countr_zero(i))]; // Gray code
  }
}

Meet compareBytes(const Piece &a, const Piece &b, uint64_t from, uint64_t to) {
  struct Threads {
    uint32_t warps = 0, lanes = 0;
  };
  std::vector<Threads> table(to - from);
  auto lanesOf = [](const Piece &p, const Place &at) { return p.everyLane ? ~uint32_t(0) : uint32_t(1) << at.lane; };
  enumerate(a, [&](uint64_t byte, const Place &at) {
    if (byte >= from && byte < to) {
      table[byte - from].warps |= uint32_t(1) << at.warp;
      table[byte - from].lanes |= lanesOf(a, at);
    }
  });
  Meet worst = Meet::Never;
  enumerate(b, [&](uint64_t byte, const Place &at) {
    if (byte < from || byte >= to || !table[byte - from].warps)
      return;
    const Threads &other = table[byte - from];
    const uint32_t lanes = lanesOf(b, at);
    if (other.warps & ~(uint32_t(1) << at.warp))
      worst = Meet::Warps;
    else if ((lanes | other.lanes) & ((lanes | other.lanes) - 1))
      worst = std::max(worst, Meet::Lanes);
    else
      worst = std::max(worst, Meet::Thread);
  });
  return worst;
}

Meet meet(const Piece &a, const Piece &b) {
  const uint64_t from = std::max(a.base, b.base), to = std::min(a.base + a.reach, b.base + b.reach);
  if (from >= to)
    return Meet::Never;
  // Bases that are multiples of their pieces' size, from a common origin, may be xor-ed instead of added.
  const uint64_t origin = std::min(a.base, b.base);
  const bool linear = (a.base - origin) % a.bytes == 0 && (b.base - origin) % b.bytes == 0;
  const bool alike = a.interval == b.interval && a.pad == b.pad && (a.interval == 0 || a.base == b.base);
  if (linear && alike)
    return solve(a, b, origin);
  // Every thread on every byte needs no enumeration.
  auto whole = [](const Piece &p) { return p.everyLane && p.bytes >= allBytes; };
  if (whole(a) || whole(b)) {
    const bool several = llvm::any_of(a.free, [](const Place &p) { return p.warp != 0; }) ||
                         llvm::any_of(b.free, [](const Place &p) { return p.warp != 0; });
    return several ? Meet::Warps : Meet::Lanes;
  }
  return compareBytes(a, b, from, to);
}

} // namespace

namespace {
llvm::SmallVector<tile::MemoryAccess, 2> sharedAccessesOf(Operation *op) {
  llvm::SmallVector<tile::MemoryAccess, 2> out;
  llvm::copy_if(tile::accessesOf(op), std::back_inserter(out),
                [](const tile::MemoryAccess &access) { return access.in<SharedMemory>(); });
  // The copy engine counts to the mbarrier as long as it copies.
  for (tile::MemoryAccess &access : out)
    if (isa<TensorCopyOp>(op) && access.memory && isa<MbarriersType>(access.memory.getType())) {
      access.agent = tile::Agent::BulkCopy;
      access.inFlight = true;
    }
  return out;
}
} // namespace

llvm::SmallVector<Value, 2> chosenBy(Operation *op) {
  llvm::SmallVector<Value, 2> out;
  for (const tile::MemoryAccess &access : sharedAccessesOf(op))
    out.push_back(access.memory ? sourceOf(access.memory).second : Value());
  return out;
}

Result<std::vector<SharedAccess>> accessesOf(Operation *op, const Chosen &chosen) {
  std::vector<SharedAccess> all;
  for (auto [access, number] : llvm::zip_equal(sharedAccessesOf(op), chosen)) {
    auto out = llvm::find_if(all, [&](const SharedAccess &a) {
      return a.write == access.writes && a.copy == access.inFlight && a.agent == access.agent;
    });
    if (out == all.end()) {
      all.push_back({access.writes, access.inFlight, access.agent, isElected(op), {}, {}});
      out = std::prev(all.end());
    }
    if (access.exchange) {
      KILN_TRY(addExchange(*out, op, access));
    } else if (access.memory && isa<BufferType>(access.memory.getType())) {
      KILN_TRY(addLocal(*out, op, access.memory, access.tile, number));
    } else if (access.memory && isa<MbarriersType>(access.memory.getType())) {
      KILN_TRY(addMbarriers(*out, op, access.memory));
    } else {
      addAnywhere(*out, op, 0, allBytes);
      out->unknown = "what '" + op->getName().getStringRef().str() + "' touches";
    }
  }
  return all;
}

Meet meet(const SharedAccess &a, const SharedAccess &b) {
  Meet worst = Meet::Never;
  if (a.write || b.write)
    for (const Piece &x : a.pieces)
      for (const Piece &y : b.pieces)
        worst = std::max(worst, meet(x, y));
  return a.elected && b.elected ? std::min(worst, Meet::Thread) : worst;
}

} // namespace kiln::proof
