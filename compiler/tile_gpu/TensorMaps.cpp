#include "compiler/tile_gpu/TensorMaps.h"

#include "compiler/target/ArgumentExpression.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_ATTRDEF_CLASSES
#include "compiler/tile_gpu/TileGpuAttributes.cpp.inc"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

std::string_view view(llvm::StringRef text) {
  return {text.data(), text.size()};
}

Status wrong(const std::string &what, std::string remedy) {
  return Status::invalid("tensor map: " + what, std::move(remedy));
}

/// Lists that the metadata nests to write the expression.
unsigned depthOf(AffineExpr e) {
  const auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  return binary ? 1 + std::max(depthOf(binary.getLHS()), depthOf(binary.getRHS())) : 1;
}

Result<kiln::TensorMapRecipe> formOf(llvm::StringRef element, AffineMap extents, AffineMap strides,
                                     llvm::ArrayRef<int64_t> box, llvm::ArrayRef<int64_t> elementStrides,
                                     llvm::StringRef swizzle, llvm::StringRef interleave, llvm::StringRef promotion,
                                     llvm::StringRef fill) {
  kiln::TensorMapRecipe r;
  KILN_ASSIGN(r.type, parseTensorMapType(view(element)));
  KILN_ASSIGN(r.swizzle, parseTensorMapSwizzle(view(swizzle)));
  KILN_ASSIGN(r.interleave, parseTensorMapInterleave(view(interleave)));
  KILN_ASSIGN(r.promotion, parseTensorMapPromotion(view(promotion)));
  KILN_ASSIGN(r.fill, parseTensorMapFill(view(fill)));
  for (const AffineMap map : {extents, strides}) {
    if (map.getNumDims())
      return wrong("extents and strides are maps of " + std::to_string(map.getNumDims()) + " dimensions",
                   "write them over symbols, ()[s0, s1] -> (s1): sN is argument N");
    for (const AffineExpr e : map.getResults())
      if (const unsigned depth = depthOf(e); depth > maxExpressionDepth)
        return wrong("an extent or a stride is an expression " + std::to_string(depth) + " deep, at most " +
                         std::to_string(maxExpressionDepth) + " are computed",
                     "pass what it is made of as an argument");
  }
  r.rank = extents.getNumResults();
  if (r.rank > kiln::TensorMapRecipe::maxRank)
    return wrong("rank " + std::to_string(r.rank) + " is not in 1..5", "join or split dimensions of the tensor");
  if (strides.getNumResults() + 1 != r.rank)
    return wrong(std::to_string(strides.getNumResults()) + " strides for " + std::to_string(r.rank) + " extents",
                 "the first dimension has none, each other one");
  const auto copy = [&](const char *what, llvm::ArrayRef<int64_t> from, auto &to) -> Status {
    if (from.size() != r.rank)
      return wrong(std::string(what) + " has " + std::to_string(from.size()) + " numbers for " +
                       std::to_string(r.rank) + " extents",
                   "give one a dimension");
    for (unsigned i = 0; i < r.rank; ++i) // what does not fit breaks the rule of any box
      to[i] = static_cast<std::uint32_t>(std::clamp<int64_t>(from[i], 0, UINT32_MAX));
    return {};
  };
  KILN_TRY(copy("box", box, r.box));
  if (!elementStrides.empty())
    KILN_TRY(copy("elementStrides", elementStrides, r.elementStrides));
  KILN_TRY(checkTensorMapForm(r));
  return r;
}

} // namespace

LogicalResult TensorMapRecipeAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, llvm::StringRef element,
                                          unsigned, AffineMap extents, AffineMap strides, DenseI64ArrayAttr box,
                                          DenseI64ArrayAttr elementStrides, llvm::StringRef swizzle,
                                          llvm::StringRef interleave, llvm::StringRef promotion, llvm::StringRef fill) {
  const llvm::ArrayRef<int64_t> steps = elementStrides ? elementStrides.asArrayRef() : llvm::ArrayRef<int64_t>();
  const Result<kiln::TensorMapRecipe> form =
      formOf(element, extents, strides, box.asArrayRef(), steps, swizzle, interleave, promotion, fill);
  return form ? success() : emitError() << form.status().toString();
}

