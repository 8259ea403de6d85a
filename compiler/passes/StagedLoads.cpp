#include "compiler/passes/StagedLoads.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

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

namespace {

bool isStageable(Operation *op) {
  return isa<tile::LoadOp, tile::LoadViewOp>(op) && tile_gpu::isTile(op->getResult(0)) &&
         llvm::any_of(op->getResult(0).getUses(), [](OpOperand &use) { return wantedLayout(use).has_value(); });
}

bool isZero(Value v) {
  return matchPattern(v, m_Zero()) || matchPattern(v, m_AnyZeroFloat());
}

} // namespace

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
  const bool reads = isa<tile::LoadOp, tile::LoadViewOp>(op) &&
                     op->getAttrOfType<tile::CacheAttr>("cache").getValue() != tile::Cache::Volatile;
  if (!isMemoryEffectFree(op) && !(reads && mayRead)) {
    why = "its address depends on '" + op->getName().getStringRef().str() + "'" +
          (reads ? " through a value that the loop carries" : "");
    return false;
  }
  slice.reads |= reads;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand, slice, mayRead, why); });
}

bool StagedLoop::collectUpdates(std::string &why) {
  for (BlockArgument argument : addresses.carried)
    updates.carried.insert(argument);
  for (size_t i = 0; i < updates.carried.size(); ++i)
    if (!collect(loop.getTiedLoopYieldedValue(updates.carried[i])->get(), updates, /*mayRead=*/false, why))
      return false;
  return true;
}

std::string StagedLoop::examineLoad(Operation *load) {
  if (load->getAttrOfType<tile::CacheAttr>("cache").getValue() == tile::Cache::Volatile)
    return "it is volatile";
  auto plain = dyn_cast<tile::LoadOp>(load);
  if (plain && plain.getOther() && !isZero(plain.getOther()))
    return "its masked elements are not zero";
  const std::optional<analysis::AccessFacts> access = facts.access(load);
  const Type tile = analysis::accessedTile(load);
  const Result<layout::TileLayout> layout = tile_gpu::layoutOf(tile);
  if (!access || !layout)
    return "nothing is known of its addresses";
  const analysis::VectorAccess run = analysis::unmaskedAccess(load, *access, *layout);
  const unsigned bits = tile::storageBits(tile::elementTypeOf(load->getResult(0).getType()));
  constexpr unsigned leastBits = 32;
  if (run.elements * bits < leastBits)
    return "only " + std::to_string(run.elements * bits / 8) +
           " bytes of it are known to lie together and aligned; an asynchronous copy moves 4, 8 or 16";
  if (auto view = dyn_cast<tile::LoadViewOp>(load); view && run.elements > 1 && !analysis::beginsAtZero(view.getView()))
    return "its view may begin inside a run of elements";

  std::string why;
  LoopSlice slice = addresses;
  for (Value operand : load->getOperands())
    if (!(plain && operand == plain.getOther()) && !collect(operand, slice, /*mayRead=*/true, why))
      return why;
  addresses = std::move(slice);
  loads.push_back({load, run});
  return {};
}

std::string StagedLoop::examineLoop() {
  if (!target.has(Capability::CpAsync))
    return std::string(target.name) + " has no asynchronous copies";
  if (loop.getUnsignedCmp())
    return "it counts unsigned";
  APInt step;
  constexpr int64_t mostStep = 1 << 24;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive() || step.sgt(mostStep))
    return "its step is no constant from 1 to 2^24";
  std::string why;
  loop.getBody()->walk([&](Operation *op) {
    if (isa<tile::LoadOp, tile::LoadViewOp>(op) || isMemoryEffectFree(op) ||
        op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    // Copies ahead would pass these: stores to what is copied, other threads' stores, buffers and barriers of others.
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    const bool ordered = !effects || effects.hasEffect<MemoryEffects::Write>() ||
                         op->getDialect() == loop->getContext()->getLoadedDialect<tile_gpu::TileGpuDialect>();
    if (!ordered || isa<tile::PrintOp, tile::AssertOp, tile::AssumeOp>(op))
      return WalkResult::advance();
    why = "it holds '" + op->getName().getStringRef().str() + "'";
    return WalkResult::interrupt();
  });
  return why;
}

StagedLoop::Answer StagedLoop::examine() {
  llvm::SmallVector<Operation *> asking;
  loop.getBody()->walk([&](Operation *op) {
    if (op->getParentOfType<scf::ForOp>() == loop && isStageable(op))
      asking.push_back(op);
  });
  if (asking.empty())
    return Answer::Nothing;
  if (std::string why = examineLoop(); !why.empty()) {
    refused.push_back({loop, std::move(why)});
    return Answer::No;
  }
  for (Operation *load : asking) {
    std::string why = load->getBlock() == loop.getBody() ? examineLoad(load) : "it is in a conditional";
    if (!why.empty())
      refused.push_back({load, std::move(why)});
  }
  if (loads.empty())
    return Answer::No;
  if (std::string why; !collectUpdates(why)) {
    refused.push_back({loop, std::move(why)});
    return Answer::No;
  }
  return Answer::Yes;
}

} // namespace kiln
