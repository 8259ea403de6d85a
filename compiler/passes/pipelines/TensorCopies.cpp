#include "compiler/passes/pipelines/TensorCopies.h"

#include "compiler/analysis/PointerRoots.h"
#include "compiler/tile_gpu/TensorMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln {

using tile_gpu::BufferType;

namespace {

/// Bytes that divide addresses and strides of a map.
constexpr uint32_t alignment = 16;
constexpr unsigned mostBox = 256, rowsOfPattern = 8;

Status unfit(std::string why) {
  return Status::invalid(std::move(why));
}

/// A view as slices of what a make_view gives.
struct Slices {
  tile::MakeViewOp source;
  llvm::SmallVector<Value, 5> fixed;   ///< by dimension of the source; null: the view has that dimension
  llvm::SmallVector<unsigned, 5> dims; ///< of the source, by dimension of the view
};

Result<Slices> slicesOf(Value view) {
  Operation *op = view.getDefiningOp();
  if (auto source = dyn_cast_if_present<tile::MakeViewOp>(op)) {
    Slices out{source, {}, {}};
    const auto rank = static_cast<unsigned>(source.getType().getRank());
    out.fixed.resize(rank);
    for (unsigned d = 0; d < rank; ++d)
      out.dims.push_back(d);
    return out;
  }
  if (auto slice = dyn_cast_if_present<tile::SliceViewOp>(op)) {
    KILN_ASSIGN(Slices out, slicesOf(slice.getView()));
    const llvm::SmallVector<unsigned, 5> of = std::exchange(out.dims, {});
    for (auto [d, coord] : llvm::zip_equal(slice.getDims(), slice.getCoords()))
      out.fixed[of[static_cast<size_t>(d)]] = coord;
    for (const unsigned d : of)
      if (!out.fixed[d])
        out.dims.push_back(d);
    return out;
  }
  if (isa_and_nonnull<tile::NarrowViewOp>(op))
    return unfit("its view is narrowed, and a tensor map knows the whole tensor's bounds only");
  return unfit("its view is not made where the kernel begins");
}

bool isArgument(Value v) {
  const auto argument = dyn_cast<BlockArgument>(v);
  return argument && argument.getOwner()->isEntryBlock() && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// Over symbols, of which number N is argument N; null if it is made of more than arguments.
AffineExpr expressionOf(Value v) {
  MLIRContext *context = v.getContext();
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), context);
  if (isArgument(v))
    return getAffineSymbolExpr(cast<BlockArgument>(v).getArgNumber(), context);
  if (isa<BlockArgument>(v)) // of a loop
    return {};
  const auto both = [](Operation *op, auto combine) {
    const AffineExpr a = expressionOf(op->getOperand(0)), b = expressionOf(op->getOperand(1));
    return a && b ? combine(a, b) : AffineExpr();
  };
  return llvm::TypeSwitch<Operation *, AffineExpr>(v.getDefiningOp())
      .Case<tile::MultipleOfOp, arith::ExtSIOp>([](Operation *op) { return expressionOf(op->getOperand(0)); })
      .Case([&](arith::AddIOp op) { return both(op, [](AffineExpr a, AffineExpr b) { return a + b; }); })
      .Case([&](arith::MulIOp op) { return both(op, [](AffineExpr a, AffineExpr b) { return a * b; }); })
      .Default([](Operation *) { return AffineExpr(); });
}

/// As a tensor map names it; empty: none.
llvm::StringRef elementName(Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (type.isF32())
    return "f32";
  return tile::storageBits(type) == 8 ? "u8" : "";
}

/// The longest box along rows of which whole ones fill the tile; 0: none.
int64_t boxRows(int64_t rows) {
  if (rows <= mostBox)
    return rows;
  for (int64_t box = mostBox; box >= rowsOfPattern; box -= rowsOfPattern)
    if (rows % box == 0)
      return box;
  return 0;
}

/// A coordinate in 32 bits; one that does not fit stays outside of any tensor.
Value inWord(OpBuilder &b, Location loc, Value coordinate) {
  const Type word = b.getI32Type(), is = coordinate.getType();
  if (is == word)
    return coordinate;
  const auto bound = [&](int64_t v) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(is, v)); };
  coordinate = arith::MaxSIOp::create(b, loc, coordinate, bound(INT32_MIN));
  coordinate = arith::MinSIOp::create(b, loc, coordinate, bound(INT32_MAX));
  return arith::TruncIOp::create(b, loc, word, coordinate);
}

} // namespace

void TensorCopy::create(OpBuilder &b, tile::LoadViewOp load, Value buffer, const IRMapping &map, Value barriers,
                        Value number) const {
  llvm::SmallVector<Value> coords;
  for (auto [d, coordinate] : llvm::enumerate(fixed)) {
    const auto *own = llvm::find(dims, static_cast<int32_t>(d));
    const Value at = own == dims.end() ? coordinate : load.getCoords()[static_cast<size_t>(own - dims.begin())];
    coords.push_back(inWord(b, load.getLoc(), map.lookupOrDefault(at)));
  }
  const BlockArgument argument = tile_gpu::tensorMapArgument(load->getParentOfType<func::FuncOp>(), recipe);
  tile_gpu::TensorCopyOp::create(b, load.getLoc(), argument, coords, buffer, dims, barriers, number);
}

