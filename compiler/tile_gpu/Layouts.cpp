#include "compiler/tile_gpu/Layouts.h"

#include "compiler/layout/LayoutText.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/AttributeSupport.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace detail {

/// Keyed by the canonical text; the encoding is parsed from it once.  Encodings own memory, so the storage keeps a
/// shared pointer that its destructor (which the uniquer runs) releases.
template <typename Encoding> struct TextStorage : AttributeStorage {
  using KeyTy = llvm::StringRef;
  TextStorage(llvm::StringRef text, Encoding encoding) : text(text), encoding(std::move(encoding)) {}
  bool operator==(const KeyTy &key) const { return key == text; }

  llvm::StringRef text;
  Encoding encoding;
};

template <typename Encoding> Encoding reparse(llvm::StringRef text) {
  // Canonical text of an encoding always parses: print() and parse() are inverse (tested there).
  Result<layout::LayoutText> parsed = layout::parseLayout(std::string_view(text.data(), text.size()));
  return std::get<Encoding>(parsed->encoding);
}

struct LayoutStorage : TextStorage<layout::Encoding> {
  using TextStorage::TextStorage;
  static LayoutStorage *construct(AttributeStorageAllocator &allocator, const KeyTy &key) {
    llvm::StringRef text = allocator.copyInto(key);
    return new (allocator.allocate<LayoutStorage>()) LayoutStorage(text, reparse<layout::Encoding>(text));
  }
};

struct SharedLayoutStorage : TextStorage<layout::SharedEncoding> {
  using TextStorage::TextStorage;
  static SharedLayoutStorage *construct(AttributeStorageAllocator &allocator, const KeyTy &key) {
    llvm::StringRef text = allocator.copyInto(key);
    return new (allocator.allocate<SharedLayoutStorage>())
        SharedLayoutStorage(text, reparse<layout::SharedEncoding>(text));
  }
};

} // namespace detail

LayoutAttr LayoutAttr::get(MLIRContext *context, const layout::Encoding &encoding) {
  return Base::get(context, llvm::StringRef(layout::print(encoding)));
}
const layout::Encoding &LayoutAttr::encoding() const {
  return getImpl()->encoding;
}
llvm::StringRef LayoutAttr::text() const {
  return getImpl()->text;
}

LogicalResult LayoutAttr::verifyEncoding(llvm::ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  Result<layout::TileLayout> lowered =
      layout::TileLayout::create(encoding(), std::span<const int64_t>(shape.data(), shape.size()));
  if (!lowered)
    return emitError() << "the layout " << text() << " does not fit a tile of [" << shape
                       << "]: " << lowered.status().toString();
  return success();
}

SharedLayoutAttr SharedLayoutAttr::get(MLIRContext *context, const layout::SharedEncoding &encoding) {
  return Base::get(context, llvm::StringRef(layout::print(encoding)));
}
const layout::SharedEncoding &SharedLayoutAttr::encoding() const {
  return getImpl()->encoding;
}
llvm::StringRef SharedLayoutAttr::text() const {
  return getImpl()->text;
}

LayoutAttr layoutAttrOf(Type tile) {
  auto tensor = dyn_cast<RankedTensorType>(tile);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}

RankedTensorType withLayout(Type tile, LayoutAttr layout) {
  auto tensor = cast<RankedTensorType>(tile);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
}

Result<layout::TileLayout> layoutOf(Type tile) {
  const LayoutAttr attr = layoutAttrOf(tile);
  if (!attr)
    return Status(StatusCode::CompileError, "a tile has no layout", "run assign-layouts first");
  const llvm::ArrayRef<int64_t> shape = cast<RankedTensorType>(tile).getShape();
  return layout::TileLayout::create(attr.encoding(), std::span<const int64_t>(shape.data(), shape.size()));
}

unsigned planBits(Type tile) {
  return tile::storageBits(tile::elementTypeOf(tile));
}

layout::PlanOptions planOptions(LayoutAttr destination, uint64_t scratchBytes) {
  return {.scratchBytes = scratchBytes, .neighbours = layout::isInstructionOperand(destination.encoding())};
}

bool sameLayout(Type a, Type b) {
  const LayoutAttr x = layoutAttrOf(a), y = layoutAttrOf(b);
  if (!x || !y)
    return !x && !y;
  if (x == y)
    return true;
  Result<layout::TileLayout> lx = layoutOf(a), ly = layoutOf(b);
  return lx && ly && *lx == *ly;
}

layout::LinearLayout ofWarps(const layout::LinearLayout &core) {
  llvm::SmallVector<layout::BitVector> registers;
  for (layout::InDim held : {layout::InDim::Register, layout::InDim::Lane})
    llvm::append_range(registers, core.columns(held));
  const llvm::SmallVector<layout::BitVector> lanes(core.bits(layout::InDim::Lane), 0);
  // The same columns, in other places.
  return *layout::LinearLayout::create(core.shape(), {.registers = registers,
                                                      .lanes = lanes,
                                                      .warps = core.columns(layout::InDim::Warp),
                                                      .blocks = core.columns(layout::InDim::Block)});
}

Result<const Target *> targetOf(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto name = module ? module->getAttrOfType<StringAttr>(targetAttr) : StringAttr();
  if (!name)
    return Status(StatusCode::CompileError, "the module names no target", "give it tile_gpu.target = \"sm_80\"");
  return findTarget(std::string_view(name.getValue().data(), name.getValue().size()));
}

LogicalResult report(Operation *op, const Status &status) {
  InFlightDiagnostic d = op->emitError() << status.message();
  if (!status.remedy().empty())
    d.attachNote() << status.remedy();
  return d;
}

//===----------------------------------------------------------------------===//
// Registration and text
//===----------------------------------------------------------------------===//

void TileGpuDialect::registerLayouts() {
  addAttributes<LayoutAttr, SharedLayoutAttr>();
}

Attribute TileGpuDialect::parseAttribute(DialectAsmParser &parser, Type) const {
  Attribute map;
  if (parseTensorMap(parser, map))
    return map;
  const llvm::StringRef spec = parser.getFullSymbolSpec();
  Result<layout::LayoutText> parsed = layout::parseLayout(std::string_view(spec.data(), spec.size()));
  if (!parsed) {
    parser.emitError(parser.getNameLoc()) << "not a layout: " << parsed.status().toString();
    return {};
  }
  if (parsed->isShared())
    return SharedLayoutAttr::get(getContext(), std::get<layout::SharedEncoding>(parsed->encoding));
  return LayoutAttr::get(getContext(), std::get<layout::Encoding>(parsed->encoding));
}

void TileGpuDialect::printAttribute(Attribute attr, DialectAsmPrinter &printer) const {
  if (printTensorMap(attr, printer))
    return;
  if (auto layout = dyn_cast<LayoutAttr>(attr))
    printer << layout.text();
  else
    printer << cast<SharedLayoutAttr>(attr).text();
}

} // namespace kiln::tile_gpu

MLIR_DEFINE_EXPLICIT_TYPE_ID(kiln::tile_gpu::LayoutAttr)
MLIR_DEFINE_EXPLICIT_TYPE_ID(kiln::tile_gpu::SharedLayoutAttr)
