#include "compiler/passes/pipelines/StagedLoads.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln {

using tile_gpu::LayoutAttr;

llvm::SmallVector<Operation *> LoopSlice::ordered() const {
  llvm::SmallVector<Operation *> out(ops.begin(), ops.end());
  llvm::sort(out, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return out;
}

std::optional<LayoutAttr> wantedLayout(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto convert = dyn_cast<tile_gpu::ConvertLayoutOp>(op))
    return tile_gpu::layoutAttrOf(convert.getType());
  if (isa<tile::DotOp>(op))
    return tile_gpu::layoutAttrOf(use.get().getType());
  if (op->getNumResults() != 1 || op->getNumRegions() || !isMemoryEffectFree(op) ||
      !tile_gpu::isTile(op->getResult(0)) || !op->getResult(0).hasOneUse() || !tile_gpu::isTied(use))
    return std::nullopt;
  for (OpOperand &other : op->getOpOperands())
    if (&other != &use && tile_gpu::isTied(other))
      return std::nullopt;
  const std::optional<LayoutAttr> after = wantedLayout(*op->getResult(0).use_begin());
  return after ? tile_gpu::operandLayout(use, *after) : std::nullopt;
}

bool feedsProduct(Value tile) {
  return llvm::any_of(tile.getUses(), [](OpOperand &use) {
    Operation *const op = use.getOwner();
    if (isa<tile::DotOp>(op))
      return use.getOperandNumber() < 2;
    const auto isOther = [&](OpOperand &other) { return &other != &use && tile_gpu::isTile(other.get()); };
    return op->getNumResults() == 1 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           tile_gpu::isTile(op->getResult(0)) && llvm::none_of(op->getOpOperands(), isOther) &&
           feedsProduct(op->getResult(0));
  });
}

namespace {

bool isLoad(Operation *op) {
  return isa<tile::LoadOp, tile::LoadViewOp>(op);
}
/// Its author wants it where it is.
bool isUnstaged(Operation *op) {
  auto load = dyn_cast<tile::LoadViewOp>(op);
  return load && load.getUnstaged();
}
bool isElementwise(Operation *load) {
  return llvm::none_of(load->getResult(0).getUses(), [](OpOperand &use) { return wantedLayout(use).has_value(); });
}

bool isZero(Value v) {
  return matchPattern(v, m_Zero()) || matchPattern(v, m_AnyZeroFloat());
}

} // namespace

Value writtenBy(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, tile_gpu::CountOp>(
          [](auto access) { return access.getPointer(); })
      .Case([](tile::StoreViewOp store) { return store.getView(); })
      .Default([](Operation *) { return Value(); });
}
bool acquires(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tile::AtomicRmwOp, tile::AtomicCasOp>([](auto atomic) {
        return atomic.getOrder() == tile::Order::Acquire || atomic.getOrder() == tile::Order::AcqRel;
      })
      .Default([](Operation *) { return false; });
}

bool StagedLoop::collect(Value v, LoopSlice &slice, bool mayRead, std::string &why) {
  if (auto argument = dyn_cast<BlockArgument>(v)) {
    if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
      slice.carried.insert(argument);
    return true;
  }
  Operation *op = v.getDefiningOp();
  if (!loop->isProperAncestor(op))
    return true;
  if (op->getBlock() != loop.getBody() || op->getNumRegions()) {
    why = "its address depends on a conditional or a loop";
    return false;
  }
  if (!slice.ops.insert(op))
    return true;
  const bool reads = isLoad(op) && op->getAttrOfType<tile::CacheAttr>("cache").getValue() != tile::Cache::Volatile;
  if (!isMemoryEffectFree(op) && !(reads && mayRead)) {
    why = "its address depends on '" + op->getName().getStringRef().str() + "'" +
          (reads ? " through a value that the loop carries" : "");
    return false;
  }
  if (reads)
    if (const std::string meets = writtenHere(op); !meets.empty()) {
      why = "its address is in memory, and " + meets;
      return false;
    }
  slice.reads |= reads;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand, slice, mayRead, why); });
}

bool StagedLoop::collectUpdates(const LoopSlice &of, LoopSlice &slice, std::string &why) {
  for (BlockArgument argument : of.carried)
    slice.carried.insert(argument);
  for (size_t i = 0; i < slice.carried.size(); ++i)
    if (!collect(loop.getTiedLoopYieldedValue(slice.carried[i])->get(), slice, /*mayRead=*/false, why))
      return false;
  return true;
}

