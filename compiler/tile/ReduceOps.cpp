// Verifiers and assembly of ReduceOps.td.
#include "compiler/tile/Tile.h"

using namespace mlir;

namespace kiln::tile {
namespace {

using Operand = OpAsmParser::UnresolvedOperand;

/// (%a, %b) {attributes} : types
ParseResult parseSources(OpAsmParser &parser, OperationState &result) {
  llvm::SmallVector<Operand> sources;
  llvm::SmallVector<Type> types;
  llvm::SMLoc loc = parser.getCurrentLocation();
  return failure(parser.parseOperandList(sources, OpAsmParser::Delimiter::Paren) ||
                 parser.parseOptionalAttrDict(result.attributes) || parser.parseColonTypeList(types) ||
                 parser.resolveOperands(sources, types, loc, result.operands));
}

void printSources(OpAsmPrinter &printer, Operation *op) {
  printer << '(' << op->getOperands() << ')';
  printer.printOptionalAttrDict(op->getAttrs(), {"operandSegmentSizes"});
  printer << " : ";
  llvm::interleaveComma(op->getOperandTypes(), printer);
}

ParseResult parseCombine(OpAsmParser &parser, OperationState &result) {
  return parser.parseRegion(*result.addRegion(), /*arguments=*/{});
}

/// Sources of one shape and encoding, an axis in range, and a region that combines one scalar of each twice.
LogicalResult verifySources(Operation *op, int64_t axis, Region &combine) {
  if (op->getNumOperands() == 0)
    return op->emitOpError() << "has nothing to combine";
  auto first = cast<RankedTensorType>(op->getOperand(0).getType());
  if (axis < 0 || axis >= first.getRank())
    return op->emitOpError() << "axis " << axis << " is not in 0 .. " << first.getRank() - 1;
  llvm::SmallVector<Type> scalars;
  for (Type t : op->getOperandTypes()) {
    if (withElementType(first, elementTypeOf(t)) != t)
      return op->emitOpError() << "combines " << t << " with " << first << ": shapes must be equal";
    scalars.push_back(elementTypeOf(t));
  }
  llvm::SmallVector<Type> arguments(scalars);
  arguments.append(scalars);
  if (llvm::SmallVector<Type>(combine.getArgumentTypes()) != arguments)
    return op->emitOpError() << "its region takes (" << combine.getArgumentTypes() << "), expected two of (" << scalars
                             << ")";
  // Regions are verified after their operation: the terminator may be anything yet.
  auto yield = combine.front().empty() ? YieldOp() : dyn_cast<YieldOp>(combine.front().back());
  if (!yield)
    return op->emitOpError() << "its region does not end with " << YieldOp::getOperationName();
  if (llvm::SmallVector<Type>(yield.getOperandTypes()) != scalars)
    return op->emitOpError() << "its region yields (" << yield.getOperandTypes() << "), expected (" << scalars << ")";
  for (Operation &inner : combine.front().without_terminator())
    if (!isMemoryEffectFree(&inner))
      return op->emitOpError() << "its region has a side effect: " << inner.getName();
  return success();
}

} // namespace

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  llvm::SmallVector<Type> types;
  if (parseSources(parser, result) || parser.parseKeyword("to") || parser.parseTypeList(types))
    return failure();
  result.addTypes(types);
  return parseCombine(parser, result);
}

void ReduceOp::print(OpAsmPrinter &printer) {
  printSources(printer, *this);
  printer << " to ";
  llvm::interleaveComma(getResultTypes(), printer);
  printer << ' ';
  printer.printRegion(getCombine());
}

LogicalResult ReduceOp::verify() {
  const int64_t axis = static_cast<int32_t>(getAxis());
  if (failed(verifySources(*this, axis, getCombine())))
    return failure();
  for (auto [source, result] : llvm::zip_equal(getSources(), getResults())) {
    auto from = cast<RankedTensorType>(source.getType());
    llvm::SmallVector<int64_t> shape(from.getShape());
    shape.erase(shape.begin() + axis);
    auto to = dyn_cast<RankedTensorType>(result.getType());
    const bool good = from.getRank() == 1 ? result.getType() == from.getElementType()
                                          : to && to.getShape() == ArrayRef<int64_t>(shape) &&
                                                to.getElementType() == from.getElementType();
    if (!good)
      return emitOpError() << "of " << from << " along axis " << axis << " cannot be " << result.getType();
  }
  return success();
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  if (parseSources(parser, result))
    return failure();
  for (Value v : result.operands)
    result.addTypes(v.getType());
  return parseCombine(parser, result);
}

void ScanOp::print(OpAsmPrinter &printer) {
  printSources(printer, *this);
  printer << ' ';
  printer.printRegion(getCombine());
}

LogicalResult ScanOp::verify() {
  if (failed(verifySources(*this, static_cast<int32_t>(getAxis()), getCombine())))
    return failure();
  if (getResultTypes() != getOperandTypes())
    return emitOpError() << "gives (" << getResultTypes() << ") for (" << getOperandTypes() << ")";
  return success();
}

LogicalResult AnyRowOp::verify() {
  if (getRows().getType().getRank() == 0)
    return emitOpError() << "of " << getRows().getType() << ": rows have one dimension or more, not 0";
  return success();
}

} // namespace kiln::tile
