// Tiles made, and their shapes changed.  A change of shape moves nothing: each register of the result is a register of
// the operand, the same for every thread; where layouts are such that this cannot be, the operation is refused.
#include "compiler/lowering/GlobalAccess.h"

#include "compiler/layout/Gf2.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::BitVector;
using layout::Coords;
using layout::InDim;
using layout::TileLayout;

/// Where an element of the result comes from: coordinates in the operand.
using CoordinateMap = llvm::function_ref<Coords(const Coords &)>;

/// For each register of the result the register of the operand that holds the same element in the first lane of the
/// first warp; nothing if there is none.
std::optional<llvm::SmallVector<unsigned>> registersOf(const TileLayout &from, const TileLayout &to,
                                                       CoordinateMap map) {
  const layout::Span registers(from.core().columns(InDim::Register));
  const unsigned sourceRegisters = from.core().size(InDim::Register);
  llvm::SmallVector<unsigned> out;
  for (unsigned r = 0; r < to.registers(); ++r) {
    const layout::TileElement at = from.locate(map(to.coords(r, 0, 0, 0)));
    const std::optional<BitVector> inner = registers.solve(at.coreFlat);
    if (!inner)
      return std::nullopt;
    out.push_back(at.rep * sourceRegisters + static_cast<unsigned>(*inner));
  }
  return out;
}

/// The same in every lane and warp.  `map` must be linear over GF(2) inside a core.
std::optional<llvm::SmallVector<unsigned>> matchRegisters(const TileLayout &from, const TileLayout &to,
                                                          CoordinateMap map) {
  const layout::LinearLayout &source = from.core(), &result = to.core();
  auto mapped = [&](BitVector flat) { return from.locate(map(result.coords(flat))); };
  for (InDim in : {InDim::Lane, InDim::Warp})
    for (unsigned i = 0; i < result.bits(in); ++i) {
      const layout::TileElement at = mapped(result.column(in, i));
      if (at.rep != 0 || at.coreFlat != source.column(in, i))
        return std::nullopt;
    }
  return registersOf(from, to, map);
}

LogicalResult refuse(Operation *op, Type from, Type to) {
  InFlightDiagnostic d = op->emitOpError()
                         << "from " << from << " to " << to << ": elements would move between threads";
  d.attachNote() << "convert the operand with tile_gpu.convert_layout to the layout that the result's implies";
  return d;
}

Scalars renamed(ValueRange values, ArrayRef<unsigned> registers) {
  Scalars out;
  for (unsigned r : registers)
    out.push_back(values[r]);
  return out;
}

/// The verifier has seen that lanes and warps hold the same of both.
struct LowerPart : Lowering<tile_gpu::PartOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::PartOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &from = context.layout(op.getSource().getType()), &to = context.layout(op.getType());
    const auto dim = static_cast<size_t>(op.getDim());
    const auto first = static_cast<std::uint32_t>(op.getIndex()) * to.shape(static_cast<unsigned>(dim));
    const auto registers = registersOf(from, to, [&](Coords at) {
      at[dim] += first;
      return at;
    });
    if (!registers)
      return refuse(op, op.getSource().getType(), op.getType());
    replace(rewriter, op, renamed(adaptor.getSource(), *registers));
    return success();
  }
};

struct LowerRange : Lowering<tile::RangeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::RangeOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const TileLayout &layout = context.layout(op.getType());
    const Type element = op.getType().getElementType();
    const int64_t start = static_cast<int32_t>(op.getStart());
    Scalars out;
    for (unsigned r = 0; r < layout.registers(); ++r) {
      Value v = context.coordinate(rewriter, op.getLoc(), layout, 0, r);
      if (start)
        v = arith::AddIOp::create(rewriter, op.getLoc(), v, e.i32(start), arith::IntegerOverflowFlags::nsw);
      out.push_back(element.isInteger(64) ? e.to64(v) : v);
    }
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerSplat : Lowering<tile::SplatOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::SplatOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    replace(rewriter, op, Scalars(context.layout(op.getType()).registers(), adaptor.getSource().front()));
    return success();
  }
};

