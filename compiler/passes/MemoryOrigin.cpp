#include "compiler/passes/MemoryOrigin.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::proof {
namespace {

bool isAddress(Value v) {
  return isa<tile::ViewType>(v.getType()) || isa<tile::PtrType>(tile::elementTypeOf(v.getType()));
}

/// The values that `v` is computed from or is one of; false if that is not known.
bool sourcesOf(Value v, llvm::SmallVectorImpl<Value> &out) {
  const auto argument = dyn_cast<BlockArgument>(v);
  Operation *op = argument ? argument.getOwner()->getParentOp() : v.getDefiningOp();
  const unsigned index = argument ? argument.getArgNumber() : cast<OpResult>(v).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    const unsigned carried = index - (argument ? loop.getNumInductionVars() : 0);
    out.append({loop.getInitArgs()[carried], loop.getYieldedValues()[carried]});
    return true;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op); branch && !argument) {
    out.append({branch.thenYield().getOperand(index), branch.elseYield().getOperand(index)});
    return true;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    if (argument && argument.getOwner() == loop.getBeforeBody())
      out.append({loop.getInits()[index], loop.getYieldOp().getOperand(index)});
    else
      out.push_back(loop.getConditionOp().getArgs()[index]);
    return true;
  }
  if (argument || op->getNumRegions() || !isMemoryEffectFree(op))
    return false;
  llvm::copy_if(op->getOperands(), std::back_inserter(out), isAddress);
  return !out.empty();
}

void add(MemoryOrigin &to, Value address) {
  llvm::SetVector<Value> seen;
  seen.insert(address);
  for (size_t i = 0; i < seen.size(); ++i) {
    const Value v = seen[i];
    if (auto argument = dyn_cast<BlockArgument>(v); argument && isa<func::FuncOp>(argument.getOwner()->getParentOp())) {
      to.arguments.insert(v);
      continue;
    }
    llvm::SmallVector<Value> sources;
    if (!sourcesOf(v, sources)) {
      to.unknown = v;
      return;
    }
    seen.insert_range(sources);
  }
}

} // namespace

std::optional<MemoryOrigin> copiedFrom(Operation *op) {
  if (!isa<tile_gpu::AsyncCopyOp, tile_gpu::AsyncCopyViewOp>(op))
    return std::nullopt;
  MemoryOrigin out;
  for (Value operand : op->getOperands())
    if (isAddress(operand))
      add(out, operand);
  return out;
}

std::optional<MemoryOrigin> writtenTo(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  // Volatile loads say that they write, so that nothing passes them.
  if (!effects || isa<tile::LoadOp>(op))
    return std::nullopt;
  llvm::SmallVector<MemoryEffects::EffectInstance> list;
  effects.getEffects(list);
  if (llvm::none_of(list, [](const MemoryEffects::EffectInstance &e) {
        return isa<MemoryEffects::Write>(e.getEffect()) && isa<tile::GlobalMemory>(e.getResource());
      }))
    return std::nullopt;
  MemoryOrigin out;
  const auto to = llvm::find_if(op->getOperands(), isAddress); // first of all; what is stored may be an address too
  if (to != op->getOperands().end())
    add(out, *to);
  else if (isa<tile_gpu::TileGpuDialect>(op->getDialect()))
    return std::nullopt; // barriers and fences order memory and write none
  else
    out.anywhere = true;
  return out;
}

bool mayMeet(const MemoryOrigin &a, const MemoryOrigin &b) {
  return !a.known() || !b.known() || llvm::any_of(a.arguments, [&](Value v) { return b.arguments.contains(v); });
}

} // namespace kiln::proof
