// Verifiers and assembly of ReduceOps.td.
#include "compiler/tile_gpu/SharedAccesses.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

/// (%a, %b) {attributes} : types to types { region }
ParseResult parseCombine(OpAsmParser &parser, OperationState &result) {
  llvm::SmallVector<OpAsmParser::UnresolvedOperand> sources;
  llvm::SmallVector<Type> from, to;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(sources, OpAsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonTypeList(from) ||
      parser.resolveOperands(sources, from, loc, result.operands) || parser.parseKeyword("to") ||
      parser.parseTypeList(to))
    return failure();
  result.addTypes(to);
  return parser.parseRegion(*result.addRegion(), /*arguments=*/{});
}

void printCombine(OpAsmPrinter &printer, Operation *op) {
  printer << '(' << op->getOperands() << ')';
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : ";
  llvm::interleaveComma(op->getOperandTypes(), printer);
  printer << " to ";
  llvm::interleaveComma(op->getResultTypes(), printer);
  printer << ' ';
  printer.printRegion(op->getRegion(0));
}

/// The shape without the axis, and the last dimension of `like` after it.
llvm::SmallVector<int64_t> partialShape(RankedTensorType whole, int64_t axis, int64_t numbers) {
  llvm::SmallVector<int64_t> shape(whole.getShape());
  shape.erase(shape.begin() + axis);
  shape.push_back(numbers);
  return shape;
}

/// The region combines two scalars of each of these types.
LogicalResult verifyRegion(Operation *op, llvm::ArrayRef<Type> scalars) {
  llvm::SmallVector<Type> arguments(scalars);
  arguments.append(scalars.begin(), scalars.end());
  Block &block = op->getRegion(0).front();
  if (llvm::SmallVector<Type>(block.getArgumentTypes()) != arguments)
    return op->emitOpError() << "its region takes (" << block.getArgumentTypes() << "), expected two of (" << scalars
                             << ")";
  // Regions are verified after their operation: the terminator may be anything yet.
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << "its region does not end with " << YieldOp::getOperationName();
  if (llvm::SmallVector<Type>(yield.getOperandTypes()) != scalars)
    return op->emitOpError() << "its region yields (" << yield.getOperandTypes() << "), expected (" << scalars << ")";
  for (Operation &inner : block.without_terminator())
    if (!isMemoryEffectFree(&inner))
      return op->emitOpError() << "its region has a side effect: " << inner.getName();
  return success();
}

/// Axis, layouts, region: `whole` are the tiles with the axis, `parts` the partial results, one for each.
LogicalResult verifyCombine(Operation *op, int64_t axis, TypeRange whole, TypeRange parts) {
  if (whole.empty() || whole.size() != parts.size())
    return op->emitOpError() << "has " << whole.size() << " tiles and " << parts.size()
                             << " tiles of partial results: one for each";
  auto first = cast<RankedTensorType>(whole.front()), firstPart = cast<RankedTensorType>(parts.front());
  if (axis < 0 || axis >= first.getRank())
    return op->emitOpError() << "axis " << axis << " is not in 0 .. " << first.getRank() - 1;
  if (!layoutAttrOf(first) || !layoutAttrOf(firstPart))
    return op->emitOpError() << "needs layouts on " << first << " and " << firstPart;
  if (firstPart.getRank() != first.getRank() ||
      firstPart.getShape() != ArrayRef<int64_t>(partialShape(first, axis, firstPart.getShape().back())))
    return op->emitOpError() << firstPart << " cannot hold partial results of " << first << " along axis " << axis;
  llvm::SmallVector<Type> scalars;
  for (auto [tile, part] : llvm::zip_equal(whole, parts)) {
    const Type element = tile::elementTypeOf(tile);
    if (tile != tile::withElementType(first, element) || part != tile::withElementType(firstPart, element))
      return op->emitOpError() << "combines " << tile << " and " << part << " with " << first << " and " << firstPart
                               << ": shapes and layouts must be equal";
    scalars.push_back(element);
  }
  return verifyRegion(op, scalars);
}

