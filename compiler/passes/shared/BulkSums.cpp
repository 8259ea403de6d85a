// Tiles that loops add to global memory go through shared memory, from where the copy engine adds them.  An atomic
// addition from registers holds a warp until the memory unit has taken them all: on an H200 14 % of a round of
// attention's backward.
#include "compiler/passes/Pass.h"
#include "compiler/passes/roles/CopySlice.h"
#include "compiler/passes/shared/SharedBuffers.h"

#include "compiler/analysis/ContiguousRuns.h"
#include "compiler/analysis/PointerRoots.h"
#include "compiler/analysis/RegisterUse.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/BulkSums.inc"

using namespace tile_gpu;

namespace {

/// Bytes of a run that are worth a request of their own: what a warp stores at once, 16 bytes a lane.
constexpr uint32_t leastRun = 16 * layout::warpSize;

/// An atomic addition that the copy engine could do, and the buffer that it would do it from.
struct Sum {
  tile::AtomicRmwOp op;
  BufferType buffer;
  llvm::SmallVector<CountOp> counts; ///< of programs that have added
};

bool isSumInLoop(tile::AtomicRmwOp op) {
  return op->getParentOfType<scf::ForOp>() && op.getKind() == tile::Rmw::Add && op.getOrder() == tile::Order::Relaxed &&
         op.getScope() == tile::Scope::Gpu && op.getResult().use_empty() &&
         isa<RankedTensorType>(op.getPointer().getType()) && tile::elementTypeOf(op.getValue().getType()).isF32();
}

/// Rows along `dim`, whole.
layout::SharedEncoding rowsAlong(unsigned dim, int64_t rank) {
  layout::Tma how;
  how.order.push_back(dim);
  for (int64_t d = rank; d-- > 0;)
    if (d != dim)
      how.order.push_back(d);
  return how;
}

class BulkSumsOf {
public:
  BulkSumsOf(func::FuncOp function, const Target &target) : function(function), roots(function), target(target) {}

  void run(llvm::ArrayRef<tile::AtomicRmwOp> candidates) {
    find(candidates);
    makeRoom();
    bool any = false;
    for (Sum &sum : sums)
      if (const Value buffer = buffers.lookup(sum.buffer)) {
        replace(sum.op, buffer);
        counts.insert(sum.counts.begin(), sum.counts.end());
        any = true;
      }
    if (!any)
      return;
    electCounts();
    for (CountOp count : counts)
      waitBefore(isElected(count) ? count->getParentOp() : count.getOperation());
    // The block's shared memory is another block's after it.
    for (func::ReturnOp end : llvm::make_early_inc_range(function.getOps<func::ReturnOp>()))
      waitForAll(OpBuilder(end), end.getLoc());
  }

private:
  void find(llvm::ArrayRef<tile::AtomicRmwOp> candidates) {
    const analysis::AxisAnalysis facts(function);
    for (tile::AtomicRmwOp op : candidates) {
      const BufferType buffer = longestRuns(op, facts);
      llvm::SmallVector<CountOp> ofSum;
      if (!buffer) {
        stays(op) << "what a warp has of the tile lies together in memory for less than " << leastRun << " bytes";
      } else if (Operation *other = disturbing(op, ofSum)) {
        stays(op).attachNote(other->getLoc()) << "this may access the same memory";
      } else {
        sums.push_back({op, buffer, ofSum});
      }
    }
  }

  static InFlightDiagnostic stays(tile::AtomicRmwOp op) {
    return op->emitRemark("the threads add this, not the copy engine: ");
  }

  static BufferType longestRuns(tile::AtomicRmwOp op, const analysis::AxisAnalysis &facts) {
    const auto value = cast<RankedTensorType>(op.getValue().getType());
    const Result<layout::TileLayout> layout = layoutOf(value);
    if (!layout)
      return {};
    BufferType best;
    uint32_t longest = leastRun / sizeof(float) - 1;
    for (unsigned dim = 0; dim < value.getRank(); ++dim) {
      const layout::SharedEncoding how = rowsAlong(dim, value.getRank());
      const llvm::ArrayRef<int64_t> shape = value.getShape();
      const Result<layout::SharedTile> shared =
          layout::SharedTile::create(how, std::span(shape.data(), shape.size()), planBits(value));
      if (!shared) // no such buffer
        continue;
      const uint32_t run = analysis::contiguousRun(facts, op.getPointer(), op.getMask(), dim,
                                                   BulkAddOp::runOf(*layout, *shared, dim), BulkAddOp::leastBytes);
      if (run > longest) {
        longest = run;
        best = BufferType::get(op.getContext(), 1, shape, value.getElementType(),
                               SharedLayoutAttr::get(op.getContext(), how));
      }
    }
    return best;
  }

