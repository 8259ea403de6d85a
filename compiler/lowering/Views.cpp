// Bounds-checked windows on memory.
//
// A view is these scalars: the base; the first valid coordinate of each dimension; one past the last one; the strides.
// All but the base are i64.  Valid coordinates are never negative, whatever numbers a kernel gives, so that the
// differences below cannot wrap into the valid range.
//
// A tile's access compares, in 32 bits, the coordinate inside the tile with the part of the tile that is valid.  If the
// facts allow wider accesses wholly inside than at the edges (an access must lie inside or outside as a whole), a
// uniform branch tells the two apart.
#include "compiler/lowering/GlobalAccess.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::TileLayout;

struct ViewScalars {
  Value base;
  ValueRange first, end, strides;
  explicit ViewScalars(ValueRange all) : base(all.front()) {
    const size_t rank = (all.size() - 1) / 3;
    first = all.slice(1, rank);
    end = all.slice(1 + rank, rank);
    strides = all.slice(1 + 2 * rank, rank);
  }
};

Value atLeast(const Emit &e, Value x, Value bound) {
  return arith::MaxSIOp::create(e.b, e.loc, x, bound);
}
Value atMost(const Emit &e, Value x, Value bound) {
  return arith::MinSIOp::create(e.b, e.loc, x, bound);
}

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

/// One tile of a view: where its registers lie, and which of them are inside.
class TileWindow {
public:
  TileWindow(const LoweringContext &context, const Emit &e, const TileLayout &layout, tile::ViewType type,
             ValueRange scalars, ArrayRef<ValueRange> coords)
      : context(context), layout(layout), view(scalars), stored(memoryType(type.getElementType())),
        unit(type.getUnit()) {
    Value at;
    for (unsigned d = 0; d < layout.dims(); ++d) {
      const Value c = e.to64(coords[d].front());
      const Value step = isUnit(d) ? c : e.mul(c, view.strides[d]);
      at = at ? e.add(at, step) : step;
      const Value zero = e.i64(0), extent = e.i64(layout.shape(d));
      auto inTile = [&](Value bound) {
        Value v = atMost(e, atLeast(e, e.sub(bound, c), zero), extent);
        return arith::TruncIOp::create(e.b, e.loc, e.i(32), v).getResult();
      };
      first.push_back(inTile(view.first[d]));
      end.push_back(inTile(view.end[d]));
      length.push_back(atLeast(e, e.sub(end.back(), first.back()), e.i32(0)));
    }
    // The thread's own part of the address.
    Value own;
    for (unsigned d = 0; d < layout.dims(); ++d)
      if (Value t = context.threadCoordinate(layout, d)) {
        const Value step = offset(e, d, e.widen(t));
        own = own ? e.add(own, step) : step;
      }
    origin = e.gep(view.base, stored, at);
    threadOrigin = e.gep(origin, stored, own);
  }

  /// Every element of the tile is valid.
  Value whole(const Emit &e) const {
    Value all;
    for (unsigned d = 0; d < layout.dims(); ++d)
      all = e.both(all, e.compare(arith::CmpIPredicate::eq, length[d], e.i32(layout.shape(d))));
    return all;
  }

  /// The element of a register is valid.
  Value inside(const Emit &e, unsigned reg) {
    Value all;
    for (unsigned d = 0; d < layout.dims(); ++d) {
      Value &known = insides[{d, LoweringContext::registerCoordinate(layout, d, reg)}];
      if (!known) {
        const Value t = context.coordinate(e.b, e.loc, layout, d, reg);
        known = e.compare(arith::CmpIPredicate::ult, e.sub(t, first[d]), length[d]);
      }
      all = e.both(all, known);
    }
    return all;
  }

  Value address(const Emit &e, unsigned reg) {
    bool exclusive = false;
    for (unsigned d = 0; d < layout.dims(); ++d)
      exclusive |= LoweringContext::registerCoordinate(layout, d, reg).exclusive != 0;
    if (exclusive) {
      Value at;
      for (unsigned d = 0; d < layout.dims(); ++d) {
        const Value step = offset(e, d, e.widen(context.coordinate(e.b, e.loc, layout, d, reg)));
        at = at ? e.add(at, step) : step;
      }
      return e.gep(origin, stored, at);
    }
    // Rows share a pointer; along the dimension of stride 1 the rest is an immediate.
    std::vector<unsigned> row;
    Value at;
    int64_t along = 0;
    for (unsigned d = 0; d < layout.dims(); ++d) {
      const unsigned added = LoweringContext::registerCoordinate(layout, d, reg).added;
      if (isUnit(d)) {
        along = added;
        continue;
      }
      row.push_back(added);
    }
    Value &pointer = rows[row];
    if (!pointer) {
      for (unsigned d = 0, i = 0; d < layout.dims(); ++d) {
        if (isUnit(d))
          continue;
        if (const unsigned added = row[i++]) {
          const Value step = e.mul(view.strides[d], e.i64(added));
          at = at ? e.add(at, step) : step;
        }
      }
      pointer = e.gep(threadOrigin, stored, at);
    }
    return e.gep(pointer, stored, along);
  }

  /// Forgets values made inside a branch.
  void leaveBranch() {
    insides.clear();
    rows.clear();
  }

private:
  bool isUnit(unsigned d) const { return static_cast<int64_t>(d) == unit; }
  Value offset(const Emit &e, unsigned d, Value coordinate) const {
    return isUnit(d) ? coordinate : e.mul(coordinate, view.strides[d]);
  }

  const LoweringContext &context;
  const TileLayout &layout;
  const ViewScalars view;
  const Type stored;
  const int64_t unit;
  Value origin, threadOrigin;
  Scalars first, end, length;
  std::map<std::pair<unsigned, LoweringContext::RegisterPart>, Value> insides;
  std::map<std::vector<unsigned>, Value> rows;
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
  patterns.add<LowerMakeView, LowerNarrowView, LowerLoadView, LowerStoreView>(converter, context);
}

} // namespace kiln::lowering
