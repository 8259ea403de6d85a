// Verifier, folder and canonicalisations of LayoutOps.td.
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile_gpu {

LogicalResult ConvertLayoutOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError() << "turns " << from << " into " << to << ": it changes layouts only";
  if (!layoutAttrOf(from) && !layoutAttrOf(to))
    return emitOpError() << "needs a layout: " << from << " to " << to;
  return success();
}

LogicalResult PartOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getType());
  const auto dim = static_cast<int64_t>(getDim()), count = static_cast<int64_t>(getCount()),
             index = static_cast<int64_t>(getIndex());
  if (dim < 0 || dim >= from.getRank())
    return emitOpError() << "along dimension " << dim << " of " << from;
  if (index < 0 || index >= count)
    return emitOpError() << "has no part " << index << " of " << count;
  if (to == partOf(from, dim, count))
    return success();
  return emitOpError() << "of " << from << " cannot be " << to << ": a thread's registers of one of " << count
                       << " equal parts, in the same layout";
}

RankedTensorType partOf(RankedTensorType tile, int64_t dim, int64_t count) {
  const int64_t extent = tile.getDimSize(static_cast<unsigned>(dim));
  if (count < 1 || extent % count || !layoutAttrOf(tile))
    return {};
  llvm::SmallVector<int64_t> shape(tile.getShape());
  shape[static_cast<size_t>(dim)] = extent / count;
  const auto out = RankedTensorType::get(shape, tile.getElementType(), tile.getEncoding());
  const Result<layout::TileLayout> whole = layoutOf(tile), part = layoutOf(out);
  if (!whole || !part || whole->repetitions() != 1 || part->repetitions() != 1 ||
      whole->registers() != part->registers() * count)
    return {};
  // What lanes and warps hold is the same in both.
  for (layout::InDim in : {layout::InDim::Lane, layout::InDim::Warp})
    for (unsigned i = 0; i < whole->core().bits(in); ++i) {
      const unsigned lane = in == layout::InDim::Lane ? 1u << i : 0, warp = in == layout::InDim::Warp ? 1u << i : 0;
      if (whole->coords(0, lane, warp, 0) != part->coords(0, lane, warp, 0))
        return {};
    }
  return out;
}

/// At stage tile: the layout says how what has none is to lie, and goes with the operation.
static bool isAnchor(ConvertLayoutOp op) {
  return !layoutAttrOf(op.getSource().getType()) || !layoutAttrOf(op.getType());
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (isAnchor(*this))
    return {};
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return SplatElementsAttr::get(cast<ShapedType>(getType()), splat.getSplatValue<Attribute>());
  return {};
}

namespace {

/// Two conversions in a row are one.
struct ConvertTwice : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<ConvertLayoutOp>();
    if (!inner || !layoutAttrOf(inner.getSource().getType()) || !layoutAttrOf(op.getType()))
      return failure();
    rewriter.replaceOpWithNewOp<ConvertLayoutOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

/// A splat and a range are as cheap in any layout.
struct OfGenerator : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    if (isAnchor(op))
      return failure();
    if (auto splat = op.getSource().getDefiningOp<tile::SplatOp>()) {
      rewriter.replaceOpWithNewOp<tile::SplatOp>(op, op.getType(), splat.getSource());
      return success();
    }
    if (auto range = op.getSource().getDefiningOp<tile::RangeOp>()) {
      rewriter.replaceOpWithNewOp<tile::RangeOp>(op, op.getType(), range.getStart(), range.getEnd());
      return success();
    }
    return failure();
  }
};

} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConvertTwice, OfGenerator>(context);
}

} // namespace kiln::tile_gpu

#define GET_OP_CLASSES
#include "compiler/tile_gpu/TileGpuOps.cpp.inc"
