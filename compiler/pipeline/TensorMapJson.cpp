#include "compiler/pipeline/TensorMapJson.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;

namespace kiln {
namespace {

void writeExpression(llvm::json::OStream &json, AffineExpr e) {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return json.value(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return json.object([&] { json.attribute("argument", symbol.getPosition()); });
  const auto binary = cast<AffineBinaryOpExpr>(e); // no dimensions: the attribute's verifier
  const char *name = e.getKind() == AffineExprKind::Add        ? "+"
                     : e.getKind() == AffineExprKind::Mul      ? "*"
                     : e.getKind() == AffineExprKind::FloorDiv ? "floordiv"
                     : e.getKind() == AffineExprKind::CeilDiv  ? "ceildiv"
                                                               : "mod";
  json.array([&] {
    json.value(name);
    writeExpression(json, binary.getLHS());
    writeExpression(json, binary.getRHS());
  });
}

} // namespace

void writeTensorMap(llvm::json::OStream &json, tile_gpu::TensorMapRecipeAttr recipe, unsigned offset) {
  const auto expressions = [&](const char *name, AffineMap map) {
    json.attributeArray(name, [&] {
      for (const AffineExpr e : map.getResults())
        writeExpression(json, e);
    });
  };
  const auto numbers = [&](const char *name, llvm::ArrayRef<int64_t> list) {
    json.attributeArray(name, [&] {
      for (const int64_t n : list)
        json.value(n);
    });
  };
  json.object([&] {
    json.attribute("kind", "tensor_map");
    json.attribute("offset", offset);
    json.attribute("bytes", TensorMap::size);
    json.attribute("element", recipe.getElement());
    json.attribute("address", recipe.getAddress());
    expressions("extents", recipe.getExtents());
    expressions("strides", recipe.getStrides());
    numbers("box", recipe.getBox().asArrayRef());
    if (recipe.getElementStrides())
      numbers("element_strides", recipe.getElementStrides().asArrayRef());
    json.attribute("swizzle", recipe.getSwizzle());
    json.attribute("interleave", recipe.getInterleave());
    json.attribute("promotion", recipe.getPromotion());
    json.attribute("fill", recipe.getFill());
  });
}

} // namespace kiln
