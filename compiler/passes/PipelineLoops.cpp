// Loads become asynchronous copies, some rounds ahead of their use.
//
//   buffers of S slots; copies of rounds 0 .. S-2 into slots 0 .. S-2, one group a round
//   for .. carrying (read = 0, write = S-1, the addresses' carried values S-1 rounds ahead, the S-1 groups in flight):
//     wait for the oldest group; barrier               // slot `read` is there for all; slot `write` is read by no one
//     if round + S-1 exists: copy it into slot `write`; commit
//     .. users read slot `read` ..
//     read, write = the next slots; groups move up by one
//   wait for all groups
//
// A product whose operands are both staged begins each round by waiting for shared memory.  Where a thread has the
// registers, a part of both operands along K is read at the end of the round before, in front of that round's last part
// of the product:
//
//   zeros into the slot after the last round, if there are fewer rounds than slots
//   .. wait for the first group; barrier; first parts = those of slot 0
//   for .. carrying (.., first parts of the operands):
//     if round + S-1 exists: copy ..; commit
//     multiply the first parts, and all but the last of the others from slot `read`
//     wait for the group of the next round; barrier    // slot `read` is read by no one any more
//     first parts = those of the next slot
//     multiply the last parts
//
// (Lowering sinks reads; the assembler brings these back to between the last products.)
//
// One barrier a round serves both: it comes after the wait for what this round reads, and after the last round's
// reads of the slot that this round's copies write.  A group is committed in every round, so that the number of groups
// in flight does not depend on the trip count.
#include "compiler/passes/Pass.h"

#include "compiler/layout/StagingBuffer.h"
#include "compiler/passes/ResidentOperands.h"
#include "compiler/passes/StagedLoads.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/IR/Matchers.h"

#include <vector>

using namespace mlir;

namespace kiln {
#include "compiler/passes/PipelineLoops.inc"

using namespace tile_gpu;

namespace {

/// A staged load and its buffers.
struct Stage {
  StagedLoad staged;
  BufferType type; ///< of one slot
  uint64_t bytes = 0;
  Value buffers;
  bool multiplied = false; ///< it is an operand of the product whose operands are read ahead

  /// The tile as it is copied.
  RankedTensorType copied() const { return withLayout(staged.tile(), staged.by); }
};

class Pipeliner {
public:
  Pipeliner(scf::ForOp loop, StagedLoop &plan, const Target &target)
      : loop(loop), plan(plan), target(target), rewriter(loop.getContext()) {}

  /// False if the buffers do not fit: nothing has changed then, and `why` says so.
  bool run(unsigned stages, std::string &why) {
    if (!chooseBuffers(stages, why))
      return false;
    parts = partsOfProduct();
    prologue();
    if (parts > 1)
      prefetch();
    else
      usual();
    rewriter.setInsertionPointAfter(loop);
    AsyncWaitOp::create(rewriter, loop.getLoc(), ValueRange(), ValueRange(), IntegerAttr());
    return true;
  }
  unsigned stages() const { return count; }
  /// Loads that got no buffers, and why.
  llvm::ArrayRef<std::pair<Operation *, std::string>> left() const { return dropped; }
  scf::ForOp replaced() const { return loop; }

private:
  /// The loads that products and conversions take need buffers; the others have what is left, in program order.
  bool chooseBuffers(unsigned wanted, std::string &why) {
    uint64_t bytes = 0; // of one slot of each
    for (const StagedLoad &staged : plan.loads) {
      Stage stage;
      stage.staged = staged;
      if (staged.elementwise) {
        if (bytes && count < 2)
          break;
        // Conversions and reductions need scratch, too.
        const uint64_t room = target.sharedOptIn - target.sharedOptIn / 4;
        std::string its;
        if (!bufferFor(stage, its)) {
          dropped.push_back({staged.load, its});
          continue;
        }
        const uint64_t fit = std::min<uint64_t>(bytes ? count : wanted, room / (bytes + stage.bytes));
        if (fit < (bytes ? count : 2)) {
          dropped.push_back({staged.load, "there is no room for its buffers of " + std::to_string(stage.bytes) +
                                              " bytes in shared memory"});
          continue;
        }
        count = static_cast<unsigned>(fit);
        bytes += stage.bytes;
      } else {
        if (!bufferFor(stage, why))
          return false;
        bytes += stage.bytes;
        count = static_cast<unsigned>(std::min<uint64_t>(wanted, target.sharedOptIn / bytes));
      }
      all.push_back(stage);
    }
    if (all.empty() || count >= 2)
      return !all.empty();
    why = "two buffers of each tile take " + std::to_string(2 * bytes) + " bytes of shared memory; " +
          std::string(target.name) + " has " + std::to_string(target.sharedOptIn);
    return false;
  }