/// An operation of one operand that only renames registers.
template <typename Op> struct LowerRenaming : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Lowering<Op>::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &from = this->context.layout(op.getSource().getType());
    const TileLayout &to = this->context.layout(op.getType());
    auto registers = matchRegisters(from, to, [&](const Coords &at) { return sourceOf(op, from, to, at); });
    if (!registers)
      return refuse(op, op.getSource().getType(), op.getType());
    replace(rewriter, op, renamed(adaptor.getSource(), *registers));
    return success();
  }

private:
  static Coords sourceOf(tile::ExpandDimsOp op, const TileLayout &, const TileLayout &, const Coords &at) {
    Coords out;
    for (unsigned d = 0; d < at.size(); ++d)
      if (d != op.getAxis())
        out.push_back(at[d]);
    return out;
  }
  static Coords sourceOf(tile::BroadcastOp, const TileLayout &from, const TileLayout &, const Coords &at) {
    Coords out = at;
    for (unsigned d = 0; d < at.size(); ++d)
      if (from.shape(d) == 1)
        out[d] = 0;
    return out;
  }
  static Coords sourceOf(tile::TransposeOp op, const TileLayout &, const TileLayout &, const Coords &at) {
    Coords out = at;
    for (unsigned i = 0; i < at.size(); ++i)
      out[op.getPerm()[i]] = at[i];
    return out;
  }
  static Coords sourceOf(tile::ReshapeOp, const TileLayout &from, const TileLayout &to, const Coords &at) {
    std::uint64_t flat = 0;
    for (unsigned d = 0; d < to.dims(); ++d)
      flat = flat * to.shape(d) + at[d];
    Coords out;
    for (unsigned d = 0; d < from.dims(); ++d)
      out.push_back(0);
    for (unsigned d = from.dims(); d-- > 0; flat /= from.shape(d))
      out[d] = static_cast<std::uint32_t>(flat % from.shape(d));
    return out;
  }
};

Coords withoutLast(const Coords &at) {
  Coords out;
  for (unsigned d = 0; d + 1 < at.size(); ++d)
    out.push_back(at[d]);
  return out;
}

struct LowerJoin : Lowering<tile::JoinOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::JoinOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const TileLayout &from = context.layout(op.getLhs().getType()), &to = context.layout(op.getType());
    const unsigned last = to.dims() - 1;
    auto registers = matchRegisters(from, to, withoutLast);
    if (!registers || LoweringContext::threadCoordinateBits(to, last))
      return refuse(op, op.getLhs().getType(), op.getType());
    Scalars out;
    for (auto [r, source] : llvm::enumerate(*registers))
      out.push_back(to.coords(r, 0, 0, 0)[last] ? adaptor.getRhs()[source] : adaptor.getLhs()[source]);
    replace(rewriter, op, std::move(out));
    return success();
  }
};

struct LowerSplit : Lowering<tile::SplitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::SplitOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const TileLayout &from = context.layout(op.getSource().getType()), &to = context.layout(op.getLhs().getType());
    auto registers = matchRegisters(from, to, [](const Coords &at) {
      Coords out = at;
      out.push_back(0);
      return out;
    });
    // From there the register that holds the other half.
    const std::optional<BitVector> step =
        layout::Span(from.core().columns(InDim::Register)).solve(from.core().unit(from.dims() - 1, 0));
    if (!registers || !step)
      return refuse(op, op.getSource().getType(), op.getLhs().getType());
    llvm::SmallVector<Scalars> halves = {renamed(adaptor.getSource(), *registers)};
    for (unsigned &r : *registers)
      r ^= static_cast<unsigned>(*step);
    halves.push_back(renamed(adaptor.getSource(), *registers));
    rewriter.replaceOpWithMultiple(op, std::move(halves));
    return success();
  }
};

} // namespace

void populateShapePatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                           const LoweringContext &context) {
  patterns.add<LowerPart, LowerRange, LowerSplat, LowerRenaming<tile::ExpandDimsOp>, LowerRenaming<tile::BroadcastOp>,
               LowerRenaming<tile::TransposeOp>, LowerRenaming<tile::ReshapeOp>, LowerJoin, LowerSplit>(converter,
                                                                                                        context);
}

} // namespace kiln::lowering