  /// What else may access the memory, but for sums and for counts of them, which it adds to `counts`.
  Operation *disturbing(tile::AtomicRmwOp op, llvm::SmallVectorImpl<CountOp> &counts) {
    const analysis::Roots mine = roots.of(op.getPointer());
    Operation *other = nullptr;
    function.walk([&](Operation *inner) {
      for (const tile::MemoryAccess &access : tile::accessesOf(inner)) {
        if (!access.in<tile::GlobalMemory>() || !access.memory || access.atomic ||
            !analysis::mayOverlap(roots.of(access.memory), mine))
          continue;
        if (auto count = dyn_cast<CountOp>(inner)) {
          counts.push_back(count);
          continue;
        }
        other = inner;
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return other;
  }

  /// The thread that copies counts and waits for other programs; the others only meet it.  Where warps that copy could
  /// not compute what that takes, the first thread counts.
  void electCounts() {
    if (CopySlice(function).obstacle()) // nobody but the warps that compute copies anyway
      return;
    llvm::SmallVector<std::pair<ElectedOp, Value>> elected; // and the pointers before
    for (CountOp count : counts) {
      // What is counted is named by the argument that the pointers come from.
      const analysis::Roots all = roots.of(count.getPointer());
      if (isElected(count) || !all.known || all.arguments.size() != 1 ||
          !isa<tile::PtrType>(all.arguments.front().getType()))
        continue;
      OpBuilder b(count);
      auto one = ElectedOp::create(b, count.getLoc());
      elected.emplace_back(one, count.getPointer());
      count->moveBefore(b.createBlock(&one.getBody()), one.getBody().front().end());
      count.getPointerMutable().assign(all.arguments.front());
    }
    if (!CopySlice(function).obstacle())
      return;
    for (auto [one, pointer] : elected) {
      auto count = cast<CountOp>(one.getBody().front().front());
      count.getPointerMutable().assign(pointer);
      count->moveBefore(one);
      one->erase();
    }
  }

  /// As early as possible after the last sum, so that a barrier that is there anyway serves the count; but after the
  /// first product, so that the matrix units have something to do meanwhile.
  static void waitBefore(Operation *count) {
    const auto begins = [](Operation *op) { return op->walk([](BulkAddOp) { return WalkResult::interrupt(); }); };
    Operation *at = count, *product = nullptr;
    for (Operation *op = count->getPrevNode(); op && !begins(op).wasInterrupted(); op = op->getPrevNode()) {
      at = op;
      if (isa<WarpgroupDotOp>(op))
        product = op;
    }
    if (product)
      at = product->getNextNode();
    waitForAll(OpBuilder(at), count->getLoc());
  }

  /// Until the sums are in memory.
  static void waitForAll(OpBuilder b, Location loc) { BulkWaitOp::create(b, loc, /*read=*/false); }

  /// Allocates a buffer for each type of sum that there is room for.
  void makeRoom() {
    uint64_t bytes = mostSharedBytes(function);
    for (Sum &sum : sums) {
      if (!tried.insert(sum.buffer).second)
        continue;
      const uint64_t more = bytes + llvm::alignTo(*sum.buffer.bytes(), 128);
      if (const uint64_t most = target.sharedOptIn / 16 * 15; more > most) { // places leave gaps
        stays(sum.op) << "with a buffer of " << *sum.buffer.bytes() << " bytes the kernel would need " << more
                      << " of shared memory, and " << most << " are left to it";
        continue;
      }
      if (const unsigned blocks = blocksOf(bytes); blocksOf(more) < blocks) {
        stays(sum.op) << "with a buffer of " << *sum.buffer.bytes() << " bytes a multiprocessor would have fewer than "
                      << blocks << " blocks";
        continue;
      }
      bytes = more;
      OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
      buffers[sum.buffer] = LocalAllocOp::create(b, sum.op.getLoc(), sum.buffer, IntegerAttr());
    }
  }

  unsigned blocksOf(uint64_t bytes) {
    uint64_t registers = analysis::tileWords(function, target.registersPerThread).most + analysis::registersBesideTiles;
    if (auto most = function->getAttrOfType<IntegerAttr>(tile::maxRegistersAttr))
      registers = std::min(registers, most.getValue().getZExtValue());
    registers = std::min<uint64_t>(registers, target.registersPerThread);
    return residentBlocks(target, threadsOf(function), bytes, static_cast<unsigned>(registers));
  }

  static void replace(tile::AtomicRmwOp op, Value buffer) {
    OpBuilder b(op);
    BulkWaitOp::create(b, op.getLoc(), /*read=*/true);
    LocalStoreOp::create(b, op.getLoc(), op.getValue(), buffer);
    BulkAddOp::create(b, op.getLoc(), buffer, op.getPointer(), op.getMask());
    op->erase();
  }

  func::FuncOp function;
  const analysis::PointerRoots roots;
  const Target &target;
  llvm::SmallVector<Sum> sums;
  llvm::SetVector<CountOp> counts; ///< of the sums that the engine adds
  llvm::DenseSet<Type> tried;
  llvm::DenseMap<Type, Value> buffers;
};

struct BulkSums : impl::BulkSumsBase<BulkSums> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::SmallVector<tile::AtomicRmwOp> candidates;
      function.walk([&](tile::AtomicRmwOp op) {
        if (isSumInLoop(op))
          candidates.push_back(op);
      });
      if (candidates.empty())
        continue;
      const Result<const Target *> target = targetOf(function);
      if (!target) {
        (void)report(function, target.status());
        return signalPassFailure();
      }
      if ((*target)->has(Capability::Tma))
        BulkSumsOf(function, **target).run(candidates);
    }
  }
};

} // namespace
} // namespace kiln