  bool bufferFor(Stage &stage, std::string &why) {
    const StagedLoad &staged = stage.staged;
    const RankedTensorType tile = staged.tile();
    std::vector<layout::TileLayout> readers;
    for (OpOperand &use : staged.load->getResult(0).getUses()) {
      const LayoutAttr layout = wantedLayout(use).value_or(layoutAttrOf(tile));
      if (Result<layout::TileLayout> reader = layoutOf(withLayout(tile, layout)))
        readers.push_back(std::move(*reader));
    }
    const unsigned bits = planBits(tile);
    const llvm::ArrayRef<int64_t> shape = tile.getShape();
    Result<layout::Swizzled> how = layout::stagingEncoding(std::span(shape.data(), shape.size()), staged.run.dim,
                                                           staged.run.elements, bits, readers, target);
    if (!how) {
      why = how.status().toString();
      return false;
    }
    stage.type =
        BufferType::get(loop.getContext(), 1, shape, tile.getElementType(),
                        SharedLayoutAttr::get(loop.getContext(), *how), tile::memoryName(staged.load->getOperand(0)));
    const Result<layout::SharedTile> buffer = stage.type.lowered();
    stage.bytes = llvm::alignTo(buffer->bytes(), buffer->alignment());
    return true;
  }

  Value constant(Type type, int64_t v) {
    return arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getIntegerAttr(type, v));
  }
  Type countType() { return loop.getInductionVar().getType(); }

  /// `rounds` rounds after the one that counts `from`; whether it exists is another question.
  Value later(Value from, unsigned rounds) {
    if (rounds == 0)
      return from;
    return arith::AddIOp::create(rewriter, loop.getLoc(), from, constant(countType(), rounds * step));
  }

  /// The round `rounds` after the one that counts `from`, which exists, exists too.  The difference of the bounds is
  /// exact as an unsigned number, whatever the bounds.
  Value exists(Value from, unsigned rounds) {
    const Value left = arith::SubIOp::create(rewriter, loop.getLoc(), loop.getUpperBound(), from);
    return arith::CmpIOp::create(rewriter, loop.getLoc(), arith::CmpIPredicate::ugt, left,
                                 constant(countType(), rounds * step));
  }

  /// The slice's operations with these values in place of the counter and the carried arguments.
  void clone(const LoopSlice &slice, Value counter, llvm::ArrayRef<Value> carried, IRMapping &map) {
    map.map(loop.getInductionVar(), counter);
    for (auto [argument, value] : llvm::zip_equal(plan.updates.carried, carried))
      map.map(argument, value);
    for (Operation *op : slice.ordered())
      rewriter.clone(*op, map);
  }

  /// Copies the tiles of the round that counts `counter` if it exists, and closes a group.
  Value copyRound(Value counter, llvm::ArrayRef<Value> carried, Value slot, Value condition) {
    auto branch = scf::IfOp::create(rewriter, loop.getLoc(), condition, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      IRMapping map;
      clone(plan.addresses, counter, carried, map);
      for (const Stage &stage : all) {
        const Location loc = stage.staged.load->getLoc();
        const Value to = slotOf(stage, slot, loc);
        if (auto view = dyn_cast<tile::LoadViewOp>(stage.staged.load)) {
          llvm::SmallVector<Value> coords;
          for (Value c : view.getCoords())
            coords.push_back(map.lookupOrDefault(c));
          AsyncCopyViewOp::create(rewriter, loc, map.lookupOrDefault(Value(view.getView())), coords, to,
                                  stage.staged.by);
        } else {
          auto load = cast<tile::LoadOp>(stage.staged.load);
          const auto by = [&](Value tile) {
            tile = map.lookupOrDefault(tile);
            const RankedTensorType type = withLayout(tile.getType(), stage.staged.by);
            return tile.getType() == type ? tile : ConvertLayoutOp::create(rewriter, loc, type, tile).getResult();
          };
          AsyncCopyOp::create(rewriter, loc, by(load.getPointer()), to, load.getMask() ? by(load.getMask()) : Value());
        }
      }
    }
    return AsyncCommitOp::create(rewriter, loop.getLoc(), TokenType::get(loop.getContext()));
  }

