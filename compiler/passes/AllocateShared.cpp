#include "compiler/passes/Passes.h"
#include "compiler/passes/SharedExpansion.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "compiler/passes/Passes.h.inc"

using namespace tile_gpu;

namespace {

constexpr uint64_t leastScratch = 1024;
constexpr uint64_t scratchAlignment = 16;
/// Buffers up to this size get bytes of their own where there is room: sharing them would cost a barrier to save
/// little.
constexpr uint64_t smallBuffer = 512, roomForSmall = 8 * 1024;

struct Buffer {
  LocalAllocOp op;
  uint64_t bytes = 0, alignment = 1;
  unsigned first = 0, last = 0; ///< alive from .. to, in operation numbers
  uint64_t offset = 0;
  uint64_t end() const { return offset + bytes; }
  bool aliveWith(const Buffer &other) const { return first <= other.last && other.first <= last; }
};

Result<Buffer> describe(LocalAllocOp op) {
  Buffer out;
  out.op = op;
  if (auto scratch = dyn_cast<ScratchType>(op.getType())) {
    constexpr int64_t mostBytes = 1 << 30;
    if (scratch.getBytes() < 1 || scratch.getBytes() > mostBytes)
      return Status(StatusCode::CompileError, "a scratch of " + std::to_string(scratch.getBytes()) + " bytes",
                    "use the bytes that its conversion's plan states");
    out.bytes = static_cast<uint64_t>(scratch.getBytes());
    out.alignment = scratchAlignment;
    return out;
  }
  auto type = cast<BufferType>(op.getType());
  constexpr int64_t mostBuffers = 1 << 16;
  if (type.getCount() > mostBuffers)
    return Status(StatusCode::CompileError, std::to_string(type.getCount()) + " buffers in one local_alloc",
                  "use at most " + std::to_string(mostBuffers));
  KILN_ASSIGN(const layout::SharedTile tile, type.lowered());
  out.alignment = tile.alignment();
  // Of several buffers each begins aligned.
  const uint64_t stride = llvm::alignTo(tile.bytes(), out.alignment);
  out.bytes = stride * static_cast<uint64_t>(type.getCount() - 1) + tile.bytes();
  return out;
}

/// Numbers operations in program order; an operation with regions has the numbers of all operations inside.
class Order {
public:
  explicit Order(func::FuncOp function) {
    unsigned next = 0;
    number(function, next);
  }
  unsigned begin(Operation *op) const { return span.at(op).first; }
  unsigned end(Operation *op) const { return span.at(op).second; }

private:
  void number(Operation *op, unsigned &next) {
    const unsigned first = next++;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          number(&inner, next);
    span[op] = {first, next++};
  }
  llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> span;
};

/// From where to where the buffer is alive: itself, its views, and what loops and conditionals make of it.  A use in a
/// loop that the buffer enters from outside lasts to the loop's end; a buffer that a loop carries lives through the
/// loop.
void findLife(Buffer &buffer, const Order &order) {
  LocalAllocOp alloc = buffer.op;
  buffer.first = order.begin(alloc);
  buffer.last = order.end(alloc);
  llvm::SmallVector<Value> work{alloc.getResult()};
  llvm::DenseSet<Value> seen;
  auto follow = [&](ValueRange values) {
    for (Value v : values)
      if (isa<BufferType, ScratchType>(v.getType()))
        work.push_back(v);
  };
  auto followInto = [&](Operation *op) {
    follow(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        follow(block.getArguments());
  };
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v).second)
      continue;
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      buffer.last = std::max(buffer.last, order.end(user));
      for (Operation *p = user->getParentOp(); p && !p->isAncestor(alloc); p = p->getParentOp())
        if (!isa<scf::IfOp>(p))
          buffer.last = std::max(buffer.last, order.end(p));
      followInto(user);
      if (user->hasTrait<OpTrait::IsTerminator>()) {
        Operation *parent = user->getParentOp();
        buffer.first = std::min(buffer.first, order.begin(parent));
        buffer.last = std::max(buffer.last, order.end(parent));
        followInto(parent);
      }
    }
  }
}

