// Atomic operations after those of other programs: a wait, the operation, one more in the counter.
#include "compiler/passes/shared/SharedExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace kiln {

LogicalResult expandOrder(tile::AtomicRmwOp op) {
  const Value counter = op.getCounter(), before = op.getBefore();
  if (!counter)
    return success();
  OpBuilder b(op);
  tile_gpu::AwaitOp::create(b, op.getLoc(), before, counter, op.getPointer());
  b.setInsertionPointAfter(op);
  const Value none = arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(0));
  const Value counts = arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::sge, before, none);
  tile_gpu::CountOp::create(b, op.getLoc(), counter, counts, Value(), Value(), op.getPointer());
  op.getCounterMutable().clear();
  op.getBeforeMutable().clear();
  return success();
}

} // namespace kiln
