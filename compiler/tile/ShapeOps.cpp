// Verifiers, folders and canonicalisations of ShapeOps.td and of the operations without a file of their own.
#include "compiler/tile/Tile.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {
namespace {

RankedTensorType tileType(Value v) {
  return cast<RankedTensorType>(v.getType());
}

LogicalResult sameElements(Operation *op, RankedTensorType a, RankedTensorType b) {
  if (a.getElementType() != b.getElementType())
    return op->emitOpError() << "turns elements of " << a.getElementType() << " into " << b.getElementType()
                             << ": it changes shapes only";
  return success();
}

} // namespace

LogicalResult RangeOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  const int64_t start = static_cast<int32_t>(getStart()), end = static_cast<int32_t>(getEnd());
  if (type.getRank() != 1 || type.getDimSize(0) != end - start)
    return emitOpError() << "counts from " << start << " to " << end << ", which are " << end - start
                         << " numbers, but gives " << type.getShape() << " of them";
  return success();
}

LogicalResult SplatOp::verify() {
  if (tileType(getResult()).getElementType() != getSource().getType())
    return emitOpError() << "makes " << getType() << " out of " << getSource().getType();
  return success();
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (Attribute value = adaptor.getSource())
    if (isa<IntegerAttr, FloatAttr>(value))
      return DenseElementsAttr::get(cast<ShapedType>(getType()), value);
  return {};
}

LogicalResult ExpandDimsOp::verify() {
  const auto from = tileType(getSource()), to = tileType(getResult());
  const int64_t axis = static_cast<int32_t>(getAxis());
  if (failed(sameElements(*this, from, to)))
    return failure();
  if (axis < 0 || axis > from.getRank())
    return emitOpError() << "axis " << axis << " is not in 0 .. " << from.getRank();
  llvm::SmallVector<int64_t> shape(from.getShape());
  shape.insert(shape.begin() + axis, 1);
  if (ArrayRef<int64_t>(shape) != to.getShape())
    return emitOpError() << "of [" << from.getShape() << "] along axis " << axis << " is [" << shape << "], not ["
                         << to.getShape() << "]";
  return success();
}

LogicalResult BroadcastOp::verify() {
  const auto from = tileType(getSource()), to = tileType(getResult());
  if (failed(sameElements(*this, from, to)))
    return failure();
  if (from.getRank() != to.getRank())
    return emitOpError() << "from rank " << from.getRank() << " to rank " << to.getRank()
                         << ": add dimensions with tile.expand_dims first";
  for (int64_t d = 0; d < from.getRank(); ++d)
    if (from.getDimSize(d) != to.getDimSize(d) && from.getDimSize(d) != 1)
      return emitOpError() << "dimension " << d << " has extent " << from.getDimSize(d) << ", and only 1 can grow to "
                           << to.getDimSize(d);
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return SplatElementsAttr::get(cast<ShapedType>(getType()), splat.getSplatValue<Attribute>());
  return {};
}

LogicalResult TransposeOp::verify() {
  const auto from = tileType(getSource()), to = tileType(getResult());
  if (failed(sameElements(*this, from, to)))
    return failure();
  const ArrayRef<int64_t> perm = getPerm();
  llvm::SmallVector<bool> seen(from.getRank(), false);
  bool good = static_cast<int64_t>(perm.size()) == from.getRank() && to.getRank() == from.getRank();
  for (int64_t p : perm) {
    good = good && p >= 0 && p < from.getRank() && !seen[p];
    if (good)
      seen[p] = true;
  }
  if (!good)
    return emitOpError() << "[" << perm << "] is no permutation of the " << from.getRank() << " dimensions of " << from;
  for (int64_t i = 0; i < to.getRank(); ++i)
    if (to.getDimSize(i) != from.getDimSize(perm[i]))
      return emitOpError() << "dimension " << i << " of the result has extent " << to.getDimSize(i)
                           << ", but dimension " << perm[i] << " of the operand has " << from.getDimSize(perm[i]);
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, p] : llvm::enumerate(getPerm()))
    if (static_cast<int64_t>(i) != p)
      return {};
  return getSource().getType() == getType() ? OpFoldResult(getSource()) : OpFoldResult();
}

LogicalResult ReshapeOp::verify() {
  const auto from = tileType(getSource()), to = tileType(getResult());
  if (failed(sameElements(*this, from, to)))
    return failure();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "from " << from.getNumElements() << " elements to " << to.getNumElements();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return SplatElementsAttr::get(cast<ShapedType>(getType()), splat.getSplatValue<Attribute>());
  return {};
}

static LogicalResult verifyPair(Operation *op, RankedTensorType half, RankedTensorType whole) {
  llvm::SmallVector<int64_t> shape(half.getShape());
  shape.push_back(2);
  if (half.getElementType() != whole.getElementType() || ArrayRef<int64_t>(shape) != whole.getShape())
    return op->emitOpError() << "pairs " << half << " with " << whole
                             << ": the whole has one more, last dimension of 2";
  return success();
}

LogicalResult JoinOp::verify() {
  return verifyPair(*this, tileType(getLhs()), tileType(getResult()));
}
LogicalResult SplitOp::verify() {
  return verifyPair(*this, tileType(getLhs()), tileType(getSource()));
}

//===----------------------------------------------------------------------===//
// Canonicalisations.  Encodings decide what is legal: without one, all of these hold.
//===----------------------------------------------------------------------===//

namespace {

/// A change of shape of a splat is a splat.
template <typename Op> struct OfSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto splat = op.getSource().template getDefiningOp<SplatOp>();
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSource());
    return success();
  }
};

/// broadcast(broadcast(x)) and transpose(transpose(x)) are one.
struct BroadcastTwice : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<BroadcastOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

struct TransposeTwice : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    llvm::SmallVector<int64_t> perm;
    for (int64_t p : op.getPerm())
      perm.push_back(inner.getPerm()[p]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getSource(), perm);
    return success();
  }
};

struct SplitOfJoin : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp op, PatternRewriter &rewriter) const override {
    auto join = op.getSource().getDefiningOp<JoinOp>();
    if (!join || join.getLhs().getType() != op.getLhs().getType())
      return failure();
    rewriter.replaceOp(op, {join.getLhs(), join.getRhs()});
    return success();
  }
};

} // namespace

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<ExpandDimsOp>>(context);
}
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<BroadcastOp>, BroadcastTwice>(context);
}
void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<TransposeOp>, TransposeTwice>(context);
}
void SplitOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SplitOfJoin>(context);
}

} // namespace kiln::tile

#define GET_OP_CLASSES
#include "compiler/tile/TileOps.cpp.inc"
