// The first parts of a product's operands are read a round ahead.
//
// A product whose operands both come out of a pipeline begins each round by waiting for shared memory.  Where a thread
// has the registers, a part of both along K is read at the end of the round before, before that round's last part of
// the product:
//
//   for .. carrying (the pipeline):              if there are fewer rounds than slots: zeros into the next slot
//     wait for a slot                            wait for a slot; first parts = those of its operands
//     acquire ..; copy ..; commit                for .. carrying (the pipeline, the first parts):
//     multiply both operands               =>      acquire ..; copy ..; commit
//     release it                                   multiply the first parts, and all but the last of the others
//                                                  release the slot; wait for the next one
//                                                  first parts = those of its operands
//                                                  multiply the last parts
//
// The last round reads ahead like the others: a branch would keep these reads apart from the products that they should
// run together with.  In a loop of fewer rounds than slots nothing was ever copied to where it reads, hence the zeros.
// (Lowering sinks reads; the assembler brings these back to between the last products.)
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "compiler/analysis/RegisterUse.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/RotateProducts.inc"

using namespace tile_gpu;

namespace {

class Rotation {
public:
  explicit Rotation(scf::ForOp loop) : loop(loop), rewriter(loop.getContext()) {}

  /// The loop has the form above, and its threads have the registers.
  bool find(const Target &target) { return findEnds() && findProduct() && choosePart(target); }

  void rotate() {
    fill();
    const llvm::SmallVector<Value> first = readFirst();
    rewriteBody(first);
  }

private:
  /// One round waits for a slot, commits one and releases one, in this order and nothing more.
  bool findEnds() {
    for (Operation &op : *loop.getBody())
      if (auto its = dyn_cast<WaitOp>(op)) {
        if (wait)
          return false;
        wait = its;
      }
    const auto only = [](Value state) { return state.hasOneUse() ? *state.user_begin() : nullptr; };
    const auto carried = wait ? dyn_cast<BlockArgument>(wait.getPipeline()) : BlockArgument();
    if (!carried || carried.getOwner() != loop.getBody() || !carried.hasOneUse())
      return false;
    place = carried.getArgNumber() - loop.getNumInductionVars();
    acquire = dyn_cast_or_null<AcquireOp>(only(wait.getNext()));
    auto commit = acquire ? dyn_cast_or_null<CommitOp>(only(acquire.getNext())) : CommitOp();
    release = commit ? dyn_cast_or_null<ReleaseOp>(only(commit.getNext())) : ReleaseOp();
    if (!release || only(release.getNext()) != loop.getBody()->getTerminator() ||
        loop.getYieldedValues()[place] != release.getNext())
      return false;
    for (Operation *op : {acquire.getOperation(), commit.getOperation(), release.getOperation()})
      if (op->getBlock() != loop.getBody())
        return false;
    committed = commit;
    // Back to where the first slot was acquired.
    Operation *before = loop.getInitArgs()[place].getDefiningOp();
    while (auto step = dyn_cast_or_null<CommitOp>(before)) {
      first = step.getPipeline().getDefiningOp<AcquireOp>();
      before = first ? first.getPipeline().getDefiningOp() : nullptr;
    }
    return first && isa_and_nonnull<PipelineOp>(before) && first->getBlock() == loop->getBlock() &&
           before->getBlock() == loop->getBlock();
  }

  /// The loop's only product is of two tiles that are read from the slot, and nobody else reads these.
  bool findProduct() {
    bool one = true;
    loop.getBody()->walk([&](tile::DotOp dot) {
      one &= !product && dot->getBlock() == loop.getBody();
      product = dot;
    });
    if (!one || !product || readsShared(product) || !committed->isBeforeInBlock(product) ||
        !std::holds_alternative<layout::Mma>(layoutAttrOf(product.getType()).encoding().kind))
      return false;
    for (Value buffer : wait.getBuffers())
      for (Operation *user : buffer.getUsers()) {
        auto load = dyn_cast<LocalLoadOp>(user);
        if (!load || load->getBlock() != loop.getBody())
          return false;
        (isOperand(load) ? operands : others).push_back(load);
      }
    return operands.size() == 2;
  }

