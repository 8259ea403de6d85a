#include "compiler/passes/barriers/BarrierSearch.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/shared/SharedBuffers.h"
#include "compiler/passes/shared/SharedExpansion.h"
#include "compiler/passes/shared/TileRegisters.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/AllocateShared.inc"

using namespace tile_gpu;

namespace {

constexpr uint64_t leastScratch = 1024;
/// Buffers up to this size get bytes of their own where there is room: sharing them would cost a barrier to save
/// little.
constexpr uint64_t smallBuffer = 512, roomForSmall = 8 * 1024;

uint64_t total(llvm::ArrayRef<SharedBuffer> buffers) {
  uint64_t out = 0;
  for (const SharedBuffer &b : buffers)
    out = std::max(out, b.end());
  return out;
}

/// Two buffers, in the order of their addresses.
using Pair = std::pair<Operation *, Operation *>;
using Pairs = llvm::SetVector<Pair>;

Pair pairOf(Operation *a, Operation *b) {
  return std::minmax(a, b);
}

/// First fit, largest first; buffers with an offset of the author's stay there.  Spread: those that are to lie apart
/// though they are never alive together.
void place(llvm::MutableArrayRef<SharedBuffer> buffers, bool shareSmall, const Pairs &spread = {}) {
  auto apart = [&](const SharedBuffer &a, const SharedBuffer &b) {
    return a.aliveWith(b) || (!shareSmall && std::min(a.bytes, b.bytes) <= smallBuffer) ||
           spread.contains(pairOf(a.op, b.op));
  };
  llvm::SmallVector<SharedBuffer *> order, placed;
  for (SharedBuffer &b : buffers)
    if (b.op.getOffset()) {
      b.offset = *b.op.getOffset();
      placed.push_back(&b);
    } else {
      order.push_back(&b);
    }
  llvm::stable_sort(order, [](const SharedBuffer *a, const SharedBuffer *b) { return a->bytes > b->bytes; });
  for (SharedBuffer *b : order) {
    llvm::SmallVector<SharedBuffer *> others;
    for (SharedBuffer *p : placed)
      if (apart(*p, *b))
        others.push_back(p);
    llvm::stable_sort(others, [](const SharedBuffer *x, const SharedBuffer *y) { return x->offset < y->offset; });
    uint64_t at = 0;
    for (const SharedBuffer *p : others) {
      if (at + b->bytes <= p->offset)
        break;
      at = std::max(at, llvm::alignTo(p->end(), b->alignment));
    }
    b->offset = at;
    placed.push_back(b);
  }
}

bool sharesBytes(llvm::ArrayRef<SharedBuffer> buffers) {
  for (const SharedBuffer &a : buffers)
    for (const SharedBuffer &b : buffers)
      if (a.op != b.op && a.offset < b.end() && b.offset < a.end())
        return true;
  return false;
}

/// Pairs of buffers that would cost a barrier if they shared bytes: with every buffer in a place of its own and the
/// barriers that are needed even so, nothing keeps their accesses apart.  Of those only what stands in the innermost
/// loops that access buffers: elsewhere a barrier costs less than bytes.
Pairs neighbours(func::FuncOp function, llvm::MutableArrayRef<SharedBuffer> buffers) {
  unsigned deepest = 0;
  uint64_t free = 0;
  for (SharedBuffer &b : buffers) {
    if (b.op.getOffset())
      free = std::max(free, *b.op.getOffset() + b.bytes);
    for (Operation *user : b.op->getUsers())
      deepest = std::max(deepest, loopDepth(user));
  }
  llvm::SmallVector<LocalAllocOp> lent;
  for (SharedBuffer &b : buffers)
    if (!b.op.getOffset()) {
      free = llvm::alignTo(free, b.alignment);
      b.op.setOffset(static_cast<uint32_t>(free));
      free += b.bytes;
      lent.push_back(b.op);
    }
  Pairs out;
  {
    // What cannot be analysed insert-barriers will report.
    const ScopedDiagnosticHandler silence(function.getContext(), [](Diagnostic &) { return success(); });
    BarrierSearch search(function);
    if (succeeded(search.prepare())) {
      const llvm::SmallVector<Operation *> barriers = search.insert();
      search.neighbours([&](LocalAllocOp first, LocalAllocOp second, Operation *before) {
        if (loopDepth(before) == deepest)
          out.insert(pairOf(first, second));
      });
      for (Operation *barrier : barriers)
        barrier->erase();
    }
  }
  for (LocalAllocOp op : lent)
    op.removeOffsetAttr();
  return out;
}

/// What a block may use without fewer blocks on a multiprocessor than with `bytes`.  How many registers a thread will
/// have is not known yet, and a kernel of few has more blocks: so it is taken to have no more than its tiles need at
/// least.  Half of a multiprocessor's shared memory is not spent so in any case: it is the level-1 cache's.
uint64_t withoutFewerBlocks(func::FuncOp function, const Target &target, uint64_t bytes) {
  uint64_t registers = std::min(tileRegisters(function), target.registersPerThread);
  if (auto most = function->getAttrOfType<IntegerAttr>(tile::maxRegistersAttr))
    registers = std::min(registers, most.getValue().getZExtValue());
  const unsigned blocks =
      residentBlocks(target, tile_gpu::threadsOf(function), bytes, static_cast<unsigned>(registers));
  if (!blocks)
    return bytes;
  const uint64_t share = llvm::alignDown(target.sharedPerSm / blocks, 128);
  return std::max(bytes, std::min<uint64_t>(share - std::min<uint64_t>(share, target.sharedReserved), share / 2));
}

struct AllocateShared : impl::AllocateSharedBase<AllocateShared> {
  using impl::AllocateSharedBase<AllocateShared>::AllocateSharedBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(allocate(function)))
        return signalPassFailure();
  }

  LogicalResult allocate(func::FuncOp function) {
    const int64_t given = limit;
    if (given < 0)
      return function.emitError("limit is ") << given << ": 0 or a number of bytes";
    uint64_t most = static_cast<uint64_t>(given);
    std::string who = "the limit is " + std::to_string(given);
    Result<const Target *> target = targetOf(function);
    if (given == 0) {
      if (!target)
        return report(function, target.status());
      most = (*target)->sharedOptIn;
      who = std::string((*target)->name) + " has " + std::to_string(most);
    }
    for (;;) {
      llvm::SmallVector<SharedBuffer> buffers;
      if (failed(collectSharedBuffers(function, buffers)))
        return failure();
      uint64_t small = 0;
      for (const SharedBuffer &b : buffers)
        small += b.bytes <= smallBuffer ? llvm::alignTo(b.bytes, b.alignment) : 0;
      bool shareSmall = small > roomForSmall;
      place(buffers, shareSmall);
      if (total(buffers) > most)
        place(buffers, shareSmall = true);
      if (total(buffers) <= most) {
        if (spread && target)
          spreadOut(function, buffers, shareSmall,
                    std::min(most, withoutFewerBlocks(function, **target, total(buffers))));
        OpBuilder b(function);
        for (SharedBuffer &buffer : buffers)
          buffer.op.setOffset(static_cast<uint32_t>(buffer.offset));
        function->setAttr(sharedBytesAttr, b.getI32IntegerAttr(static_cast<int32_t>(total(buffers))));
        return success();
      }
      // Somewhere too much is alive at once: of the buffers past the limit and those alive at the same time, halve the
      // largest scratch.
      FailureOr<bool> smaller = shrink(buffers, most);
      if (failed(smaller))
        return failure();
      if (!*smaller)
        return tooMuch(function, buffers, most, who);
    }
  }

  /// Free bytes save barriers: neighbours lie apart, all of them if that takes no more than `most` bytes, else one pair
  /// after the other as long as there is room.
  static void spreadOut(func::FuncOp function, llvm::MutableArrayRef<SharedBuffer> buffers, bool shareSmall,
                        uint64_t most) {
    if (total(buffers) >= most || !sharesBytes(buffers))
      return;
    const Pairs wanted = neighbours(function, buffers);
    place(buffers, shareSmall, wanted);
    if (total(buffers) <= most)
      return;
    Pairs apart;
    for (const Pair &pair : wanted) {
      apart.insert(pair);
      place(buffers, shareSmall, apart);
      if (total(buffers) > most)
        apart.remove(pair);
    }
    place(buffers, shareSmall, apart);
  }

  FailureOr<bool> shrink(llvm::MutableArrayRef<SharedBuffer> buffers, uint64_t most) {
    llvm::SmallVector<SharedBuffer *> candidates;
    for (SharedBuffer &b : buffers) {
      const bool crowded = b.end() > most || llvm::any_of(buffers, [&](const SharedBuffer &other) {
                             return other.end() > most && other.aliveWith(b);
                           });
      if (crowded && isa<ScratchType>(b.op.getType()) && b.bytes > leastScratch && !b.op.getOffset())
        candidates.push_back(&b);
    }
    llvm::stable_sort(candidates, [](const SharedBuffer *a, const SharedBuffer *b) { return a->bytes > b->bytes; });
    for (SharedBuffer *b : candidates) {
      const uint64_t budget = std::max(leastScratch, b->bytes / 2);
      ConvertLayoutOp convert = collapseConversion(b->op);
      if (!convert)
        continue; // an author's scratch
      if (failed(expandConversion(convert, budget)))
        return failure();
      return true;
    }
    return false;
  }

  LogicalResult tooMuch(func::FuncOp function, llvm::MutableArrayRef<SharedBuffer> buffers, uint64_t most,
                        llvm::StringRef who) {
    InFlightDiagnostic d = function.emitError("kernel '")
                           << function.getName() << "' needs " << total(buffers) << " bytes of shared memory; " << who;
    llvm::stable_sort(buffers, [](const SharedBuffer &a, const SharedBuffer &b) { return a.bytes > b.bytes; });
    constexpr size_t shown = 3;
    for (SharedBuffer &b : buffers.take_front(shown))
      d.attachNote(b.op.getLoc()) << b.op.getType() << " takes " << b.bytes << " bytes here";
    d.attachNote() << "use smaller tiles or fewer buffers, so that at most " << most << " bytes are alive at once";
    return d;
  }
};

} // namespace
} // namespace kiln
