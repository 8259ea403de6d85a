#include "compiler/layout/StagingBuffer.h"

#include "compiler/layout/Checks.h"
#include "compiler/layout/LocalAccess.h"
#include "support/Text.h"

#include <bit>
#include <optional>

namespace kiln::layout {

std::uint32_t contiguousRun(const SharedTile &buffer, unsigned dim) {
  if (std::holds_alternative<Padded>(buffer.encoding().kind))
    return 1;
  const LinearLayout &core = buffer.core();
  unsigned log = 0;
  for (; log < core.log2Shape(dim); ++log)
    if (coordsOf(buffer.inverse(), core.unit(dim, log)) != BitVector(1) << log)
      break;
  // Nothing else may reach into a run.
  for (unsigned d = 0; d < core.dims(); ++d)
    for (unsigned bit = 0; bit < core.log2Shape(d); ++bit)
      if (d != dim || bit >= log)
        if (const BitVector at = coordsOf(buffer.inverse(), core.unit(d, bit)))
          log = std::min(log, static_cast<unsigned>(std::countr_zero(at)));
  return 1u << log;
}

Result<Blocked> copyEncoding(std::span<const std::int64_t> shape, unsigned dim, std::uint32_t run, unsigned warps) {
  KILN_ASSIGN(const TileShape tile, splitExtents(shape));
  if (dim >= shape.size() || tile.core[dim] % run)
    return Status::invalid(format("a tile with %u elements in dimension %u has no runs of %u",
                                  dim < shape.size() ? tile.core[dim] : 0, dim, run),
                           "use a shorter run");
  Blocked out;
  out.order.push_back(dim);
  for (std::size_t d = shape.size(); d-- > 0;)
    if (d != dim)
      out.order.push_back(static_cast<std::int64_t>(d));
  out.sizePerThread.assign(shape.size(), 1);
  out.sizePerThread[dim] = run;
  out.threadsPerWarp.assign(shape.size(), 1);
  out.warpsPerCTA.assign(shape.size(), 1);
  std::int64_t lanes = warpSize, left = warps;
  for (const std::int64_t d : out.order) {
    const std::int64_t runs = tile.core[d] / out.sizePerThread[d];
    out.threadsPerWarp[d] = std::min(lanes, runs);
    lanes /= out.threadsPerWarp[d];
    out.warpsPerCTA[d] = std::min(left, runs / out.threadsPerWarp[d]);
    left /= out.warpsPerCTA[d];
  }
  out.threadsPerWarp[out.order.back()] *= lanes;
  out.warpsPerCTA[out.order.back()] *= left;
  return out;
}

Result<Swizzled> stagingEncoding(std::span<const std::int64_t> shape, unsigned dim, std::uint32_t run, unsigned bits,
                                 std::span<const TileLayout> readers, const Target &target) {
  constexpr std::int64_t bankRow = 128; // bytes of all banks
  const std::int64_t bytes = storageBytes(bits), extent = shape[dim], row = extent & -extent;
  Swizzled how;
  how.order.push_back(dim);
  for (std::size_t d = shape.size(); d-- > 0;)
    if (d != dim)
      how.order.push_back(static_cast<std::int64_t>(d));
  how.perPhase = std::max<std::int64_t>(1, bankRow / (row * bytes));

  std::optional<Swizzled> best;
  double least = 0;
  Status failure;
  for (std::int64_t vec = std::min<std::int64_t>(run, row); vec <= row && vec * bytes <= bankRow; vec *= 2) {
    how.vec = vec;
    how.maxPhase = std::max<std::int64_t>(1, std::min(bankRow / bytes, row) / vec);
    Result<SharedTile> buffer = SharedTile::create(how, shape, bits);
    if (!buffer) {
      failure = buffer.takeStatus();
      continue;
    }
    double cost = 0;
    for (const TileLayout &reader : readers) {
      KILN_ASSIGN(const LocalAccessPlan plan, planLocalAccess(reader.core(), buffer->core(), bits, target, false));
      cost += plan.cost;
    }
    if (!best || cost < least) {
      best = how;
      least = cost;
    }
  }
  if (best)
    return *best;
  return failure;
}

} // namespace kiln::layout