  Value slotOf(const Stage &stage, Value slot, Location loc) {
    return LocalSubviewOp::create(rewriter, loc, stage.type, stage.buffers, slot);
  }

  /// The carried values of the next round.
  llvm::SmallVector<Value> nextCarried(Value counter, llvm::ArrayRef<Value> carried) {
    if (carried.empty())
      return {};
    IRMapping map;
    clone(plan.updates, counter, carried, map);
    llvm::SmallVector<Value> out;
    for (BlockArgument argument : plan.updates.carried)
      out.push_back(map.lookupOrDefault(loop.getTiedLoopYieldedValue(argument)->get()));
    return out;
  }

  void prologue() {
    APInt by;
    matchPattern(loop.getStep(), m_ConstantInt(&by));
    step = by.getSExtValue();
    rewriter.setInsertionPoint(loop);
    for (Stage &stage : all) {
      stage.buffers =
          LocalAllocOp::create(rewriter, stage.staged.load->getLoc(), stage.type.withCount(count), IntegerAttr());
    }
    llvm::SmallVector<Value> rounds;
    rounds.push_back(arith::CmpIOp::create(rewriter, loop.getLoc(), arith::CmpIPredicate::slt, loop.getLowerBound(),
                                           loop.getUpperBound()));
    for (unsigned round = 1; round < count; ++round)
      rounds.push_back(
          arith::AndIOp::create(rewriter, loop.getLoc(), rounds.front(), exists(loop.getLowerBound(), round)));
    if (parts > 1)
      fill(rounds);
    for (BlockArgument argument : plan.updates.carried)
      ahead.push_back(loop.getTiedLoopInit(argument)->get());
    for (unsigned round = 0; round + 1 < count; ++round) {
      const Value counter = later(loop.getLowerBound(), round);
      groups.push_back(copyRound(counter, ahead, constant(rewriter.getI32Type(), round), rounds[round]));
      ahead = nextCarried(counter, ahead);
    }
  }

  void usual() {
    replaceLoop({});
    body();
  }

  /// The loop with the new carried values: slots, addresses, groups, `others`; what the body has of these.
  llvm::SmallVector<Value> replaceLoop(ValueRange others) {
    const Type i32 = rewriter.getI32Type();
    llvm::SmallVector<Value> inits = {constant(i32, 0), constant(i32, count - 1)};
    inits.append(ahead);
    inits.append(groups);
    inits.append(others.begin(), others.end());
    const unsigned before = loop.getNumRegionIterArgs();
    // The slices' operations move along with the body; its arguments are new.
    llvm::SmallVector<unsigned> numbers;
    for (BlockArgument argument : plan.updates.carried)
      numbers.push_back(argument.getArgNumber());
    rewriter.setInsertionPoint(loop);
    auto keep = [](OpBuilder &, Location, llvm::ArrayRef<BlockArgument> arguments) {
      return llvm::SmallVector<Value>(arguments.begin(), arguments.end());
    };
    const DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
    loop = cast<scf::ForOp>(**loop.replaceWithAdditionalYields(rewriter, inits, false, keep));
    loop->setDiscardableAttrs(attributes);
    plan.updates.carried.clear();
    for (unsigned number : numbers)
      plan.updates.carried.insert(loop.getBody()->getArgument(number));
    llvm::ArrayRef<BlockArgument> added = loop.getRegionIterArgs().drop_front(before);
    read = added[0];
    write = added[1];
    const llvm::SmallVector<Value> carried(added.take_back(others.size()).begin(), added.end());
    added = added.drop_back(others.size());
    ahead.assign(added.begin() + 2, added.end() - groups.size());
    groups.assign(added.end() - groups.size(), added.end());
    firstAdded = before;
    return carried;
  }

  void yield(llvm::ArrayRef<Value> values) {
    for (auto [i, v] : llvm::enumerate(values))
      loop.getBody()->getTerminator()->setOperand(firstAdded + static_cast<unsigned>(i), v);
  }