  bool isOperand(LocalLoadOp load) {
    return load.getBuffer().hasOneUse() && load->hasOneUse() && *load->user_begin() == product.getOperation() &&
           product.getAccumulator() != load.getResult();
  }

  bool choosePart(const Target &target) {
    const RankedTensorType lhs = product.getLhs().getType(), rhs = product.getRhs().getType();
    // Bytes that lie across are put together one by one, which takes all registers that there are.
    if (planBits(lhs) < 16)
      return false;
    // As deep as an instruction: 32 bytes, 16 of each of two words.
    const int64_t depth = lhs.getShape().back(), least = 256 / std::max(8u, planBits(lhs));
    if (depth % least || depth < 2 * least || !partOf(lhs, lhs.getRank() - 1, depth / least) ||
        !partOf(rhs, rhs.getRank() - 2, depth / least))
      return false;
    for (unsigned i : {0u, 1u})
      if (!copiedTile(bufferOf(i)))
        return false;
    APInt by;
    if (!matchPattern(loop.getStep(), m_ConstantInt(&by)) || !by.isStrictlyPositive())
      return false;
    step = by.getSExtValue();
    parts = depth / least;
    // In addition to the sums: the carried parts, those being multiplied, and what else a thread needs.
    uint64_t words =
        threadWords(product.getType()) + 2 * (threadWords(lhs) + threadWords(rhs)) / static_cast<uint64_t>(parts);
    for (LocalLoadOp load : others)
      words += threadWords(load.getType()); // read before the last part
    return words + analysis::registersBesideTiles <= target.registersPerThread;
  }

  /// Which of the slot's buffers holds this operand of the product.
  unsigned bufferOf(unsigned operand) {
    return cast<OpResult>(product->getOperand(operand).getDefiningOp<LocalLoadOp>().getBuffer()).getResultNumber() - 1;
  }

  /// What is copied into that buffer of an acquired slot, in the layout that says who copies what; null if not known.
  RankedTensorType copiedTile(unsigned buffer) {
    const Value slot = acquire.getBuffers()[buffer];
    for (Operation *user : slot.getUsers())
      for (const tile::MemoryAccess &access : tile::accessesOf(user))
        if (access.memory == slot && access.writes && access.tile) // perhaps of pointers: its layout counts
          return cast<RankedTensorType>(
              tile::withElementType(access.tile, cast<BufferType>(slot.getType()).getElementType()));
    return {};
  }

  Value constant(Type type, int64_t v) {
    return arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getIntegerAttr(type, v));
  }

