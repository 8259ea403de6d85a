#include "compiler/passes/shared/SharedBuffers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

constexpr uint64_t scratchAlignment = 16;

Result<SharedBuffer> describe(LocalAllocOp op) {
  SharedBuffer out;
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
  if (auto barriers = dyn_cast<MbarriersType>(op.getType())) {
    out.bytes = static_cast<uint64_t>(barriers.getCount()) * MbarriersType::bytesOfOne;
    out.alignment = MbarriersType::bytesOfOne;
    return out;
  }
  auto type = cast<BufferType>(op.getType());
  constexpr int64_t mostBuffers = 1 << 16;
  if (type.getCount() > mostBuffers)
    return Status(StatusCode::CompileError, std::to_string(type.getCount()) + " buffers in one local_alloc",
                  "use at most " + std::to_string(mostBuffers));
  KILN_ASSIGN(const layout::SharedTile tile, type.lowered());
  out.alignment = tile.alignment();
  KILN_ASSIGN(out.bytes, type.bytes());
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

/// It waits for all groups, or each of its arms does; for what they write, too, if that is asked.
bool awaitsAll(Operation *op, tile::Agent agent, bool writes) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return branch.elseBlock() && llvm::all_of(branch->getRegions(), [&](Region &region) {
             return llvm::any_of(region.front(), [&](Operation &inner) { return awaitsAll(&inner, agent, writes); });
           });
  const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
  return ordering && ordering->awaits == agent && ordering->tokens.empty() && ordering->inFlight.value_or(0) == 0 &&
         !(ordering->readsOnly && writes);
}

/// The wait after which an access in flight has certainly ended: the next on every path that waits for all groups, once
/// the access belongs to one.  Null if there is none.  `leaving` gets each loop around the access that ends before it:
/// it may still be in flight in the next round.
Operation *landing(Operation *access, tile::Agent agent, bool writes, llvm::function_ref<void(Operation *)> leaving) {
  const auto closes = [&](Operation *op) {
    const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
    return ordering && ordering->closes == agent;
  };
  bool committed = closes(access); // a product is a group of its own
  for (Operation *level = access; level && !isa<func::FuncOp>(level); level = level->getParentOp()) {
    for (Operation *next = level->getNextNode(); next; next = next->getNextNode()) {
      committed |= closes(next);
      if (committed && awaitsAll(next, agent, writes))
        return next;
    }
    if (Operation *around = level->getParentOp(); isa_and_nonnull<scf::ForOp, scf::WhileOp>(around))
      leaving(around);
  }
  return nullptr;
}

/// What it copies is there at the wait for an mbarrier, which names the buffer.
bool countsToMbarrier(Operation *copy) {
  return llvm::any_of(tile::accessesOf(copy), [](const tile::MemoryAccess &access) {
    return access.memory && isa<MbarriersType>(access.memory.getType());
  });
}

/// From where to where the buffer is alive: itself, its views, and what loops and conditionals make of it.  A use in a
/// loop that the buffer enters from outside lasts to the loop's end; a buffer that a loop carries lives through the
/// loop; one that accesses in flight touch lives until these have ended.
void findLife(SharedBuffer &buffer, const Order &order) {
  LocalAllocOp alloc = buffer.op;
  buffer.first = order.begin(alloc);
  buffer.last = order.end(alloc);
  buffer.from = buffer.to = alloc;
  auto from = [&](Operation *op) {
    if (order.begin(op) < buffer.first) {
      buffer.first = order.begin(op);
      buffer.from = op;
    }
  };
  auto to = [&](Operation *op) {
    if (order.end(op) > buffer.last) {
      buffer.last = order.end(op);
      buffer.to = op;
    }
  };
  llvm::SmallVector<Value> work{alloc.getResult()};
  llvm::DenseSet<Value> seen;
  auto follow = [&](ValueRange values) {
    for (Value v : values)
      if (isa<BufferType, ScratchType, MbarriersType>(v.getType()))
        work.push_back(v);
  };
  auto followInto = [&](Operation *op) {
    follow(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        follow(block.getArguments());
  };
  if (alloc.getAlone()) {
    auto function = alloc->getParentOfType<func::FuncOp>();
    from(function);
    to(function);
  }
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v).second)
      continue;
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      to(user);
      for (Operation *p = user->getParentOp(); p && !p->isAncestor(alloc); p = p->getParentOp())
        if (!isa<scf::IfOp>(p))
          to(p);
      for (const tile::MemoryAccess &access : tile::accessesOf(user)) {
        if (access.memory != v || !access.inFlight || countsToMbarrier(user))
          continue;
        // A buffer that the loop makes anew each round: what else lies there in the next round waits as well.
        Operation *landed = landing(user, access.agent, access.writes, [&](Operation *loop) {
          from(loop);
          to(loop);
        });
        to(landed ? landed : alloc->getParentOfType<func::FuncOp>());
      }
      followInto(user);
      if (user->hasTrait<OpTrait::IsTerminator>()) {
        Operation *parent = user->getParentOp();
        from(parent);
        to(parent);
        followInto(parent);
      }
    }
  }
}

} // namespace

LogicalResult collectSharedBuffers(func::FuncOp function, llvm::SmallVector<SharedBuffer> &buffers) {
  const Order order(function);
  const WalkResult walked = function.walk([&](LocalAllocOp op) {
    Result<SharedBuffer> buffer = describe(op);
    if (!buffer) {
      (void)report(op, buffer.status());
      return WalkResult::interrupt();
    }
    if (op.getOffset() && *op.getOffset() % buffer->alignment) {
      op.emitError("offset ") << *op.getOffset() << " is no multiple of " << buffer->alignment << ", the alignment of "
                              << op.getType();
      return WalkResult::interrupt();
    }
    findLife(*buffer, order);
    buffers.push_back(*buffer);
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

uint64_t mostSharedBytes(func::FuncOp function) {
  llvm::SmallVector<SharedBuffer> buffers;
  if (failed(collectSharedBuffers(function, buffers)))
    return ~uint64_t(0);
  uint64_t most = 0;
  for (const SharedBuffer &at : buffers) {
    uint64_t sum = 0;
    for (const SharedBuffer &b : buffers)
      if (b.first <= at.first && at.first <= b.last)
        sum += llvm::alignTo(b.bytes, std::max<uint64_t>(b.alignment, 128));
    most = std::max(most, sum);
  }
  return most;
}

} // namespace kiln