  Value nextSlot(Value slot) {
    const Type i32 = slot.getType();
    const Value one = arith::AddIOp::create(rewriter, loop.getLoc(), slot, constant(i32, 1));
    const Value past =
        arith::CmpIOp::create(rewriter, loop.getLoc(), arith::CmpIPredicate::eq, one, constant(i32, count));
    return arith::SelectOp::create(rewriter, loop.getLoc(), past, constant(i32, 0), one);
  }

  /// Slot `number` of each buffer.
  llvm::SmallVector<Value> slotsOf(Value number) {
    llvm::SmallVector<Value> slots;
    for (const Stage &stage : all)
      slots.push_back(slotOf(stage, number, stage.staged.load->getLoc()));
    return slots;
  }

  /// Waits for the first of the groups, and for everyone's reads before; slot `number` of each buffer.
  llvm::SmallVector<Value> arrived(Value number, Location loc) {
    llvm::SmallVector<Value> slots = slotsOf(number);
    AsyncWaitOp::create(rewriter, loc, ValueRange(groups.front()), slots, IntegerAttr());
    groups.erase(groups.begin());
    BarrierOp::create(rewriter, loc);
    return slots;
  }

  /// Copies the round that is as far ahead as there are slots; the slots and addresses of the next round.
  llvm::SmallVector<Value> copyAhead() {
    const Value counter = later(loop.getInductionVar(), count - 1);
    llvm::SmallVector<Value> yields = {nextSlot(read), nextSlot(write)};
    groups.push_back(copyRound(counter, ahead, write, exists(loop.getInductionVar(), count - 1)));
    yields.append(nextCarried(counter, ahead));
    return yields;
  }

  void body() {
    rewriter.setInsertionPointToStart(loop.getBody());
    const llvm::SmallVector<Value> slots = arrived(read, loop.getLoc());
    llvm::SmallVector<Value> yields = copyAhead();
    yields.append(groups);
    yield(yields);
    for (auto [stage, slot] : llvm::zip_equal(all, slots))
      readFrom(stage.staged.load, slot);
  }

  //===--- the first parts of a product a round ahead ----------------------===//

  /// Into how many parts along K the loop's product is cut: 1 if its operands are not read ahead.
  int64_t partsOfProduct() {
    tile::DotOp only;
    bool one = true;
    loop.getBody()->walk([&](tile::DotOp dot) {
      one &= !only && dot->getBlock() == loop.getBody();
      only = dot;
    });
    if (!one || !only || !std::holds_alternative<layout::Mma>(layoutAttrOf(only.getType()).encoding().kind))
      return 1;
    unsigned operands = 0;
    for (Stage &stage : all) {
      const Value tile = stage.staged.load->getResult(0);
      Value operand = tile;
      if (tile.hasOneUse())
        if (auto convert = dyn_cast<ConvertLayoutOp>(*tile.user_begin()); convert && convert->hasOneUse())
          operand = convert.getResult();
      stage.multiplied = operand.hasOneUse() && *operand.user_begin() == only && only.getAccumulator() != operand;
      operands += stage.multiplied;
    }
    if (operands != 2)
      return 1;
    // Bytes that lie across are put together one by one, which takes all registers that there are.
    if (only.getLhs() == only.getRhs() || planBits(only.getLhs().getType()) < 16)
      return 1;
    product = only;
    // As deep as an instruction: 32 bytes, 16 of each of two words.
    const RankedTensorType lhs = only.getLhs().getType(), rhs = only.getRhs().getType();
    const int64_t depth = lhs.getShape().back(), least = 256 / std::max(8u, planBits(lhs));
    if (depth % least || depth < 2 * least || !partOf(lhs, lhs.getRank() - 1, depth / least) ||
        !partOf(rhs, rhs.getRank() - 2, depth / least))
      return 1;
    // Beside the sums: the carried parts, those in hand, and what else a thread needs.
    constexpr std::uint64_t others = 56;
    const int64_t parts = depth / least;
    std::uint64_t words =
        threadWords(only.getType()) + 2 * (threadWords(lhs) + threadWords(rhs)) / static_cast<std::uint64_t>(parts);
    for (const Stage &stage : all)
      if (!stage.multiplied)
        words += threadWords(stage.staged.tile()); // read before the last part
    return words + others <= target.registersPerThread ? parts : 1;
  }

