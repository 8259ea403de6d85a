// Verifiers, assembly, accesses and orderings of AsyncOps.td.
#include "compiler/tile_gpu/SharedAccesses.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

using Operand = OpAsmParser::UnresolvedOperand;

LogicalResult verifyCopy(Operation *op, llvm::ArrayRef<int64_t> shape, Type element, BufferType buffer) {
  if (buffer.getShape() != shape || buffer.getElementType() != element)
    return op->emitOpError() << "copies a tile of [" << shape << "] " << element << " into " << buffer
                             << ": shapes and element types must be equal";
  if (buffer.getCount() != 1)
    return op->emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  return success();
}

/// From memory to a buffer, until a wait for the copy's group; each element by the thread that has it in `tile`.
tile::MemoryAccesses copyAccesses(tile::MemoryAccess from, Value buffer, Type tile) {
  tile::MemoryAccesses out{std::move(from), sharedWrite(buffer, tile)};
  for (tile::MemoryAccess &access : out) {
    access.agent = tile::Agent::AsyncCopy;
    access.inFlight = true;
  }
  return out;
}

} // namespace

//===----------------------------------------------------------------------===//
// async_copy
//===----------------------------------------------------------------------===//

ParseResult AsyncCopyOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer, buffer, mask;
  RankedTensorType pointers;
  Type bufferType;
  if (parser.parseOperand(pointer) || parser.parseComma() || parser.parseOperand(buffer))
    return failure();
  const bool masked = succeeded(parser.parseOptionalKeyword("mask"));
  if ((masked && parser.parseOperand(mask)) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(pointers) || parser.parseComma() || parser.parseType(bufferType) ||
      parser.resolveOperand(pointer, pointers, result.operands) ||
      parser.resolveOperand(buffer, bufferType, result.operands))
    return failure();
  if (!masked)
    return success();
  return parser.resolveOperand(mask, tile::withElementType(pointers, parser.getBuilder().getI1Type()), result.operands);
}

void AsyncCopyOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPointer() << ", " << getBuffer();
  if (getMask())
    printer << " mask " << getMask();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getPointer().getType() << ", " << getBuffer().getType();
}

tile::MemoryAccesses AsyncCopyOp::accesses() {
  return copyAccesses(tile::detail::throughPointer(getPointer(), getMask(), /*reads=*/true, /*writes=*/false),
                      getBuffer(), getPointer().getType());
}

LogicalResult AsyncCopyOp::verify() {
  const auto pointers = cast<RankedTensorType>(getPointer().getType());
  if (getMask() && getMask().getType() != tile::withElementType(pointers, IntegerType::get(getContext(), 1)))
    return emitOpError() << "has a mask of type " << getMask().getType() << " for " << pointers;
  if (!layoutAttrOf(pointers))
    return emitOpError() << "needs a layout on " << pointers;
  return verifyCopy(*this, pointers.getShape(), cast<tile::PtrType>(pointers.getElementType()).getPointee(),
                    getBuffer().getType());
}

//===----------------------------------------------------------------------===//
// async_copy_view
//===----------------------------------------------------------------------===//

ParseResult AsyncCopyViewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand view, buffer;
  llvm::SmallVector<Operand> coords;
  Attribute layout;
  Type viewType, indexType, bufferType;
  if (parser.parseOperand(view) || parser.parseOperandList(coords, OpAsmParser::Delimiter::Square) ||
      parser.parseComma() || parser.parseOperand(buffer) || parser.parseKeyword("by") ||
      parser.parseAttribute(layout) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(viewType) || parser.parseComma() || parser.parseType(indexType) || parser.parseComma() ||
      parser.parseType(bufferType) || parser.resolveOperand(view, viewType, result.operands) ||
      parser.resolveOperands(coords, indexType, result.operands) ||
      parser.resolveOperand(buffer, bufferType, result.operands))
    return failure();
  result.addAttribute("layout", layout);
  return success();
}

void AsyncCopyViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getView() << '[' << getCoords() << "], " << getBuffer() << " by " << getLayout();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"layout"});
  printer << " : " << getView().getType() << ", " << getCoords().front().getType() << ", " << getBuffer().getType();
}

RankedTensorType AsyncCopyViewOp::tile() {
  const auto view = cast<tile::ViewType>(getView().getType());
  return RankedTensorType::get(view.getShape(), view.getElementType(), getLayout());
}

tile::MemoryAccesses AsyncCopyViewOp::accesses() {
  return copyAccesses(tile::detail::throughView(getView(), getCoords(), tile(), /*reads=*/true, /*writes=*/false),
                      getBuffer(), tile());
}

LogicalResult AsyncCopyViewOp::verify() {
  const auto view = cast<tile::ViewType>(getView().getType());
  if (static_cast<int64_t>(getCoords().size()) != view.getRank())
    return emitOpError() << "gives " << getCoords().size() << " coordinates in " << view;
  if (!isa<LayoutAttr>(getLayout()))
    return emitOpError() << getLayout() << " is no layout of tiles";
  for (Value c : getCoords())
    if (c.getType() != getCoords().front().getType())
      return emitOpError() << "mixes " << getCoords().front().getType() << " and " << c.getType() << " in coordinates";
  return verifyCopy(*this, view.getShape(), view.getElementType(), getBuffer().getType());
}

//===----------------------------------------------------------------------===//
// async_commit, async_wait
//===----------------------------------------------------------------------===//

tile::MemoryOrdering AsyncCommitOp::ordering() {
  tile::MemoryOrdering out;
  out.closes = tile::Agent::AsyncCopy;
  out.token = getToken();
  return out;
}

tile::MemoryOrdering AsyncWaitOp::ordering() {
  tile::MemoryOrdering out;
  out.awaits = tile::Agent::AsyncCopy;
  out.tokens = getTokens();
  if (getGroups())
    out.inFlight = *getGroups();
  out.ready = getReady();
  return out;
}

void AsyncWaitOp::leaveInFlight(unsigned groups) {
  setGroups(groups);
}

LogicalResult AsyncWaitOp::verify() {
  for (Value buffer : getReady())
    if (const auto type = cast<BufferType>(buffer.getType()); type.getCount() != 1)
      return emitOpError() << "names all of " << type << ": take a tile_gpu.local_subview";
  // What cp.async.wait_group takes; nobody has more groups in flight.
  constexpr uint32_t mostGroups = 63;
  if (getGroups() && *getGroups() > mostGroups)
    return emitOpError() << "leaves " << static_cast<int32_t>(*getGroups()) << " groups in flight: 0 to " << mostGroups;
  return success();
}

} // namespace kiln::tile_gpu
