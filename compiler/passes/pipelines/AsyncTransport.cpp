#include "compiler/passes/pipelines/AsyncTransport.h"

#include "compiler/layout/StagingBuffer.h"

using namespace mlir;

namespace kiln {

using tile_gpu::LayoutAttr;

namespace {

constexpr unsigned leastBits = 32;

/// What one copy may move, and who copies what: as given, or in a layout of wider runs.
using Copy = std::pair<analysis::VectorAccess, LayoutAttr>;
Copy widestCopy(Operation *load, const analysis::AccessFacts &facts, Copy best) {
  const auto tile = cast<RankedTensorType>(load->getResult(0).getType());
  const unsigned warps = tile_gpu::warpsOf(load).count;
  const std::uint32_t most = 16 / std::max(1u, tile::storageBits(tile.getElementType()) / 8);
  const llvm::ArrayRef<int64_t> shape = tile.getShape();
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    for (std::uint32_t run = most; run > best.first.elements; run /= 2) {
      const Result<layout::Blocked> how = layout::copyEncoding(std::span(shape.data(), shape.size()), dim, run, warps);
      const LayoutAttr by = how ? LayoutAttr::get(load->getContext(), *how) : LayoutAttr();
      const Result<layout::TileLayout> lies = by ? tile_gpu::layoutOf(tile_gpu::withLayout(tile, by)) : how.status();
      if (!lies)
        continue;
      if (const analysis::VectorAccess found = analysis::unmaskedAccess(load, facts, *lies);
          found.dim == dim && found.elements == run)
        best = {found, by};
    }
  return best;
}

} // namespace

bool hasAsyncCopies(const Target &target) {
  return target.has(Capability::CpAsync);
}

bool mayCopyAsync(Operation *load, const analysis::AxisAnalysis &facts) {
  const std::optional<analysis::AccessFacts> access = facts.access(load);
  if (!access)
    return false;
  const analysis::VectorAccess run = widestCopy(load, *access, {}).first;
  return run.elements * tile::storageBits(tile::elementTypeOf(load->getResult(0).getType())) >= leastBits;
}

Result<AsyncCopy> asyncCopyOf(Operation *load, const analysis::AxisAnalysis &facts, bool widest) {
  const std::optional<analysis::AccessFacts> access = facts.access(load);
  const Result<layout::TileLayout> layout = tile_gpu::layoutOf(analysis::accessedTile(load));
  if (!access || !layout)
    return Status::invalid("nothing is known of its addresses");
  AsyncCopy copy{analysis::unmaskedAccess(load, *access, *layout),
                 tile_gpu::layoutAttrOf(load->getResult(0).getType())};
  const unsigned bits = tile::storageBits(tile::elementTypeOf(load->getResult(0).getType()));
  if (widest || copy.run.elements * bits < leastBits)
    std::tie(copy.run, copy.by) = widestCopy(load, *access, {copy.run, copy.by});
  if (copy.run.elements * bits < leastBits)
    return Status::invalid("only " + std::to_string(copy.run.elements * bits / 8) +
                           " bytes of it are known to lie together and aligned; an asynchronous copy moves 4, 8 or 16");
  if (auto view = dyn_cast<tile::LoadViewOp>(load);
      view && copy.run.elements > 1 && !analysis::beginsAtZero(view.getView()))
    return Status::invalid("its view may begin inside a run of elements");
  return copy;
}

} // namespace kiln
