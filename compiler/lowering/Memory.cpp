// Global memory through pointers.
#include "compiler/lowering/GlobalAccess.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

/// Registers of a tile in accesses; a scalar is one access of one register.
llvm::SmallVector<AccessGroup> groupsOf(const LoweringContext &context, Operation *op, Type pointers) {
  if (!isa<RankedTensorType>(pointers))
    return {{0}};
  const analysis::VectorAccess access = context.access(op);
  return groupRegisters(context.layout(pointers), access.dim, access.elements);
}

struct LowerLoad : Lowering<tile::LoadOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::LoadOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Type pointers = op.getPointer().getType(), element = tile::elementTypeOf(op.getType());
    Scalars out(adaptor.getPointer().size());
    for (const AccessGroup &group : groupsOf(context, op, pointers)) {
      const unsigned first = group.front();
      Scalars other;
      if (op.getOther())
        for (unsigned r : group)
          other.push_back(adaptor.getOther()[r]);
      // A masked element without another value is zero.
      const Scalars values = emitLoad(e, op.getMask() ? adaptor.getMask()[first] : Value(), other,
                                      adaptor.getPointer()[first], element, group.size(), op.getCache());
      for (auto [r, v] : llvm::zip_equal(group, values))
        out[r] = v;
    }
    if (isa<RankedTensorType>(pointers))
      for (auto [r, from] : llvm::enumerate(representatives(context.layout(pointers))))
        out[r] = out[from];
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerStore : Lowering<tile::StoreOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::StoreOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Type pointers = op.getPointer().getType();
    // Copies of an element are written by its owner alone; a scalar by one thread.
    const Value owner =
        isa<RankedTensorType>(pointers) ? context.owns(context.layout(pointers).core()) : context.firstThread();
    for (const AccessGroup &group : groupsOf(context, op, pointers)) {
      const unsigned first = group.front();
      Scalars values;
      for (unsigned r : group)
        values.push_back(adaptor.getValue()[r]);
      const Value condition = e.both(owner, op.getMask() ? adaptor.getMask()[first] : Value());
      emitStore(e, condition, adaptor.getPointer()[first], values, op.getCache());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateMemoryPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                            const LoweringContext &context) {
  patterns.add<LowerLoad, LowerStore>(converter, context);
}

} // namespace kiln::lowering
