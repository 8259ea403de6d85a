#include "compiler/tile/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_TYPEDEF_CLASSES
#include "compiler/tile/TileTypes.cpp.inc"

using namespace mlir;

namespace kiln::tile {

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/tile/TileTypes.cpp.inc"
      >();
}

/// Numbers that memory may hold.
static bool isStorable(Type t) {
  if (t.isF16() || t.isBF16() || t.isF32() || t.isF64() || isa<Float8E4M3FNType, Float8E5M2Type>(t))
    return true;
  auto i = dyn_cast<IntegerType>(t);
  return i && i.isSignless() &&
         (i.getWidth() == 1 || i.getWidth() == 8 || i.getWidth() == 16 || i.getWidth() == 32 || i.getWidth() == 64);
}

LogicalResult PtrType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (isStorable(pointee))
    return success();
  return emitError() << "a pointer to " << pointee
                     << ": the types are i1, i8, i16, i32, i64, f16, bf16, f32, f64, f8E4M3FN and f8E5M2";
}

RankedTensorType ViewType::getTileType() const {
  return RankedTensorType::get(getShape(), getElementType());
}

LogicalResult ViewType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, llvm::ArrayRef<int64_t> shape,
                               Type elementType, int64_t unit) {
  if (!isStorable(elementType))
    return emitError() << "a view of " << elementType << ": its elements must be numbers";
  if (shape.empty() || shape.size() > 5)
    return emitError() << "a view of rank " << shape.size() << ": ranks are 1 to 5";
  for (int64_t extent : shape)
    if (extent < 1)
      return emitError() << "a view's tile has the extent " << extent << ": extents are positive";
  if (unit != noUnit && (unit < 0 || unit >= static_cast<int64_t>(shape.size())))
    return emitError() << "unit = " << unit << " names no dimension of a view of rank " << shape.size();
  return success();
}

Type ViewType::parse(AsmParser &parser) {
  llvm::SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element))
    return {};
  int64_t unit = static_cast<int64_t>(shape.size()) - 1;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("unit") || parser.parseEqual())
      return {};
    if (succeeded(parser.parseOptionalKeyword("none")))
      unit = noUnit;
    else if (parser.parseInteger(unit))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(parser.getContext(), shape, element, unit);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElementType();
  if (getUnit() == noUnit)
    printer << ", unit = none";
  else if (getUnit() != getRank() - 1)
    printer << ", unit = " << getUnit();
  printer << '>';
}

Type elementTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : type;
}

Type withElementType(Type like, Type element) {
  auto tensor = dyn_cast<RankedTensorType>(like);
  return tensor ? RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding()) : element;
}

unsigned storageBits(Type element) {
  if (isa<PtrType>(element))
    return 64;
  const unsigned bits = element.getIntOrFloatBitWidth();
  return bits < 8 ? 8 : bits;
}

} // namespace kiln::tile
