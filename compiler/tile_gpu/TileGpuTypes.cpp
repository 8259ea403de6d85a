#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_TYPEDEF_CLASSES
#include "compiler/tile_gpu/TileGpuTypes.cpp.inc"

using namespace mlir;

namespace kiln::tile_gpu {

void TileGpuDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/tile_gpu/TileGpuTypes.cpp.inc"
      >();
}

LogicalResult BufferType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t count,
                                 llvm::ArrayRef<int64_t> shape, Type elementType, Attribute layout, llvm::StringRef,
                                 Space) {
  if (count < 1)
    return emitError() << count << " buffers: at least one";
  if (!elementType.isIntOrFloat())
    return emitError() << "a buffer of " << elementType << ": its elements must be numbers";
  auto shared = dyn_cast<SharedLayoutAttr>(layout);
  if (!shared)
    return emitError() << layout << " is no shared layout";
  Result<layout::SharedTile> tile = layout::SharedTile::create(
      shared.encoding(), std::span<const int64_t>(shape.data(), shape.size()), tile::storageBits(elementType));
  if (!tile)
    return emitError() << "the layout " << shared.text() << " does not fit a buffer of [" << shape
                       << "]: " << tile.status().toString();
  return success();
}

Type BufferType::parse(AsmParser &parser) {
  int64_t count = 1;
  llvm::SmallVector<int64_t> shape;
  Type element;
  Attribute layout;
  std::string name;
  if (parser.parseLess())
    return {};
  if (const auto at = parser.getCurrentLocation(); succeeded(parser.parseOptionalString(&name))) {
    if (name.empty())
      return parser.emitError(at, "a buffer's name is empty: leave it out"), Type();
    if (parser.parseColon())
      return {};
  }
  if (succeeded(parser.parseOptionalLSquare()) &&
      (parser.parseInteger(count) || parser.parseRSquare() || parser.parseKeyword("x")))
    return {};
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) || parser.parseComma() ||
      parser.parseAttribute(layout))
    return {};
  Space space = Space::Shared;
  if (succeeded(parser.parseOptionalComma())) {
    llvm::StringRef word;
    const auto at = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return {};
    if (word != "shared" && word != "tensor")
      return parser.emitError(at, "no memory is called '") << word << "': shared, tensor", Type();
    space = word == "tensor" ? Space::Tensor : Space::Shared;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(parser.getContext(), count, shape, element, layout, name, space);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  if (!getName().empty()) {
    printer.printString(getName());
    printer << ": ";
  }
  if (getCount() != 1)
    printer << '[' << getCount() << "] x ";
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElementType() << ", " << getLayout();
  if (getSpace() == Space::Tensor)
    printer << ", tensor";
  printer << '>';
}

Result<uint64_t> BufferType::bytes() const {
  KILN_ASSIGN(const layout::SharedTile slot, lowered());
  return llvm::alignTo(slot.bytes(), slot.alignment()) * static_cast<uint64_t>(getCount() - 1) + slot.bytes();
}

BufferType BufferType::withCount(int64_t count) const {
  return get(getContext(), count, getShape(), getElementType(), getLayout(), getName(), getSpace());
}

Result<layout::SharedTile> BufferType::lowered() const {
  const llvm::ArrayRef<int64_t> shape = getShape();
  return layout::SharedTile::create(cast<SharedLayoutAttr>(getLayout()).encoding(),
                                    std::span<const int64_t>(shape.data(), shape.size()),
                                    tile::storageBits(getElementType()));
}

} // namespace kiln::tile_gpu