Result<kiln::TensorMapRecipe> TensorMapRecipeAttr::form() const {
  const llvm::ArrayRef<int64_t> steps =
      getElementStrides() ? getElementStrides().asArrayRef() : llvm::ArrayRef<int64_t>();
  return formOf(getElement(), getExtents(), getStrides(), getBox().asArrayRef(), steps, getSwizzle(), getInterleave(),
                getPromotion(), getFill());
}

llvm::SmallVector<unsigned> TensorMapRecipeAttr::arguments() const {
  llvm::SmallBitVector used;
  for (const AffineMap map : {getExtents(), getStrides()})
    for (const AffineExpr result : map.getResults())
      result.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e)) {
          used.resize(std::max<unsigned>(used.size(), symbol.getPosition() + 1));
          used.set(symbol.getPosition());
        }
      });
  llvm::SmallVector<unsigned> out;
  for (const int i : used.set_bits())
    out.push_back(static_cast<unsigned>(i));
  return out;
}

TensorMapRecipeAttr recipeOf(FunctionOpInterface kernel, unsigned argument) {
  return kernel.getArgAttrOfType<TensorMapRecipeAttr>(argument, tensorMapAttr);
}

BlockArgument tensorMapArgument(func::FuncOp kernel, TensorMapRecipeAttr recipe) {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (recipeOf(kernel, i) == recipe)
      return kernel.getArgument(i);
  const unsigned at = kernel.getNumArguments();
  Builder b(kernel.getContext());
  const DictionaryAttr attributes = b.getDictionaryAttr(b.getNamedAttr(tensorMapAttr, recipe));
  (void)kernel.insertArgument(at, TensorMapType::get(kernel.getContext()), attributes, kernel.getLoc());
  return kernel.getArgument(at);
}

LogicalResult verifyTensorMapArgument(Operation *op, unsigned argument, Attribute value) {
  auto f = dyn_cast<FunctionOpInterface>(op);
  auto recipe = dyn_cast<TensorMapRecipeAttr>(value);
  if (!f || !recipe)
    return op->emitError() << tensorMapAttr << " is #tile_gpu.tensor_map<..>, of an argument of a function";
  const auto fail = [&] { return op->emitError() << "argument " << argument << ": " << tensorMapAttr << " "; };
  if (!isa<TensorMapType, LLVM::LLVMPointerType>(f.getArgumentTypes()[argument]))
    return fail() << "belongs to an argument of type !tile_gpu.tensor_map, not " << f.getArgumentTypes()[argument];
  const auto checked = [&](unsigned of, const char *role, llvm::function_ref<bool(Type)> good,
                           const char *want) -> LogicalResult {
    if (of >= f.getNumArguments())
      return fail() << "takes " << role << " from argument " << of << ": the function has " << f.getNumArguments();
    const Type type = f.getArgumentTypes()[of];
    if (recipeOf(f, of) || !good(type))
      return fail() << "takes " << role << " from argument " << of << " of type " << type << ": it must be " << want;
    return success();
  };
  if (failed(checked(recipe.getAddress(), "its address", llvm::IsaPred<tile::PtrType, LLVM::LLVMPointerType>,
                     "a pointer that a caller passes")))
    return failure();
  for (const unsigned of : recipe.arguments())
    if (failed(checked(
            of, "an extent or a stride", [](Type t) { return t.isSignlessInteger() && !t.isInteger(1); },
            "an integer")))
      return failure();
  return success();
}

LogicalResult TileGpuDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                       NamedAttribute attr) {
  if (attr.getName() == tensorMapAttr)
    return verifyTensorMapArgument(op, argument, attr.getValue());
  return op->emitError() << "argument " << argument << ": unknown attribute " << attr.getName()
                         << ": arguments may have " << tensorMapAttr;
}

void TileGpuDialect::registerTensorMaps() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/tile_gpu/TileGpuAttributes.cpp.inc"
      >();
}

bool TileGpuDialect::parseTensorMap(DialectAsmParser &parser, Attribute &out) const {
  if (!parser.getFullSymbolSpec().starts_with(TensorMapRecipeAttr::getMnemonic()))
    return false;
  llvm::StringRef mnemonic;
  return generatedAttributeParser(parser, &mnemonic, Type(), out).has_value();
}

bool TileGpuDialect::printTensorMap(Attribute attribute, DialectAsmPrinter &printer) const {
  return succeeded(generatedAttributePrinter(attribute, printer));
}

} // namespace kiln::tile_gpu
