// Where a program is in the grid.
#include "compiler/lowering/Emit.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

template <typename Op, typename X, typename Y, typename Z> struct LowerGrid : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Lowering<Op>::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Type i32 = rewriter.getI32Type();
    Value v;
    switch (op.getAxis()) {
    case tile::Axis::X:
      v = X::create(rewriter, op.getLoc(), i32);
      break;
    case tile::Axis::Y:
      v = Y::create(rewriter, op.getLoc(), i32);
      break;
    case tile::Axis::Z:
      v = Z::create(rewriter, op.getLoc(), i32);
      break;
    }
    rewriter.replaceOp(op, v);
    return success();
  }
};

} // namespace

void populateProgramPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                             const LoweringContext &context) {
  patterns.add<LowerGrid<tile::ProgramIdOp, NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>,
               LowerGrid<tile::NumProgramsOp, NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp>>(converter,
                                                                                                     context);
}

} // namespace kiln::lowering