Result<TensorCopy> tensorCopyOf(Operation *load, BufferType buffer, const analysis::AxisAnalysis &facts,
                                const Target &target) {
  if (!target.has(Capability::Tma))
    return unfit(std::string(target.name) + " has no copies by tensor maps");
  if (load->getParentOfType<func::FuncOp>()->hasAttr(tile_gpu::noTensorMapsAttr))
    return unfit("the launcher can make no tensor map of these arguments");
  auto of = dyn_cast<tile::LoadViewOp>(load);
  if (!of)
    return unfit("it loads by pointers");
  KILN_ASSIGN(const Slices view, slicesOf(of.getView()));
  // What threads write the copy engine sees after a fence of global memory only, and nobody makes one.
  if (analysis::mayBeWritten(load))
    return unfit("the kernel may write to the same argument, or acquires what others write");
  tile::MakeViewOp source = view.source;
  const tile::ViewType type = source.getType();
  const auto rank = static_cast<unsigned>(type.getRank());
  if (type.getUnit() == tile::ViewType::noUnit)
    return unfit("no dimension of its view is known to be contiguous");
  const auto unit = static_cast<unsigned>(type.getUnit());
  const auto *tma = std::get_if<layout::Tma>(&cast<tile_gpu::SharedLayoutAttr>(buffer.getLayout()).encoding().kind);
  const llvm::StringRef element = elementName(type.getElementType());
  if (!tma || element.empty() || rank > kiln::TensorMapRecipe::maxRank)
    return unfit("no tensor map describes such tiles");
  const int64_t bytes = tile::storageBits(type.getElementType()) / 8;
  if (!isArgument(source.getPointer()))
    return unfit("its view does not begin at an argument of the kernel");
  if (facts.divisibility(source.getPointer()) * bytes % alignment)
    return unfit("the tensor is not known to begin at a multiple of 16 bytes");

  // The tensor's dimensions, the contiguous one first.
  llvm::SmallVector<unsigned, 5> order = {unit};
  for (unsigned d = rank; d-- > 0;)
    if (d != unit)
      order.push_back(d);
  TensorCopy out;
  llvm::SmallVector<AffineExpr> extents, strides;
  llvm::SmallVector<int64_t> box;
  for (const unsigned d : order) {
    const AffineExpr extent = expressionOf(source.getExtents()[d]), stride = expressionOf(source.getStrides()[d]);
    if (!extent || (d != unit && !stride))
      return unfit("an extent or a stride of its view is made of more than arguments of the kernel");
    if (d != unit && facts.divisibility(source.getStrides()[d]) * bytes % alignment)
      return unfit("a stride of its view is not known to be a multiple of 16 bytes");
    extents.push_back(extent);
    if (d != unit)
      strides.push_back(stride * bytes);
    out.fixed.push_back(view.fixed[d]);
    box.push_back(1);
  }
  const auto inner = static_cast<unsigned>(tma->order.empty() ? buffer.getShape().size() - 1 : tma->order[0]);
  for (auto [d, from] : llvm::enumerate(view.dims)) {
    const auto at = static_cast<int32_t>(llvm::find(order, from) - order.begin());
    if ((at == 0) != (d == inner))
      return unfit("its contiguous dimension is not the buffer's");
    const int64_t whole = buffer.getShape()[d];
    box[static_cast<size_t>(at)] = d != inner ? boxRows(whole) : tma->swizzle ? tma->swizzle / bytes : whole;
    if (!box[static_cast<size_t>(at)])
      return unfit("no box of a tensor map fills a tile of " + std::to_string(buffer.getShape()[d]) + " rows");
    out.dims.push_back(at);
  }
  MLIRContext *context = load->getContext();
  const auto mapOf = [&](llvm::ArrayRef<AffineExpr> of) {
    unsigned symbols = 0;
    for (const AffineExpr all : of)
      all.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          symbols = std::max(symbols, symbol.getPosition() + 1);
      });
    return AffineMap::get(0, symbols, of, context);
  };
  const std::string swizzle = tma->swizzle ? std::to_string(tma->swizzle) + "B" : "none";
  const auto silent = [&] { return mlir::emitError(load->getLoc()); };
  const ScopedDiagnosticHandler silence(context, [](Diagnostic &) { return success(); });
  const auto form = [&](auto make) {
    return make(element, cast<BlockArgument>(source.getPointer()).getArgNumber(), mapOf(extents), mapOf(strides),
                DenseI64ArrayAttr::get(context, box), DenseI64ArrayAttr(), llvm::StringRef(swizzle),
                llvm::StringRef("none"), llvm::StringRef("128B"), llvm::StringRef("zeros"));
  };
  const bool good =
      succeeded(form([&](auto... fields) { return tile_gpu::TensorMapRecipeAttr::verify(silent, fields...); }));
  if (good)
    out.recipe = form([&](auto... fields) { return tile_gpu::TensorMapRecipeAttr::get(context, fields...); });
  if (!out.recipe)
    return unfit("its box or its expressions break a rule of tensor maps");
  return out;
}

} // namespace kiln
