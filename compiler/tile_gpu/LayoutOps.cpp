// Verifier, folder and canonicalisations of LayoutOps.td.
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

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
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
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<ConvertLayoutOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

/// A splat and a range are as cheap in any layout.
struct OfGenerator : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
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
