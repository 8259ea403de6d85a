#include "compiler/tile_gpu/Exchange.h"

#include "support/Text.h"

#include <algorithm>

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

Result<layout::TileConversionPlan> planOf(Operation *op, RankedTensorType tile, Attribute source, Attribute destination,
                                          int64_t bytes, uint32_t pass) {
  KILN_ASSIGN(const Target *target, targetOf(op));
  KILN_ASSIGN(const layout::TileLayout from, layoutOf(withLayout(tile, cast<LayoutAttr>(source))));
  KILN_ASSIGN(const layout::TileLayout to, layoutOf(withLayout(tile, cast<LayoutAttr>(destination))));
  KILN_ASSIGN(layout::TileConversionPlan plan,
              layout::planTileConversion(from, to, planBits(tile), *target,
                                         planOptions(cast<LayoutAttr>(destination), static_cast<uint64_t>(bytes))));
  if (plan.core.passes == 0)
    return Status(StatusCode::CompileError, "this conversion needs no shared memory", "use tile_gpu.convert_layout");
  if (plan.core.barrier == layout::Barrier::Cluster)
    return Status(StatusCode::Unsupported, "this conversion moves data between the blocks of a cluster",
                  "use layouts that keep each block's data in the block");
  if (plan.scratchBytes != static_cast<uint64_t>(bytes))
    return Status(StatusCode::CompileError,
                  format("the plan for %lld bytes of scratch uses %llu", static_cast<long long>(bytes),
                         static_cast<unsigned long long>(plan.scratchBytes)),
                  format("use !tile_gpu.scratch<%llu>", static_cast<unsigned long long>(plan.scratchBytes)));
  if (pass >= exchangePasses(plan))
    return Status(StatusCode::CompileError, format("pass %u of a plan of %u passes", pass, exchangePasses(plan)),
                  "passes count from 0");
  return plan;
}

} // namespace

Result<layout::TileConversionPlan> exchangePlan(Operation *op, const tile::MemoryAccess &access) {
  return planOf(op, access.tile, access.exchange->source, access.exchange->destination,
                cast<ScratchType>(access.memory.getType()).getBytes(), access.exchange->pass);
}

Result<layout::TileConversionPlan> exchangePlan(Operation *op) {
  return exchangePlan(op, tile::accessesOf(op).front());
}

ExchangePass exchangePass(const layout::TileConversionPlan &plan, unsigned pass) {
  const unsigned round = pass / plan.core.passes, first = round * plan.core.perRound;
  return {pass % plan.core.passes, first, std::min(plan.core.perRound, plan.core.repetitions - first)};
}

} // namespace kiln::tile_gpu