std::string StagedLoop::writtenHere(Operation *load) const {
  if (writes.empty())
    return {};
  const analysis::Roots read = roots->of(load->getOperand(0));
  for (const auto &[op, its] : writes)
    if (analysis::mayOverlap(read, its))
      return "'" + op->getName().getStringRef().str() + "' in the loop " +
             (!read.known ? "may write there: from which argument it is read is not known"
              : its.known ? "writes to the same argument"
                          : "may write there: to which argument is not known");
  return {};
}

std::string StagedLoop::examineLoad(Operation *load, bool elementwise) {
  if (load->getAttrOfType<tile::CacheAttr>("cache").getValue() == tile::Cache::Volatile)
    return "it is volatile";
  auto plain = dyn_cast<tile::LoadOp>(load);
  if (plain && plain.getOther() && !isZero(plain.getOther()))
    return "its masked elements are not zero";
  if (std::string meets = writtenHere(load); !meets.empty())
    return meets;
  Result<AsyncCopy> copy = asyncCopyOf(load, facts, elementwise);
  if (!copy)
    return copy.status().message();
  const StagedLoad staged{load, *copy, elementwise};

  std::string why;
  LoopSlice slice = addresses, next = updates;
  for (Value operand : load->getOperands())
    if (!(plain && operand == plain.getOther()) && !collect(operand, slice, /*mayRead=*/true, why))
      return why;
  if (!collectUpdates(slice, next, why))
    return why;
  addresses = std::move(slice);
  updates = std::move(next);
  loads.push_back(staged);
  return {};
}

std::string StagedLoop::examineLoop() {
  if (!hasAsyncCopies(target))
    return std::string(target.name) + " has no asynchronous copies";
  if (loop.getUnsignedCmp())
    return "it counts unsigned";
  APInt step;
  constexpr int64_t mostStep = 1 << 24;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() || step.sgt(mostStep))
    return "its step is no constant from 1 to 2^24";
  std::string why;
  loop.getBody()->walk([&](Operation *op) {
    if (isLoad(op) || isMemoryEffectFree(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    if (writtenBy(op) && !acquires(op)) {
      if (!roots)
        roots.emplace(loop->getParentOfType<func::FuncOp>());
      writes.push_back({op, roots->of(writtenBy(op))});
      return WalkResult::advance();
    }
    // Copies ahead would pass these: other threads' stores that this operation makes visible, buffers and barriers of
    // others, what nobody knows.
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    const bool ordered = !effects || effects.hasEffect<MemoryEffects::Write>() ||
                         op->getDialect() == loop->getContext()->getLoadedDialect<tile_gpu::TileGpuDialect>();
    if (!ordered || isa<tile::PrintOp, tile::AssertOp, tile::AssumeOp>(op))
      return WalkResult::advance();
    why = "it holds '" + op->getName().getStringRef().str() + "'";
    if (acquires(op))
      why += ", which acquires: nothing after it may be read before it";
    return WalkResult::interrupt();
  });
  return why;
}

StagedLoop::Answer StagedLoop::examine() {
  llvm::SmallVector<Operation *> asking, elementwise;
  loop.getBody()->walk([&](Operation *op) {
    if (op->getParentOfType<scf::ForOp>() == loop && isLoad(op) && tile_gpu::isTile(op->getResult(0)) &&
        !op->use_empty() && !isUnstaged(op))
      (isElementwise(op) ? elementwise : asking).push_back(op);
  });
  if (asking.empty() && elementwise.empty())
    return Answer::Nothing;
  if (std::string why = examineLoop(); !why.empty()) {
    refused.push_back({loop, std::move(why)});
    return Answer::No;
  }
  const auto each = [&](llvm::ArrayRef<Operation *> all, bool isElementwise) {
    for (Operation *load : all) {
      // What addresses follow from is read ahead with them.
      if (isElementwise && addresses.ops.contains(load))
        continue;
      std::string why =
          load->getBlock() == loop.getBody() ? examineLoad(load, isElementwise) : "it is in a conditional";
      if (!why.empty())
        refused.push_back({load, std::move(why)});
    }
  };
  each(asking, false);
  each(elementwise, true);
  llvm::erase_if(loads, [&](const StagedLoad &l) { return l.elementwise && addresses.ops.contains(l.load); });
  return loads.empty() ? Answer::No : Answer::Yes;
}

} // namespace kiln
