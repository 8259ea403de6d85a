// Layout conversions as exchanges through scratch, and back.
#include "compiler/passes/shared/SharedExpansion.h"

#include "compiler/tile_gpu/Exchange.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

Result<layout::TileConversionPlan> planOf(ConvertLayoutOp op, uint64_t budget) {
  KILN_ASSIGN(const Target *target, targetOf(op));
  KILN_ASSIGN(const layout::TileLayout from, layoutOf(op.getSource().getType()));
  KILN_ASSIGN(const layout::TileLayout to, layoutOf(op.getType()));
  return layout::planTileConversion(from, to, planBits(op.getType()), *target,
                                    planOptions(layoutAttrOf(op.getType()), budget));
}

} // namespace

LogicalResult expandConversion(ConvertLayoutOp op, uint64_t budget) {
  Result<layout::TileConversionPlan> plan = planOf(op, budget);
  if (!plan)
    return report(op, plan.status());
  if (plan->core.passes == 0)
    return success();
  if (plan->core.barrier == layout::Barrier::Cluster)
    return report(op, Status(StatusCode::Unsupported, "this conversion moves data between the blocks of a cluster",
                             "use layouts that keep each block's data in the block"));
  OpBuilder b(op);
  const Location loc = op.getLoc();
  const Type tile = op.getType();
  const Attribute source = layoutAttrOf(op.getSource().getType()), destination = layoutAttrOf(tile);
  auto scratchType = ScratchType::get(op.getContext(), static_cast<int64_t>(plan->scratchBytes));
  Value scratch = LocalAllocOp::create(b, loc, scratchType, IntegerAttr());
  Value result = ub::PoisonOp::create(b, loc, tile);
  ExchangeStoreOp store;
  for (unsigned pass = 0; pass < exchangePasses(*plan); ++pass) {
    store = ExchangeStoreOp::create(b, loc, op.getSource(), scratch, destination, pass);
    result = ExchangeLoadOp::create(b, loc, tile, scratch, result, source, pass);
  }
  // The ops hold layouts and bytes only: the plan that follows from those must be this one.
  Result<layout::TileConversionPlan> again = exchangePlan(store);
  if (!again || exchangePasses(*again) != exchangePasses(*plan))
    return report(op, again
                          ? Status(StatusCode::Internal, "the plan within its own scratch has another number of passes")
                          : again.status());
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

ConvertLayoutOp collapseConversion(LocalAllocOp scratch) {
  if (!isa<ScratchType>(scratch.getType()))
    return {};
  llvm::SmallVector<ExchangeStoreOp> stores;
  llvm::SmallVector<ExchangeLoadOp> loads;
  for (Operation *user : scratch->getUsers()) {
    if (user->getBlock() != scratch->getBlock())
      return {};
    if (auto store = dyn_cast<ExchangeStoreOp>(user))
      stores.push_back(store);
    else if (auto load = dyn_cast<ExchangeLoadOp>(user))
      loads.push_back(load);
    else
      return {};
  }
  // Of one pass, whoever needs the tile may read it on his own.
  const bool onePass = stores.size() == 1;
  if (loads.empty() || (!onePass && loads.size() != stores.size()))
    return {};
  auto byPass = [](auto a, auto b) { return a.getPass() < b.getPass(); };
  llvm::sort(stores, byPass);
  llvm::sort(loads, byPass);
  Value chain = loads.front().getPrevious();
  if (!chain.getDefiningOp<ub::PoisonOp>())
    return {};
  for (unsigned i = 0; i < loads.size(); ++i) {
    if (loads[i].getType() != loads[0].getType())
      return {};
    if (onePass) {
      if (stores[0].getPass() != 0 || loads[i].getPass() != 0 || loads[i].getPrevious() != chain ||
          loads[i]->isBeforeInBlock(stores[0]))
        return {};
      continue;
    }
    const bool last = i + 1 == loads.size();
    if (stores[i].getPass() != i || loads[i].getPass() != i || stores[i].getValue() != stores[0].getValue() ||
        loads[i].getPrevious() != chain || (!last && !loads[i].getResult().hasOneUse()))
      return {};
    chain = loads[i].getResult();
  }
  Result<layout::TileConversionPlan> plan = exchangePlan(stores.front());
  if (!plan || exchangePasses(*plan) != stores.size())
    return {};
  OpBuilder b(stores.front());
  auto convert = ConvertLayoutOp::create(b, stores.front().getLoc(), loads.back().getType(), stores.front().getValue());
  for (ExchangeLoadOp load : onePass ? llvm::ArrayRef(loads) : llvm::ArrayRef(loads).take_back())
    load.getResult().replaceAllUsesWith(convert.getResult());
  Operation *poison = loads.front().getPrevious().getDefiningOp();
  for (ExchangeLoadOp load : llvm::reverse(loads))
    load.erase();
  for (ExchangeStoreOp store : stores)
    store.erase();
  scratch.erase();
  if (poison->use_empty())
    poison->erase();
  return convert;
}

} // namespace kiln