uint64_t total(llvm::ArrayRef<Buffer> buffers) {
  uint64_t out = 0;
  for (const Buffer &b : buffers)
    out = std::max(out, b.end());
  return out;
}

/// First fit, largest first; buffers with an offset of the author's stay there.
void place(llvm::MutableArrayRef<Buffer> buffers, bool shareSmall) {
  auto apart = [&](const Buffer &a, const Buffer &b) {
    return a.aliveWith(b) || (!shareSmall && std::min(a.bytes, b.bytes) <= smallBuffer);
  };
  llvm::SmallVector<Buffer *> order, placed;
  for (Buffer &b : buffers)
    if (b.op.getOffset()) {
      b.offset = *b.op.getOffset();
      placed.push_back(&b);
    } else {
      order.push_back(&b);
    }
  llvm::stable_sort(order, [](const Buffer *a, const Buffer *b) { return a->bytes > b->bytes; });
  for (Buffer *b : order) {
    llvm::SmallVector<Buffer *> others;
    for (Buffer *p : placed)
      if (apart(*p, *b))
        others.push_back(p);
    llvm::stable_sort(others, [](const Buffer *x, const Buffer *y) { return x->offset < y->offset; });
    uint64_t at = 0;
    for (const Buffer *p : others) {
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
      llvm::SmallVector<Buffer> buffers;
      if (failed(collect(function, buffers)))
        return failure();
      uint64_t small = 0;
      for (const Buffer &b : buffers)
        small += b.bytes <= smallBuffer ? llvm::alignTo(b.bytes, b.alignment) : 0;
      place(buffers, /*shareSmall=*/small > roomForSmall);
      if (total(buffers) > most)
        place(buffers, /*shareSmall=*/true);
      if (total(buffers) <= most) {
        OpBuilder b(function);
        for (Buffer &buffer : buffers)
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

  LogicalResult collect(func::FuncOp function, llvm::SmallVector<Buffer> &buffers) {
    const Order order(function);
    const WalkResult walked = function.walk([&](LocalAllocOp op) {
      Result<Buffer> buffer = describe(op);
      if (!buffer) {
        (void)report(op, buffer.status());
        return WalkResult::interrupt();
      }
      if (op.getOffset() && *op.getOffset() % buffer->alignment) {
        op.emitError("offset ") << *op.getOffset() << " is no multiple of " << buffer->alignment
                                << ", the alignment of " << op.getType();
        return WalkResult::interrupt();
      }
      findLife(*buffer, order);
      buffers.push_back(*buffer);
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  FailureOr<bool> shrink(llvm::MutableArrayRef<Buffer> buffers, uint64_t most) {
    llvm::SmallVector<Buffer *> candidates;
    for (Buffer &b : buffers) {
      const bool crowded = b.end() > most || llvm::any_of(buffers, [&](const Buffer &other) {
                             return other.end() > most && other.aliveWith(b);
                           });
      if (crowded && isa<ScratchType>(b.op.getType()) && b.bytes > leastScratch && !b.op.getOffset())
        candidates.push_back(&b);
    }
    llvm::stable_sort(candidates, [](const Buffer *a, const Buffer *b) { return a->bytes > b->bytes; });
    for (Buffer *b : candidates) {
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

  LogicalResult tooMuch(func::FuncOp function, llvm::MutableArrayRef<Buffer> buffers, uint64_t most,
                        llvm::StringRef who) {
    InFlightDiagnostic d = function.emitError("kernel '")
                           << function.getName() << "' needs " << total(buffers) << " bytes of shared memory; " << who;
    llvm::stable_sort(buffers, [](const Buffer &a, const Buffer &b) { return a.bytes > b.bytes; });
    constexpr size_t shown = 3;
    for (Buffer &b : buffers.take_front(shown))
      d.attachNote(b.op.getLoc()) << b.op.getType() << " takes " << b.bytes << " bytes here";
    d.attachNote() << "use smaller tiles or fewer buffers, so that at most " << most << " bytes are alive at once";
    return d;
  }
};

} // namespace
} // namespace kiln
