// Verifiers and assembly of ViewOps.td.
#include "compiler/tile/CacheHint.h"
#include "compiler/tile/Tile.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::tile {
namespace {

using Operand = OpAsmParser::UnresolvedOperand;

ParseResult parseOperandsIn(OpAsmParser &parser, llvm::SmallVectorImpl<Operand> &operands) {
  return parser.parseOperandList(operands, OpAsmParser::Delimiter::Square);
}

LogicalResult verifyCoords(Operation *op, ViewType view, ValueRange coords) {
  if (static_cast<int64_t>(coords.size()) == view.getRank())
    return success();
  return op->emitOpError() << "gives " << coords.size() << " coordinates to a view of rank " << view.getRank();
}

LogicalResult verifyTile(Operation *op, ViewType view, Type tile) {
  auto t = cast<RankedTensorType>(tile);
  if (t.getShape() == view.getShape() && t.getElementType() == view.getElementType())
    return success();
  return op->emitOpError() << "moves " << t << " through " << view << ": shapes and element types must be equal";
}

} // namespace

ParseResult MakeViewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer;
  llvm::SmallVector<Operand> extents, strides;
  Type type, indexType;
  llvm::SMLoc loc;
  if (parser.parseOperand(pointer) || parser.parseComma() || parser.parseKeyword("extents") ||
      parseOperandsIn(parser, extents) || parser.parseComma() || parser.parseKeyword("strides") ||
      parseOperandsIn(parser, strides) || parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&loc) || parser.parseType(type) || parser.parseComma() || parser.parseType(indexType))
    return failure();
  auto view = dyn_cast<ViewType>(type);
  if (!view)
    return parser.emitError(loc) << type << " is no view";
  if (extents.size() != strides.size())
    return parser.emitError(loc) << extents.size() << " extents and " << strides.size() << " strides";
  if (parser.resolveOperand(pointer, PtrType::get(parser.getContext(), view.getElementType()), result.operands) ||
      parser.resolveOperands(extents, indexType, result.operands) ||
      parser.resolveOperands(strides, indexType, result.operands))
    return failure();
  result.addTypes(view);
  return success();
}

void MakeViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPointer() << ", extents [" << getExtents() << "], strides [" << getStrides() << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getType() << ", " << getExtents().front().getType();
}

LogicalResult MakeViewOp::verify() {
  const ViewType view = getType();
  if (static_cast<int64_t>(getExtents().size()) != view.getRank())
    return emitOpError() << "gives " << getExtents().size() << " extents to a view of rank " << view.getRank();
  if (getPointer().getType().getPointee() != view.getElementType())
    return emitOpError() << "sees memory of " << getPointer().getType().getPointee() << " as " << view.getElementType();
  for (Value v : llvm::concat<Value>(getExtents(), getStrides()))
    if (v.getType() != getExtents().front().getType())
      return emitOpError() << "mixes " << getExtents().front().getType() << " and " << v.getType()
                           << " in extents and strides";
  llvm::APInt stride;
  if (view.getUnit() != ViewType::noUnit && matchPattern(getStrides()[view.getUnit()], m_ConstantInt(&stride)) &&
      !stride.isOne())
    return emitOpError() << "the stride of the unit dimension " << view.getUnit() << " is " << stride.getSExtValue()
                         << ", not 1: name another dimension with 'unit = ', or 'unit = none'";
  return success();
}

LogicalResult NarrowViewOp::verify() {
  const int64_t dim = static_cast<int32_t>(getDim()), rank = getView().getType().getRank();
  if (dim < 0 || dim >= rank)
    return emitOpError() << "dimension " << dim << " is not in 0 .. " << rank - 1;
  return success();
}

ParseResult SliceViewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand view;
  llvm::SmallVector<Operand> coords;
  Type from, indexType, to;
  if (parser.parseOperand(view) || parseOperandsIn(parser, coords) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(from) || parser.parseComma() || parser.parseType(indexType) || parser.parseArrow() ||
      parser.parseType(to) || parser.resolveOperand(view, from, result.operands) ||
      parser.resolveOperands(coords, indexType, result.operands))
    return failure();
  result.addTypes(to);
  return success();
}

void SliceViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getView() << '[' << getCoords() << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getView().getType() << ", " << getCoords().front().getType() << " -> " << getType();
}

LogicalResult SliceViewOp::verify() {
  const ViewType from = getView().getType();
  const llvm::ArrayRef<int32_t> dims = getDims();
  if (dims.empty() || dims.size() != getCoords().size())
    return emitOpError() << "gives " << getCoords().size() << " coordinates for " << dims.size() << " dimensions";
  for (Value c : getCoords())
    if (c.getType() != getCoords().front().getType())
      return emitOpError() << "mixes " << getCoords().front().getType() << " and " << c.getType() << " in coordinates";
  int32_t last = -1;
  for (int32_t d : dims) {
    if (d <= last || d >= from.getRank())
      return emitOpError() << "dimension " << d << " is not in " << last + 1 << " .. " << from.getRank() - 1
                           << ": dims count up";
    if (from.getShape()[d] != 1)
      return emitOpError() << "fixes dimension " << d << ", of extent " << from.getShape()[d] << " in " << from
                           << ": only dimensions of extent 1 can be fixed";
    last = d;
  }
  llvm::SmallVector<int64_t> shape;
  int64_t unit = ViewType::noUnit;
  for (int64_t d = 0; d < from.getRank(); ++d) {
    if (llvm::is_contained(dims, d))
      continue;
    if (d == from.getUnit())
      unit = static_cast<int64_t>(shape.size());
    shape.push_back(from.getShape()[d]);
  }
  if (shape.empty())
    return emitOpError() << "fixes all dimensions of " << from << ": load through a pointer instead";
  const ViewType wanted = ViewType::get(getContext(), shape, from.getElementType(), unit);
  if (getType() != wanted)
    return emitOpError() << "gives " << getType() << ", but what is left is " << wanted;
  return success();
}

ParseResult LoadViewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand view;
  llvm::SmallVector<Operand> coords;
  Type viewType, indexType, tileType;
  if (parser.parseOperand(view) || parseOperandsIn(parser, coords) || parseCache(parser, result.attributes) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(viewType) || parser.parseComma() ||
      parser.parseType(indexType) || parser.parseArrow() || parser.parseType(tileType) ||
      parser.resolveOperand(view, viewType, result.operands) ||
      parser.resolveOperands(coords, indexType, result.operands))
    return failure();
  result.addTypes(tileType);
  return success();
}

void LoadViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getView() << '[' << getCoords() << ']';
  printCache(printer, getCache());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"cache"});
  printer << " : " << getView().getType() << ", " << getCoords().front().getType() << " -> " << getType();
}

LogicalResult LoadViewOp::verify() {
  const ViewType view = getView().getType();
  return failed(verifyCoords(*this, view, getCoords())) ? failure() : verifyTile(*this, view, getType());
}

MemoryAccesses LoadViewOp::accesses() {
  return {detail::throughView(getView(), getCoords(), getType(), /*reads=*/true, /*writes=*/false)};
}

ParseResult StoreViewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand view, value;
  llvm::SmallVector<Operand> coords;
  Type viewType, indexType, tileType;
  if (parser.parseOperand(view) || parseOperandsIn(parser, coords) || parser.parseComma() ||
      parser.parseOperand(value) || parseCache(parser, result.attributes) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(viewType) || parser.parseComma() ||
      parser.parseType(indexType) || parser.parseComma() || parser.parseType(tileType) ||
      parser.resolveOperand(view, viewType, result.operands) ||
      parser.resolveOperands(coords, indexType, result.operands))
    return failure();
  return parser.resolveOperand(value, tileType, result.operands);
}

void StoreViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getView() << '[' << getCoords() << "], " << getValue();
  printCache(printer, getCache());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"cache"});
  printer << " : " << getView().getType() << ", " << getCoords().front().getType() << ", " << getValue().getType();
}

LogicalResult StoreViewOp::verify() {
  const ViewType view = getView().getType();
  return failed(verifyCoords(*this, view, getCoords())) ? failure() : verifyTile(*this, view, getValue().getType());
}

MemoryAccesses StoreViewOp::accesses() {
  return {detail::throughView(getView(), getCoords(), getValue().getType(), /*reads=*/false, /*writes=*/true)};
}

} // namespace kiln::tile
