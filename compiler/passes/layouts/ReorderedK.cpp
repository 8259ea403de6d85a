#include "compiler/passes/layouts/ReorderedK.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {

namespace {

/// What the order goes by: elements of K.
constexpr int64_t period = 16;

bool isEighth(Value tile) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(cast<RankedTensorType>(tile.getType()).getElementType());
}

/// Through what computes element by element, and conditionals that choose between such.
bool comesFromProduct(Value tile) {
  SetVector<Value> before;
  before.insert(tile);
  for (size_t at = 0; at < before.size(); ++at) {
    Operation *from = before[at].getDefiningOp();
    if (!from)
      continue;
    if (isa<tile::DotOp>(from))
      return true;
    if (from->getNumRegions()) {
      const unsigned number = cast<OpResult>(before[at]).getResultNumber();
      for (Region &region : from->getRegions())
        if (!region.empty() && region.front().mightHaveTerminator())
          if (Operation *end = region.front().getTerminator(); number < end->getNumOperands())
            before.insert(end->getOperand(number));
      continue;
    }
    if (isMemoryEffectFree(from))
      for (Value operand : from->getOperands())
        if (operand.getType() == tile.getType() ||
            (isa<RankedTensorType>(operand.getType()) &&
             cast<RankedTensorType>(operand.getType()).getShape() == cast<RankedTensorType>(tile.getType()).getShape()))
          before.insert(operand);
  }
  return false;
}

} // namespace

bool wantsReorderedK(tile::DotOp dot) {
  return dot.getType().getRank() == 2 && isEighth(dot.getLhs()) && isEighth(dot.getRhs()) &&
         dot.getLhs().getType().getDimSize(1) % (2 * period) == 0 && !tile_gpu::viewedTile(dot.getRhs()).second &&
         comesFromProduct(dot.getLhs());
}

void reorderK(tile::DotOp dot) {
  OpBuilder b(dot);
  const auto reordered = [&](Value tile, unsigned dim) -> Value {
    const auto type = cast<RankedTensorType>(tile.getType());
    const int64_t k = type.getDimSize(dim), other = type.getDimSize(1 - dim);
    llvm::SmallVector<int64_t> split = {k / period, 2, 4, 2}, perm = {0, 2, 1, 3}, merged = {k / period, 4, 2, 2};
    if (dim == 1) {
      for (int64_t &d : perm)
        ++d;
      perm.insert(perm.begin(), 0);
      split.insert(split.begin(), other);
      merged.insert(merged.begin(), other);
    } else {
      perm.push_back(4);
      split.push_back(other);
      merged.push_back(other);
    }
    const auto of = [&](llvm::ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, type.getElementType()); };
    const Location loc = dot.getLoc();
    Value out = tile::ReshapeOp::create(b, loc, of(split), tile);
    out = tile::TransposeOp::create(b, loc, of(merged), out, b.getDenseI64ArrayAttr(perm));
    return tile::ReshapeOp::create(b, loc, type, out);
  };
  dot.getLhsMutable().set(reordered(dot.getLhs(), 1));
  dot.getRhsMutable().set(reordered(dot.getRhs(), 0));
}

std::optional<tile_gpu::LayoutAttr> turningLayout(RankedTensorType operand, int64_t warps) {
  const int64_t k = operand.getDimSize(0) & -operand.getDimSize(0), n = operand.getDimSize(1) & -operand.getDimSize(1);
  if (k < period || n < period)
    return std::nullopt;
  layout::Linear out;
  out.registers = {{1, 0}, {2, 0}, {0, 1}};
  out.lanes = {{4, 0}, {8, 0}, {0, 2}, {0, 4}, {0, 8}};
  std::vector<layout::Sizes> rest;
  for (int64_t bit = period; bit < k; bit *= 2)
    rest.push_back({bit, 0});
  for (int64_t bit = period; bit < n; bit *= 2)
    rest.push_back({0, bit});
  // Warps take the most distant ones.
  for (int64_t left = warps; left > 1; left /= 2) {
    out.warps.push_back(rest.empty() ? layout::Sizes{0, 0} : rest.back());
    if (!rest.empty())
      rest.pop_back();
  }
  out.registers.insert(out.registers.end(), rest.begin(), rest.end());
  const auto attr = tile_gpu::LayoutAttr::get(operand.getContext(), out);
  return tile_gpu::fits(operand, attr) ? std::optional(attr) : std::nullopt;
}

} // namespace kiln