/// The first and second half of a list of two equal parts.
TypeRange half(TypeRange types, bool second) {
  const size_t n = types.size() / 2;
  return second ? types.drop_front(n) : types.take_front(n);
}

} // namespace

ParseResult ReducePartialOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseCombine(parser, result);
}
void ReducePartialOp::print(OpAsmPrinter &printer) {
  printCombine(printer, *this);
}
LogicalResult ReducePartialOp::verify() {
  return verifyCombine(*this, static_cast<int32_t>(getAxis()), getOperandTypes(), getResultTypes());
}

ParseResult ScanPartialOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseCombine(parser, result);
}
void ScanPartialOp::print(OpAsmPrinter &printer) {
  printCombine(printer, *this);
}
LogicalResult ScanPartialOp::verify() {
  const TypeRange results = getResultTypes();
  if (results.size() != 2 * getNumOperands() || half(results, false) != TypeRange(getOperandTypes()))
    return emitOpError() << "gives (" << results << ") for (" << getOperandTypes()
                         << "): each operand's type, then a tile of totals for each";
  return verifyCombine(*this, static_cast<int32_t>(getAxis()), getOperandTypes(), half(results, true));
}

ParseResult ScanApplyOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseCombine(parser, result);
}
void ScanApplyOp::print(OpAsmPrinter &printer) {
  printCombine(printer, *this);
}
LogicalResult ScanApplyOp::verify() {
  const TypeRange operands = getOperandTypes();
  if (operands.size() != 2 * getNumResults() || half(operands, false) != TypeRange(getResultTypes()))
    return emitOpError() << "of (" << operands << ") gives (" << getResultTypes()
                         << "): its operands are tiles, then a tile of totals for each";
  return verifyCombine(*this, static_cast<int32_t>(getAxis()), half(operands, false), half(operands, true));
}

ParseResult ScanBeforeOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseCombine(parser, result);
}
void ScanBeforeOp::print(OpAsmPrinter &printer) {
  printCombine(printer, *this);
}
LogicalResult ScanBeforeOp::verify() {
  if (getOperandTypes().empty() || getResultTypes() != getOperandTypes())
    return emitOpError() << "gives (" << getResultTypes() << ") for (" << getOperandTypes()
                         << "): each operand's type, of one at least";
  const auto first = cast<RankedTensorType>(getOperandTypes().front());
  if (!layoutAttrOf(first))
    return emitOpError() << "needs a layout on " << first;
  llvm::SmallVector<Type> scalars;
  for (Type tile : getOperandTypes()) {
    scalars.push_back(tile::elementTypeOf(tile));
    if (tile != tile::withElementType(first, scalars.back()))
      return emitOpError() << "combines " << tile << " with " << first << ": shapes and layouts must be equal";
  }
  return verifyRegion(*this, scalars);
}

tile::MemoryAccesses GatherSharedOp::accesses() {
  return {sharedRead(getBuffer())}; // which bytes is up to the indices
}

LogicalResult GatherSharedOp::verify() {
  const BufferType buffer = getBuffer().getType();
  auto indices = cast<RankedTensorType>(getIndices().getType());
  const int64_t axis = static_cast<int32_t>(getAxis());
  if (buffer.getCount() != 1)
    return emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  if (axis < 0 || axis >= indices.getRank())
    return emitOpError() << "axis " << axis << " is not in 0 .. " << indices.getRank() - 1;
  llvm::SmallVector<int64_t> expected(buffer.getShape());
  if (static_cast<int64_t>(expected.size()) == indices.getRank())
    expected[axis] = indices.getShape()[axis];
  if (ArrayRef<int64_t>(expected) != indices.getShape())
    return emitOpError() << "of " << buffer << " takes indices of [" << expected << "], not " << indices;
  if (!layoutAttrOf(indices) || getType() != tile::withElementType(indices, buffer.getElementType()))
    return emitOpError() << "with indices " << indices << " gives "
                         << tile::withElementType(indices, buffer.getElementType()) << ", not " << getType();
  return success();
}

} // namespace kiln::tile_gpu
