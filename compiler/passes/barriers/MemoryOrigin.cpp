#include "compiler/passes/barriers/MemoryOrigin.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

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
  if (auto load = dyn_cast<tile_gpu::ExchangeLoadOp>(op)) {
    if (!load.getPrevious().getDefiningOp<ub::PoisonOp>()) // before the first pass
      out.push_back(load.getPrevious());
    for (Operation *user : load.getScratch().getUsers())
      if (auto store = dyn_cast<tile_gpu::ExchangeStoreOp>(user))
        out.push_back(store.getValue());
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

std::optional<MemoryOrigin> originOf(Operation *op, llvm::function_ref<bool(const tile::MemoryAccess &)> wanted) {
  std::optional<MemoryOrigin> out;
  for (const tile::MemoryAccess &access : tile::accessesOf(op)) {
    if (!access.in<tile::GlobalMemory>() || !wanted(access))
      continue;
    if (!out)
      out.emplace();
    if (access.memory)
      add(*out, access.memory);
    else
      out->anywhere = true;
  }
  return out;
}

std::optional<MemoryOrigin> copiedFrom(Operation *op) {
  // What is written, too, is WritesInFlight.h's.
  return originOf(op,
                  [](const tile::MemoryAccess &access) { return access.inFlight && access.reads && !access.writes; });
}

std::optional<MemoryOrigin> writtenTo(Operation *op) {
  return originOf(op, [](const tile::MemoryAccess &access) { return access.writes; });
}

std::optional<MemoryOrigin> releasedBy(Operation *op) {
  return originOf(op, [](const tile::MemoryAccess &access) { return access.releases && !access.atomic; });
}

bool mayMeet(const MemoryOrigin &a, const MemoryOrigin &b) {
  return !a.known() || !b.known() || llvm::any_of(a.arguments, [&](Value v) { return b.arguments.contains(v); });
}

} // namespace kiln::proof