  /// Both operands from these slots.
  std::pair<Value, Value> operandsFrom(llvm::ArrayRef<Value> slots) {
    Value out[2];
    for (auto [stage, slot] : llvm::zip_equal(all, slots))
      for (unsigned i : {0u, 1u})
        if (Value operand = product->getOperand(i); unconverted(operand) == stage.staged.load->getResult(0))
          out[i] = LocalLoadOp::create(rewriter, product->getLoc(), operand.getType(), slot);
    return {out[0], out[1]};
  }
  static Value unconverted(Value v) {
    auto convert = v.getDefiningOp<ConvertLayoutOp>();
    return convert ? convert.getSource() : v;
  }
  Value part(Value operand, bool lhs, int64_t index) {
    const auto tile = cast<RankedTensorType>(operand.getType());
    const int64_t dim = tile.getRank() - (lhs ? 1 : 2);
    return PartOp::create(rewriter, product->getLoc(), partOf(tile, dim, parts), operand, index, parts, dim);
  }

  llvm::SmallVector<Value> firstParts(llvm::ArrayRef<Value> slots) {
    const auto [lhs, rhs] = operandsFrom(slots);
    return {part(lhs, true, 0), part(rhs, false, 0)};
  }

  /// The last round reads ahead too, from the slot of the round after it: a branch would keep these reads apart from
  /// the products that they should run beside.  In a loop of fewer rounds than slots nothing was ever copied there.
  void fill(llvm::ArrayRef<Value> rounds) {
    const Location loc = loop.getLoc();
    const Type i32 = rewriter.getI32Type();
    Value number = constant(i32, 0);
    for (Value exists : rounds)
      number = arith::AddIOp::create(rewriter, loc, number, arith::ExtUIOp::create(rewriter, loc, i32, exists));
    const Value few = arith::XOrIOp::create(rewriter, loc, rounds.back(), constant(rewriter.getI1Type(), 1));
    auto branch = scf::IfOp::create(rewriter, loc, few, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    for (const Stage &stage : all)
      if (stage.multiplied) {
        const Value zeros =
            arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(stage.copied())));
        LocalStoreOp::create(rewriter, loc, zeros, slotOf(stage, number, loc)); // by the threads that copy there
      }
  }

  void prefetch() {
    const Location loc = product->getLoc();
    const llvm::SmallVector<Value> first = replaceLoop(firstParts(arrived(constant(rewriter.getI32Type(), 0), loc)));
    rewriter.setInsertionPointToStart(loop.getBody());
    const llvm::SmallVector<Value> slots = slotsOf(read);
    llvm::SmallVector<Value> yields = copyAhead();
    const Value next = yields.front();

    rewriter.setInsertionPoint(product);
    const auto [lhs, rhs] = operandsFrom(slots);
    Value sum = product.getAccumulator();
    const auto multiply = [&](Value x, Value y) {
      IRMapping map;
      map.map(product.getLhs(), x);
      map.map(product.getRhs(), y);
      map.map(product.getAccumulator(), sum);
      sum = rewriter.clone(*product, map)->getResult(0);
    };
    multiply(first[0], first[1]);
    for (int64_t i = 1; i + 1 < parts; ++i)
      multiply(part(lhs, true, i), part(rhs, false, i));
    const Value lastLhs = part(lhs, true, parts - 1), lastRhs = part(rhs, false, parts - 1);
    const llvm::SmallVector<Value> following = firstParts(arrived(next, loc));
    multiply(lastLhs, lastRhs);
    yields.append(groups.begin(), groups.end());
    yields.append(following);
    yield(yields);
    // The others' slots are free from the barrier on.
    Operation *last = lastLhs.getDefiningOp();
    for (auto [stage, slot] : llvm::zip_equal(all, slots))
      if (!stage.multiplied)
        readFrom(stage.staged.load, slot, last);
    rewriter.replaceOp(product, sum);
    for (const Stage &stage : all) {
      if (!stage.multiplied)
        continue;
      Operation *load = stage.staged.load;
      for (Operation *user : llvm::make_early_inc_range(load->getUsers()))
        rewriter.eraseOp(user); // its conversion
      rewriter.eraseOp(load);
    }
  }

