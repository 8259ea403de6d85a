#include "compiler/passes/shared/WarpgroupOperands.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// How many elements of the dimension that is not K an instruction reads.
int64_t extentOf(const WarpgroupOperand &operand) {
  tile::DotOp dot = operand.dot;
  const layout::Mma mma = std::get<layout::Mma>(layoutAttrOf(dot.getType()).encoding().kind);
  return operand.number == 0 ? WarpgroupDotOp::instructionOf(dot.getLhs().getType().getElementType())->m : mma.instrN;
}

bool collect(Value tile, bool turned, llvm::SmallVectorImpl<WarpgroupOperand> &out) {
  for (OpOperand &use : tile.getUses()) {
    if (auto dot = dyn_cast<tile::DotOp>(use.getOwner()); dot && readsShared(dot) && use.getOperandNumber() < 2) {
      out.push_back({dot, use.getOperandNumber(), turned});
    } else if (auto transpose = dyn_cast<tile::TransposeOp>(use.getOwner())) {
      if (!collect(transpose.getResult(), turned ^ (transpose.getPerm()[0] == 1), out))
        return false;
    } else if (auto convert = dyn_cast<ConvertLayoutOp>(use.getOwner())) {
      if (!collect(convert.getResult(), turned, out))
        return false;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace

std::optional<llvm::SmallVector<WarpgroupOperand>> warpgroupOperands(Value tile) {
  llvm::SmallVector<WarpgroupOperand> out;
  if (cast<RankedTensorType>(tile.getType()).getRank() != 2 || !collect(tile, false, out) || out.empty())
    return std::nullopt;
  return out;
}

BufferType warpgroupBuffer(RankedTensorType tile, llvm::ArrayRef<WarpgroupOperand> operands, unsigned inner,
                           llvm::StringRef name) {
  const int64_t bytes = tile.getElementTypeBitWidth() / 8;
  layout::Tma tma;
  const int64_t row = tile.getDimSize(inner) * bytes;
  tma.swizzle = std::min<int64_t>(128, row & -row);
  for (const WarpgroupOperand &operand : operands)
    if (operand.k() != inner) {
      if (bytes != 2) // only 16-bit elements may lie with K apart
        return {};
      tma.swizzle = std::min(tma.swizzle, extentOf(operand) * bytes);
    }
  tma.order = {inner, 1 - inner};
  const llvm::ArrayRef<int64_t> shape = tile.getShape();
  if (!layout::SharedTile::create(tma, std::span(shape.data(), shape.size()), planBits(tile)))
    return {}; // too narrow for a swizzle
  return BufferType::get(tile.getContext(), 1, tile.getShape(), tile.getElementType(),
                         SharedLayoutAttr::get(tile.getContext(), tma), name);
}

Operation *firstLook(Operation *product) {
  Operation *first = nullptr;
  for (Operation *user : product->getUsers())
    if (Operation *at = product->getBlock()->findAncestorOpInBlock(*user))
      first = first && first->isBeforeInBlock(at) ? first : at;
  return first;
}

Operation *lastLook(Operation *load, llvm::ArrayRef<WarpgroupOperand> operands) {
  Operation *last = load;
  const auto meet = [&](Operation *op) {
    Operation *at = load->getBlock()->findAncestorOpInBlock(*op);
    if (at && last->isBeforeInBlock(at))
      last = at;
  };
  for (const WarpgroupOperand &operand : operands) {
    Operation *dot = operand.dot;
    meet(dot);
    for (Operation *user : dot->getUsers())
      meet(user);
  }
  return last;
}

bool addsToCarriedSums(tile::DotOp dot) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  const auto sums = dyn_cast<BlockArgument>(dot.getAccumulator());
  if (!loop || !sums || sums.getOwner() != loop.getBody() || !sums.hasOneUse() || !dot->hasOneUse())
    return false;
  return loop.getTiedLoopYieldedValue(sums)->get() == dot.getResult();
}

} // namespace kiln
