// Bounds-checked windows on memory (TileWindow.h says what a view is here).
#include "compiler/lowering/GlobalAccess.h"
#include "compiler/lowering/TileWindow.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::TileLayout;

struct LowerMakeView : Lowering<tile::MakeViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::MakeViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const int64_t unit = op.getType().getUnit();
    Scalars out = {adaptor.getPointer().front()};
    const Value zero = e.i64(0);
    out.append(op.getExtents().size(), zero);
    for (ValueRange extent : adaptor.getExtents())
      out.push_back(atLeast(e, e.to64(extent.front()), zero));
    for (auto [d, stride] : llvm::enumerate(adaptor.getStrides()))
      out.push_back(static_cast<int64_t>(d) == unit ? e.i64(1) : e.to64(stride.front()));
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerNarrowView : Lowering<tile::NarrowViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::NarrowViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const ViewScalars view(adaptor.getView());
    const unsigned d = op.getDim();
    const Value zero = e.i64(0), start = e.to64(adaptor.getStart().front());
    Scalars out(adaptor.getView());
    const size_t rank = view.strides.size();
    const Type stored = memoryType(op.getType().getElementType());
    out[0] = e.gep(view.base, stored, e.mul(start, view.strides[d]));
    out[1 + d] = atLeast(e, e.sub(view.first[d], start), zero);
    out[1 + rank + d] = atLeast(e, atMost(e, e.to64(adaptor.getSize().front()), e.sub(view.end[d], start)), zero);
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerSliceView : Lowering<tile::SliceViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::SliceViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const ViewScalars view(adaptor.getView());
    Value at;
    for (auto [d, coord] : llvm::zip_equal(op.getDims(), adaptor.getCoords())) {
      const Value step = e.mul(e.to64(coord.front()), view.strides[static_cast<size_t>(d)]);
      at = at ? e.add(at, step) : step;
    }
    Scalars out = {e.gep(view.base, memoryType(op.getType().getElementType()), at)};
    for (ValueRange list : {view.first, view.end, view.strides})
      for (auto [d, value] : llvm::enumerate(list))
        if (!llvm::is_contained(op.getDims(), static_cast<int32_t>(d)))
          out.push_back(value);
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerLoadView : Lowering<tile::LoadViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::LoadViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const TileLayout &layout = context.layout(op.getType());
    const Type element = tile::elementTypeOf(op.getType());
    TileWindow window(context, e, layout, op.getView().getType(), adaptor.getView(), adaptor.getCoords());
    const llvm::SmallVector<unsigned> stands = representatives(layout);

    auto loadAll = [&](const Emit &at, analysis::VectorAccess access, bool checked) {
      Scalars out(layout.registers());
      for (const AccessGroup &group : groupRegisters(layout, access.dim, access.elements)) {
        // Addresses outside the branch: they are cheap and shared.
        const Value address = window.address(at, group.front());
        const Scalars values = emitLoad(at, checked ? window.inside(at, group.front()) : Value(), {}, address, element,
                                        group.size(), op.getCache());
        for (auto [r, v] : llvm::zip_equal(group, values))
          out[r] = v;
      }
      for (auto [r, from] : llvm::enumerate(stands))
        out[r] = out[from];
      window.leaveBranch();
      return out;
    };

    const analysis::VectorAccess masked = context.access(op), unmasked = context.unmaskedAccess(op);
    if (unmasked.elements <= masked.elements) {
      replace(rewriter, op, loadAll(e, masked, true));
      return success();
    }
    const llvm::SmallVector<Type> types(layout.registers(), scalarType(element));
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), types, window.whole(e), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(rewriter, op.getLoc(), loadAll(e, unmasked, false));
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, op.getLoc(), loadAll(e, masked, true));
    }
    replace(rewriter, op, Scalars(branch.getResults()));
    return success();
  }
};

struct LowerStoreView : Lowering<tile::StoreViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::StoreViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const TileLayout &layout = context.layout(op.getValue().getType());
    TileWindow window(context, e, layout, op.getView().getType(), adaptor.getView(), adaptor.getCoords());
    const Value owner = context.owns(layout.core());

    auto storeAll = [&](const Emit &at, analysis::VectorAccess access, bool checked) {
      for (const AccessGroup &group : groupRegisters(layout, access.dim, access.elements)) {
        const Value address = window.address(at, group.front());
        Scalars values;
        for (unsigned r : group)
          values.push_back(adaptor.getValue()[r]);
        emitStore(at, at.both(owner, checked ? window.inside(at, group.front()) : Value()), address, values,
                  op.getCache());
      }
      window.leaveBranch();
    };

    const analysis::VectorAccess masked = context.access(op), unmasked = context.unmaskedAccess(op);
    if (unmasked.elements <= masked.elements) {
      storeAll(e, masked, true);
    } else {
      auto branch = scf::IfOp::create(rewriter, op.getLoc(), window.whole(e), /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      storeAll(e, unmasked, false);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      storeAll(e, masked, true);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateViewPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                          const LoweringContext &context) {
  patterns.add<LowerMakeView, LowerNarrowView, LowerSliceView, LowerLoadView, LowerStoreView>(converter, context);
}

} // namespace kiln::lowering
