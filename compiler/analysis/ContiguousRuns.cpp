#include "compiler/analysis/ContiguousRuns.h"

#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>
#include <bit>

using namespace mlir;

namespace kiln::analysis {

namespace {

/// Numbers or pointers that are contiguous along `dim` if nothing wraps: nothing does, in runs of so many.
bool wrapsNowhere(const AxisAnalysis &analysis, Value tile, unsigned dim, std::uint32_t run) {
  const std::optional<layout::AxisInfo> facts = analysis.facts(tile);
  if (!facts || dim >= facts->dims())
    return false;
  if (facts->constancy(dim) >= run || std::min(facts->contiguity(dim), facts->divisibility(dim)) >= run)
    return true;
  Operation *def = tile.getDefiningOp();
  if (auto expand = dyn_cast_or_null<tile::ExpandDimsOp>(def)) {
    const auto added = static_cast<unsigned>(expand.getAxis());
    return added != dim && wrapsNowhere(analysis, expand.getSource(), dim - (added < dim), run);
  }
  const Type element = tile::elementTypeOf(tile.getType());
  const bool wide = isa<tile::PtrType>(element) || element.isInteger(64);
  const bool adds = isa_and_nonnull<tile::AddPtrOp, arith::AddIOp>(def) && wide;
  if (!adds && !isa_and_nonnull<tile::BroadcastOp, tile_gpu::ConvertLayoutOp>(def))
    return false;
  return llvm::all_of(def->getOperands(), [&](Value operand) { return wrapsNowhere(analysis, operand, dim, run); });
}

} // namespace

std::uint32_t contiguousRun(const AxisAnalysis &analysis, Value pointers, Value mask, unsigned dim, std::uint32_t most,
                            unsigned alignment) {
  const std::optional<layout::AxisInfo> address = analysis.facts(pointers);
  if (!address || dim >= address->dims())
    return 1;
  most = std::min(most, address->contiguity(dim));
  if (mask) {
    const std::optional<layout::AxisInfo> together = analysis.facts(mask);
    most = std::min(most, together ? together->constancy(dim) : 1);
  }
  const unsigned bytes =
      tile::storageBits(cast<tile::PtrType>(tile::elementTypeOf(pointers.getType())).getPointee()) / 8;
  for (std::uint32_t run = std::bit_floor(std::max(1u, most)); run > 1; run /= 2)
    if (std::min(address->divisibility(dim), run) * std::uint64_t(bytes) >= alignment &&
        wrapsNowhere(analysis, pointers, dim, run))
      return run;
  return 1;
}

} // namespace kiln::analysis
