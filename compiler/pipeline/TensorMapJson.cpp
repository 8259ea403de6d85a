#include "compiler/pipeline/TensorMapJson.h"

#include "compiler/target/ArgumentExpression.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;

namespace kiln {
namespace {

ExpressionOperator operatorOf(AffineExprKind kind) {
  switch (kind) {
  case AffineExprKind::Add:
    return ExpressionOperator::Add;
  case AffineExprKind::Mul:
    return ExpressionOperator::Multiply;
  case AffineExprKind::FloorDiv:
    return ExpressionOperator::FloorDivide;
  case AffineExprKind::CeilDiv:
    return ExpressionOperator::CeilDivide;
  default:
    return ExpressionOperator::Modulo;
  }
}

void writeExpression(llvm::json::OStream &json, AffineExpr e) {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return json.value(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return json.object([&] { json.attribute("argument", symbol.getPosition()); });
  const auto binary = cast<AffineBinaryOpExpr>(e); // no dimensions: the attribute's verifier
  json.array([&] {
    json.value(llvm::StringRef(expressionOperators[static_cast<unsigned>(operatorOf(e.getKind()))]));
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
