#include "compiler/passes/Passes.h"
#include "compiler/passes/SharedBuffers.h"
#include "compiler/passes/SharedExpansion.h"

#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "compiler/passes/Passes.h.inc"

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

/// First fit, largest first; buffers with an offset of the author's stay there.
void place(llvm::MutableArrayRef<SharedBuffer> buffers, bool shareSmall) {
  auto apart = [&](const SharedBuffer &a, const SharedBuffer &b) {
    return a.aliveWith(b) || (!shareSmall && std::min(a.bytes, b.bytes) <= smallBuffer);
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
    if (given == 0) {
      Result<const Target *> target = targetOf(function);
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
      place(buffers, /*shareSmall=*/small > roomForSmall);
      if (total(buffers) > most)
        place(buffers, /*shareSmall=*/true);
      if (total(buffers) <= most) {
        OpBuilder b(function);
        for (SharedBuffer &buffer : buffers)
          buffer.op.setOffset(static_cast<uint32_t>(buffer.offset));
        function->setAttr(sharedBytesAttr, b.getI32IntegerAttr(static_cast<int32_t>(total(buffers))));
        return success();
      }
      // Somewhere too much is alive at once: of what lies past the limit, and what lives beside it, halve the largest
      // scratch.
      FailureOr<bool> smaller = shrink(buffers, most);
      if (failed(smaller))
        return failure();
      if (!*smaller)
        return tooMuch(function, buffers, most, who);
    }
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