  /// The users of a load read its slot, each in the layout that it wants; before `last`, where there is one.
  void readFrom(Operation *load, Value slot, Operation *last = nullptr) {
    const auto tile = cast<RankedTensorType>(load->getResult(0).getType());
    llvm::SmallVector<OpOperand *> uses;
    for (OpOperand &use : load->getResult(0).getUses())
      uses.push_back(&use);
    // In program order, each read as late as its first user allows.
    llvm::SmallVector<std::pair<OpOperand *, LayoutAttr>> wanted;
    for (OpOperand *use : uses)
      wanted.push_back({use, wantedLayout(*use).value_or(layoutAttrOf(tile))});
    llvm::DenseMap<LayoutAttr, Value> loaded;
    for (auto [use, layout] : wanted) {
      Value &value = loaded[layout];
      if (!value) {
        Operation *first = last;
        for (auto [other, its] : wanted) {
          Operation *at = loop.getBody()->findAncestorOpInBlock(*other->getOwner());
          if (its == layout && (!first || at->isBeforeInBlock(first)))
            first = at;
        }
        rewriter.setInsertionPoint(first);
        value = LocalLoadOp::create(rewriter, load->getLoc(), withLayout(tile, layout), slot);
      }
    }
    for (auto [use, layout] : wanted)
      feed(*use, loaded[layout]);
    rewriter.eraseOp(load);
  }

  /// Gives the use `value`; conversions at the end of its chain are not needed any more.
  void feed(OpOperand &use, Value value) {
    Operation *op = use.getOwner();
    if (value.getType() == use.get().getType() && !isa<ConvertLayoutOp>(op)) {
      use.set(value);
      return;
    }
    if (isa<ConvertLayoutOp>(op)) {
      rewriter.replaceOp(op, value);
      return;
    }
    OpOperand &next = *op->getResult(0).use_begin();
    rewriter.setInsertionPoint(op);
    IRMapping map;
    map.map(use.get(), value);
    Operation *other = rewriter.clone(*op, map);
    other->getResult(0).setType(withLayout(op->getResult(0).getType(), *wantedLayout(next)));
    feed(next, other->getResult(0));
    rewriter.eraseOp(op);
  }

  scf::ForOp loop;
  StagedLoop &plan;
  const Target &target;
  IRRewriter rewriter;
  llvm::SmallVector<Stage> all;
  llvm::SmallVector<std::pair<Operation *, std::string>> dropped;
  tile::DotOp product; ///< whose operands are read ahead
  int64_t parts = 1;   ///< of the product along K
  unsigned count = 0, firstAdded = 0;
  int64_t step = 1;
  Value read, write;
  llvm::SmallVector<Value> ahead, groups;
};

struct PipelineLoops : impl::PipelineLoopsBase<PipelineLoops> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      llvm::SmallVector<scf::ForOp> loops; // inner ones first
      function.walk([&](scf::ForOp loop) {
        if (tile::numStages(loop) > 1)
          loops.push_back(loop);
      });
      if (loops.empty())
        continue;
      Result<const Target *> target = targetOf(function);
      if (!target) {
        (void)report(function, target.takeStatus());
        return signalPassFailure();
      }
      const analysis::AxisAnalysis facts(function);
      ResidentOperands residents(**target);
      for (scf::ForOp loop : loops)
        if (scf::ForOp pipelined = pipeline(loop, **target, facts))
          residents.relieve(pipelined);
    }
  }

  /// The loop that takes its place; null if it stays.
  static scf::ForOp pipeline(scf::ForOp loop, const Target &target, const analysis::AxisAnalysis &facts) {
    StagedLoop plan(loop, target, facts);
    const StagedLoop::Answer answer = plan.examine();
    for (const auto &[op, why] : plan.refused)
      op->emitRemark() << (op == loop ? "this loop" : "this load") << " is not pipelined: " << why;
    if (answer != StagedLoop::Answer::Yes)
      return {};
    const unsigned wanted = tile::numStages(loop);
    const Location loc = loop.getLoc(); // the loop is another one afterwards
    Pipeliner pipeliner(loop, plan, target);
    std::string why;
    const bool done = pipeliner.run(wanted, why);
    for (const auto &[load, its] : pipeliner.left())
      load->emitRemark() << "this load is not pipelined: " << its;
    if (!done) {
      if (!why.empty())
        emitRemark(loc) << "this loop is not pipelined: " << why;
      return {};
    }
    if (pipeliner.stages() < wanted)
      emitRemark(loc) << "this loop has " << pipeliner.stages() << " stages, not " << wanted << ": "
                      << target.name.data() << " has " << target.sharedOptIn << " bytes of shared memory";
    return pipeliner.replaced();
  }
};

} // namespace
} // namespace kiln
