// Verifier of DotOps.td.
#include "compiler/tile/Tile.h"

using namespace mlir;

namespace kiln::tile {

static bool isFloat8(Type t) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(t);
}

/// The element type in which products of these elements are added up; null if there is none.
static Type sumType(Type lhs, Type rhs) {
  Builder b(lhs.getContext());
  if (isFloat8(lhs) && isFloat8(rhs))
    return b.getF32Type();
  if (lhs != rhs)
    return {};
  if (lhs.isF16() || lhs.isBF16() || lhs.isF32())
    return b.getF32Type();
  if (lhs.isF64())
    return lhs;
  return lhs.isInteger(8) ? Type(b.getI32Type()) : Type();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getLhs().getType()), b = cast<RankedTensorType>(getRhs().getType()),
       c = cast<RankedTensorType>(getAccumulator().getType());
  const int64_t rank = c.getRank();
  if ((rank != 2 && rank != 3) || a.getRank() != rank || b.getRank() != rank)
    return emitOpError() << "multiplies tiles of rank " << a.getRank() << " and " << b.getRank() << " into one of rank "
                         << rank << ": all have rank 2, or rank 3 with a leading batch dimension";
  const auto at = [&](RankedTensorType t, int64_t fromEnd) { return t.getDimSize(rank - fromEnd); };
  if (at(a, 1) != at(b, 2) || at(a, 2) != at(c, 2) || at(b, 1) != at(c, 1))
    return emitOpError() << "multiplies " << a << " by " << b << " into " << c
                         << ": MxK by KxN gives MxN, and the extents differ";
  if (rank == 3 && (a.getDimSize(0) != c.getDimSize(0) || b.getDimSize(0) != c.getDimSize(0)))
    return emitOpError() << "multiplies batches of " << a.getDimSize(0) << " and " << b.getDimSize(0) << " into "
                         << c.getDimSize(0) << ": the first extents must be equal";
  const Type sum = sumType(a.getElementType(), b.getElementType());
  if (!sum)
    return emitOpError() << "multiplies " << a.getElementType() << " by " << b.getElementType()
                         << ": f16, bf16, f32, f64, i8, each by itself, or 8-bit floats";
  if (c.getElementType() != sum)
    return emitOpError() << "adds products of " << a.getElementType() << " to " << c.getElementType()
                         << ": the accumulator is " << sum;
  if (getPrecision() != Precision::Ieee && !a.getElementType().isF32())
    return emitOpError() << "has precision " << stringifyPrecision(getPrecision()) << " for " << a.getElementType()
                         << ": only products of f32 have one";
  return success();
}

} // namespace kiln::tile
