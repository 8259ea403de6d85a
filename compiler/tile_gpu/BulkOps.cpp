// Verifiers, assembly, accesses and orderings of BulkOps.td.
#include "compiler/tile_gpu/SharedAccesses.h"

#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/StagingBuffer.h"

using namespace mlir;

namespace kiln::tile_gpu {

//===----------------------------------------------------------------------===//
// bulk_add
//===----------------------------------------------------------------------===//

ParseResult BulkAddOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand buffer, pointer, mask;
  Type bufferType;
  RankedTensorType pointers;
  if (parser.parseOperand(buffer) || parser.parseComma() || parser.parseOperand(pointer))
    return failure();
  const bool masked = succeeded(parser.parseOptionalKeyword("mask"));
  if ((masked && parser.parseOperand(mask)) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(bufferType) || parser.parseComma() || parser.parseType(pointers) ||
      parser.resolveOperand(buffer, bufferType, result.operands) ||
      parser.resolveOperand(pointer, pointers, result.operands))
    return failure();
  if (!masked)
    return success();
  return parser.resolveOperand(mask, tile::withElementType(pointers, parser.getBuilder().getI1Type()), result.operands);
}

void BulkAddOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getBuffer() << ", " << getPointer();
  if (getMask())
    printer << " mask " << getMask();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getBuffer().getType() << ", " << getPointer().getType();
}

tile::MemoryAccesses BulkAddOp::accesses() {
  const auto pointers = cast<RankedTensorType>(getPointer().getType());
  // Whichever lane begins: no other than one of the warp that has the elements.
  RankedTensorType byWarps;
  if (const Result<layout::TileLayout> layout = layoutOf(pointers))
    byWarps = withLayout(pointers, LayoutAttr::get(getContext(), layout::asLinear(ofWarps(layout->core()))));
  tile::MemoryAccess sums = tile::detail::throughPointer(getPointer(), getMask(), /*reads=*/true, /*writes=*/true);
  sums.atomic = true;
  tile::MemoryAccesses out{sums, sharedRead(getBuffer(), byWarps)};
  for (tile::MemoryAccess &access : out) {
    access.agent = tile::Agent::BulkStore;
    access.inFlight = true;
  }
  return out;
}

tile::MemoryOrdering BulkAddOp::ordering() {
  tile::MemoryOrdering out;
  out.closes = tile::Agent::BulkStore;
  return out;
}

uint32_t BulkAddOp::runOf(const layout::TileLayout &pointers, const layout::SharedTile &buffer, unsigned dim) {
  return layout::layoutVector(ofWarps(pointers.core()), dim, layout::contiguousRun(buffer, dim));
}

unsigned BulkAddOp::runDim() {
  const auto &order =
      std::get<layout::Tma>(cast<SharedLayoutAttr>(getBuffer().getType().getLayout()).encoding().kind).order;
  return order.empty() ? static_cast<unsigned>(getBuffer().getType().getShape().size()) - 1
                       : static_cast<unsigned>(order.front());
}

LogicalResult BulkAddOp::verify() {
  const auto pointers = cast<RankedTensorType>(getPointer().getType());
  const BufferType buffer = getBuffer().getType();
  if (buffer.getShape() != pointers.getShape() ||
      buffer.getElementType() != cast<tile::PtrType>(pointers.getElementType()).getPointee())
    return emitOpError() << "adds " << buffer << " through " << pointers << ": shapes and element types must be equal";
  if (buffer.getCount() != 1)
    return emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  if (!buffer.getElementType().isF32())
    return emitOpError() << "adds elements of " << buffer.getElementType() << ": of f32";
  if (getMask() && getMask().getType() != tile::withElementType(pointers, IntegerType::get(getContext(), 1)))
    return emitOpError() << "has a mask of type " << getMask().getType() << " for " << pointers;
  if (!layoutAttrOf(pointers))
    return emitOpError() << "needs a layout on " << pointers;
  if (!isReadByHardware(buffer))
    return emitOpError() << "reads " << buffer << ": it needs a tma layout";
  const Result<layout::TileLayout> layout = layoutOf(pointers);
  const Result<layout::SharedTile> shared = buffer.lowered();
  if (!layout || !shared)
    return report(*this, layout ? shared.status() : layout.status());
  if (const uint32_t bytes = sizeof(float) * runOf(*layout, *shared, runDim()); bytes < leastBytes)
    return emitOpError() << "adds runs of " << bytes << " bytes: a warp has so many together in " << pointers
                         << " and in " << buffer << "; the copy engine takes 16 or a multiple";
  return success();
}

//===----------------------------------------------------------------------===//
// bulk_wait
//===----------------------------------------------------------------------===//

tile::MemoryOrdering BulkWaitOp::ordering() {
  tile::MemoryOrdering out;
  out.awaits = tile::Agent::BulkStore;
  out.readsOnly = getRead();
  return out;
}

} // namespace kiln::tile_gpu
