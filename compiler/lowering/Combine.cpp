#include "compiler/lowering/Combine.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace kiln::lowering {

Column Combiner::operator()(const Column &left, const Column &right) const {
  IRMapping map;
  const unsigned n = static_cast<unsigned>(left.size());
  for (unsigned i = 0; i < n; ++i) {
    map.map(body.getArgument(i), left[i]);
    map.map(body.getArgument(n + i), right[i]);
  }
  for (Operation &op : body.without_terminator())
    emit.b.clone(op, map);
  Column out;
  for (Value v : body.getTerminator()->getOperands())
    out.push_back(map.lookupOrDefault(v));
  return out;
}

Column Combiner::select(Value condition, const Column &yes, const Column &no) const {
  Column out;
  for (auto [y, n] : llvm::zip_equal(yes, no))
    out.push_back(emit.select(condition, y, n));
  return out;
}

Column Combiner::shuffle(NVVM::ShflKind kind, const Column &values, Value offset) const {
  Column out;
  for (Value v : values)
    out.push_back(emit.shuffle(kind, v, offset));
  return out;
}

RegisterFile filesOf(ArrayRef<ValueRange> operands) {
  RegisterFile out(operands.empty() ? 0 : operands.front().size());
  for (ValueRange list : operands)
    for (auto [i, v] : llvm::enumerate(list))
      out[i].push_back(v);
  return out;
}

llvm::SmallVector<Scalars> listsOf(const RegisterFile &file, unsigned operands) {
  llvm::SmallVector<Scalars> out(operands);
  for (const Column &column : file)
    for (unsigned i = 0; i < operands; ++i)
      out[i].push_back(column[i]);
  return out;
}

LogicalResult expectLayout(Operation *op, const layout::TileLayout &is, const layout::LinearLayout &core,
                           unsigned count) {
  const layout::Coords &counts = is.tile().counts;
  if (is.core() == core && (count == 0 || counts.back() == count))
    return success();
  return tile_gpu::report(op,
                          Status(StatusCode::CompileError,
                                 "the layout " + is.text() + " is not the one that the operand's gives: " + core.text(),
                                 "run expand-shared, or convert"));
}

} // namespace kiln::lowering