  /// Before anything is copied: zeros into the slot after the last round's, if there are fewer rounds than slots.
  void fill() {
    rewriter.setInsertionPoint(first);
    const Location loc = loop.getLoc();
    const Type i32 = rewriter.getI32Type();
    const Value some =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    llvm::SmallVector<Value> rounds = {some};
    for (int64_t round = 1; round < first.getPipeline().getType().getStages(); ++round) {
      const Value reached = roundExists(rewriter, loop, loop.getLowerBound(), round * step);
      rounds.push_back(arith::AndIOp::create(rewriter, loc, some, reached));
    }
    Value number = constant(i32, 0);
    for (Value exists : rounds)
      number = arith::AddIOp::create(rewriter, loc, number, arith::ExtUIOp::create(rewriter, loc, i32, exists));
    const Value few = arith::XOrIOp::create(rewriter, loc, rounds.back(), constant(rewriter.getI1Type(), 1));
    auto branch = scf::IfOp::create(rewriter, loc, few, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    auto slot = SlotsOp::create(rewriter, loc, first.getPipeline(), number);
    for (unsigned buffer = 0; buffer < acquire.getBuffers().size(); ++buffer)
      if (buffer == bufferOf(0) || buffer == bufferOf(1)) {
        const RankedTensorType tile = copiedTile(buffer);
        const Value zeros = arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(tile)));
        LocalStoreOp::create(rewriter, loc, zeros, slot.getBuffers()[buffer]); // by the threads that copy there
      }
  }

  Value part(Value operand, unsigned number, int64_t index) {
    const auto tile = cast<RankedTensorType>(operand.getType());
    const int64_t dim = tile.getRank() - (number == 0 ? 1 : 2);
    return PartOp::create(rewriter, product.getLoc(), partOf(tile, dim, parts), operand, index, parts, dim);
  }

  /// The first parts of both operands, of the slot that is waited for here.
  llvm::SmallVector<Value> firstParts(WaitOp from) {
    Value tiles[2];
    for (LocalLoadOp load : operands)
      for (unsigned i : {0u, 1u})
        if (product->getOperand(i) == load.getResult())
          tiles[i] = LocalLoadOp::create(rewriter, product.getLoc(), load.getType(), from.getBuffers()[bufferOf(i)]);
    return {part(tiles[0], 0, 0), part(tiles[1], 1, 0)};
  }

  /// Before the loop, which carries them from here on.
  llvm::SmallVector<Value> readFirst() {
    rewriter.setInsertionPoint(loop);
    auto before = WaitOp::create(rewriter, product.getLoc(), loop.getInitArgs()[place]);
    const llvm::SmallVector<Value> inits = firstParts(before);
    loop = carryAlso(rewriter, loop, inits);
    loop.getInitArgsMutable()[place].set(before.getNext());
    const auto added = loop.getRegionIterArgs().take_back(inits.size());
    return {added.begin(), added.end()};
  }

  void rewriteBody(llvm::ArrayRef<Value> carried) {
    const Location loc = product.getLoc();
    rewriter.setInsertionPoint(wait);
    const Value state = wait.getPipeline();
    auto now = SlotsOp::create(rewriter, wait.getLoc(), state, Value());

    rewriter.setInsertionPoint(product);
    Value sum = product.getAccumulator();
    const Value tiles[] = {product.getLhs(), product.getRhs()};
    const auto multiply = [&](Value x, Value y) {
      IRMapping map;
      map.map(product.getLhs(), x);
      map.map(product.getRhs(), y);
      map.map(product.getAccumulator(), sum);
      sum = rewriter.clone(*product, map)->getResult(0);
    };
    multiply(carried[0], carried[1]);
    for (int64_t i = 1; i + 1 < parts; ++i)
      multiply(part(tiles[0], 0, i), part(tiles[1], 1, i));
    const Value last[] = {part(tiles[0], 0, parts - 1), part(tiles[1], 1, parts - 1)};
    rewriter.moveOpBefore(release, product);
    auto next = WaitOp::create(rewriter, loc, release.getNext());
    const llvm::SmallVector<Value> following = firstParts(next);
    multiply(last[0], last[1]);
    // The slot is free from its release on.
    for (LocalLoadOp load : others)
      if (!load->isBeforeInBlock(last[0].getDefiningOp()))
        rewriter.moveOpBefore(load, last[0].getDefiningOp());

    rewriter.replaceAllUsesWith(wait.getBuffers(), now.getBuffers());
    rewriter.replaceAllUsesWith(wait.getNext(), state);
    rewriter.eraseOp(wait);
    rewriter.replaceOp(product, sum);
    Operation *end = loop.getBody()->getTerminator();
    end->setOperand(place, next.getNext());
    for (auto [i, v] : llvm::enumerate(following))
      end->setOperand(end->getNumOperands() - 2 + static_cast<unsigned>(i), v);
  }

  scf::ForOp loop;
  IRRewriter rewriter;
  WaitOp wait;
  AcquireOp acquire, first; ///< the round's, and the first one before the loop
  Operation *committed = nullptr;
  ReleaseOp release;
  unsigned place = 0; ///< of the pipeline among what the loop carries
  tile::DotOp product;
  llvm::SmallVector<LocalLoadOp> operands, others; ///< all reads of the slot
  int64_t parts = 1, step = 1;
};

struct RotateProducts : impl::RotateProductsBase<RotateProducts> {
  void runOnOperation() override {
    const auto rotate = [](llvm::ArrayRef<scf::ForOp> loops, const Target &target) {
      for (scf::ForOp loop : loops)
        if (Rotation rotation(loop); rotation.find(target))
          rotation.rotate();
    };
    if (failed(forEachLoops(getOperation(), waitsForSlots, rotate)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
