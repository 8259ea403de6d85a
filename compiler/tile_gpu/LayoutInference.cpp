#include "compiler/tile_gpu/LayoutInference.h"

#include "compiler/tile_gpu/TileGpu.h"
#include "support/Text.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::tile_gpu {

using layout::Blocked;
using layout::Encoding;
using layout::InDim;
using layout::LinearLayout;
using layout::Sizes;
using layout::Slice;
using layout::TileLayout;
using layout::Transposed;

bool isTile(Type type) {
  return isa<RankedTensorType>(type);
}

bool hasOneLayout(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<tile::LoadOp, tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, tile::ScanOp>(op);
}

std::optional<MatrixUnit> matrixUnitOf(LayoutAttr layout) {
  const auto *mma = layout ? std::get_if<layout::Mma>(&layout.encoding().kind) : nullptr;
  if (!mma)
    return std::nullopt;
  return mma->version == 3 ? MatrixUnit::Wgmma : MatrixUnit::MmaSync;
}

std::optional<MatrixElements> matrixElementsOf(Type element, tile::Precision precision) {
  const bool rounds = precision != tile::Precision::Ieee;
  if (element.isF16())
    return matrixElements(DType::F16, rounds);
  if (element.isBF16())
    return matrixElements(DType::BF16, rounds);
  if (element.isF32())
    return matrixElements(DType::F32, rounds);
  if (isa<Float8E4M3FNType>(element))
    return matrixElements(DType::F8E4M3, rounds);
  if (isa<Float8E5M2Type>(element))
    return matrixElements(DType::F8E5M2, rounds);
  if (element.isInteger(8))
    return matrixElements(DType::I8, rounds);
  return std::nullopt;
}

bool readsShared(tile::DotOp dot) {
  return isOfWarpgroups(layoutAttrOf(dot.getType()));
}

bool fitsRegisters(RankedTensorType lhs, LayoutAttr result) {
  const LayoutAttr layout = layoutAttrOf(lhs);
  const unsigned bits = tile::storageBits(lhs.getElementType());
  if (!layout || !isOfWarpgroups(result) || lhs.getRank() != 2 || (bits != 16 && bits != 8))
    return false;
  const std::optional<LayoutAttr> wanted = dotOperandLayout(result, 0, lhs);
  return wanted && sameLayout(lhs, layout, *wanted);
}

bool readsRegisters(tile::DotOp dot) {
  return readsShared(dot) && fitsRegisters(dot.getLhs().getType(), layoutAttrOf(dot.getType()));
}

std::pair<Value, bool> viewedTile(Value operand) {
  bool turned = false;
  for (;;) {
    if (auto transpose = operand.getDefiningOp<tile::TransposeOp>()) {
      turned ^= transpose.getPerm()[0] == 1;
      operand = transpose.getSource();
    } else if (auto convert = operand.getDefiningOp<ConvertLayoutOp>()) {
      operand = convert.getSource();
    } else {
      return {operand, turned};
    }
  }
}

bool isTied(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (!isTile(operand.get()))
    return false;
  if (isa<tile::GatherOp>(op))
    return operand.getOperandNumber() == 1;
  if (auto dot = dyn_cast<tile::DotOp>(op); dot && readsShared(dot))
    return operand.getOperandNumber() == 2 || (operand.getOperandNumber() == 0 && readsRegisters(dot));
  if (auto convert = dyn_cast<ConvertLayoutOp>(op)) // at stage tile a side without a layout takes the other's
    return !layoutAttrOf(convert.getSource().getType()) || !layoutAttrOf(convert.getType());
  return hasOneLayout(op) || isa<tile::ExpandDimsOp, tile::ReduceOp, tile::BroadcastOp, tile::TransposeOp,
                                 tile::ReshapeOp, tile::JoinOp, tile::SplitOp, tile::StoreViewOp, tile::DotOp>(op);
}

namespace {

using Shape = llvm::ArrayRef<int64_t>;

Shape shapeOf(Type tile) {
  return cast<RankedTensorType>(tile).getShape();
}

Result<TileLayout> lowered(LayoutAttr attr, Shape shape) {
  return TileLayout::create(attr.encoding(), std::span<const int64_t>(shape.data(), shape.size()));
}

std::optional<LayoutAttr> fitting(MLIRContext *context, const Encoding &encoding, Type tile) {
  if (encoding.depth() > layout::maxEncodingDepth)
    return std::nullopt;
  const LayoutAttr attr = LayoutAttr::get(context, encoding);
  return fits(tile, attr) ? std::optional(attr) : std::nullopt;
}

std::optional<LayoutAttr> linear(MLIRContext *context, const Result<TileLayout> &layout, Type tile) {
  return layout ? fitting(context, layout::asLinear(layout->core()), tile) : std::nullopt;
}

std::optional<LayoutAttr> linear(MLIRContext *context, const Result<LinearLayout> &core, Type tile) {
  return core ? fitting(context, layout::asLinear(*core), tile) : std::nullopt;
}

/// The dimensions from the fastest one on.
Sizes fullOrder(const Blocked &b) {
  if (!b.order.empty())
    return b.order;
  Sizes out;
  for (std::size_t d = b.sizePerThread.size(); d-- > 0;)
    out.push_back(static_cast<std::int64_t>(d));
  return out;
}

const Blocked *plainBlocked(LayoutAttr attr) {
  const auto *b = std::get_if<Blocked>(&attr.encoding().kind);
  return b && !b->cta ? b : nullptr;
}

//===----------------------------------------------------------------------===//
// expand_dims, reduce: slices
//===----------------------------------------------------------------------===//

/// What is left of `whole` without dimension `axis`.
std::optional<LayoutAttr> sliceOf(LayoutAttr whole, Type wholeTile, unsigned axis, Type sliceTile) {
  MLIRContext *context = whole.getContext();
  if (auto out = fitting(context, Slice{static_cast<std::int64_t>(axis), whole.encoding()}, sliceTile))
    return out;
  const Result<TileLayout> layout = lowered(whole, shapeOf(wholeTile));
  return layout ? linear(context, layout->slice(axis), sliceTile) : std::nullopt;
}

const Encoding *parentOfSlice(LayoutAttr attr, unsigned axis) {
  const auto *slice = std::get_if<Slice>(&attr.encoding().kind);
  return slice && slice->dim == static_cast<std::int64_t>(axis) ? slice->parent.get() : nullptr;
}

std::optional<LayoutAttr> expanded(LayoutAttr attr, Type tile, unsigned axis, Type result) {
  MLIRContext *context = attr.getContext();
  if (const Encoding *parent = parentOfSlice(attr, axis))
    if (auto out = fitting(context, *parent, result))
      return out;
  if (const Blocked *b = plainBlocked(attr)) {
    Blocked out = *b;
    for (Sizes *sizes : {&out.sizePerThread, &out.threadsPerWarp, &out.warpsPerCTA})
      sizes->insert(sizes->begin() + axis, 1);
    out.order.clear();
    for (std::int64_t d : fullOrder(*b))
      out.order.push_back(d < static_cast<std::int64_t>(axis) ? d : d + 1);
    out.order.push_back(axis);
    if (auto fit = fitting(context, out, result))
      return fit;
  }
  const Result<TileLayout> layout = lowered(attr, shapeOf(tile));
  return layout ? linear(context, layout->core().expand(axis), result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

std::optional<LayoutAttr> beforeBroadcast(LayoutAttr attr, Type result, Type source) {
  MLIRContext *context = attr.getContext();
  if (!layout::boundShape(attr.encoding()) && fits(source, attr))
    return attr;
  Result<TileLayout> whole = lowered(attr, shapeOf(result));
  if (!whole)
    return std::nullopt;
  // Without the dimension, and then with it as one of extent 1.
  LinearLayout core = whole->core();
  for (unsigned d = 0; d < core.dims(); ++d) {
    if (shapeOf(source)[d] != 1)
      continue;
    const Result<LinearLayout> slice = core.slice(d);
    const Result<LinearLayout> back = slice ? slice->expand(d) : slice.status();
    if (!back)
      return std::nullopt;
    core = *back;
  }
  return linear(context, Result<LinearLayout>(core), source);
}

std::optional<LayoutAttr> afterBroadcast(LayoutAttr attr, Type source, Type result) {
  MLIRContext *context = attr.getContext();
  if (!layout::boundShape(attr.encoding()) && fits(result, attr))
    return attr;
  const Result<TileLayout> layout = lowered(attr, shapeOf(source));
  const Shape shape = shapeOf(result);
  const Result<layout::TileShape> tile = layout::splitExtents(std::span<const int64_t>(shape.data(), shape.size()));
  if (!layout || !tile)
    return std::nullopt;
  const LinearLayout &core = layout->core();
  const Result<LinearLayout> empty = LinearLayout::create(tile->core, {});
  if (!empty)
    return std::nullopt;
  // The same coordinates, and each grown dimension whole in the registers.
  std::vector<layout::BitVector> columns[layout::numHardwareDims];
  for (InDim in : layout::hardwareDims)
    for (layout::BitVector c : core.columns(in))
      columns[layout::index(in)].push_back(empty->flat(core.coords(c)));
  for (unsigned d = 0; d < core.dims(); ++d)
    if (shapeOf(source)[d] == 1)
      for (unsigned bit = 0; bit < empty->log2Shape(d); ++bit)
        columns[0].push_back(empty->unit(d, bit));
  return linear(context, LinearLayout::create(tile->core, {columns[0], columns[1], columns[2], columns[3], {}}),
                result);
}

//===----------------------------------------------------------------------===//
// transpose
//===----------------------------------------------------------------------===//

/// Dimension i of `result` is dimension perm[i] of the tile with layout `attr`.
std::optional<LayoutAttr> permuted(LayoutAttr attr, llvm::ArrayRef<int64_t> perm, Type result) {
  MLIRContext *context = attr.getContext();
  if (llvm::equal(perm, llvm::seq<int64_t>(0, static_cast<int64_t>(perm.size()))))
    return attr;
  if (const Blocked *b = plainBlocked(attr); b && b->sizePerThread.size() == perm.size()) {
    Blocked out;
    Sizes place(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) {
      out.sizePerThread.push_back(b->sizePerThread[perm[i]]);
      out.threadsPerWarp.push_back(b->threadsPerWarp[perm[i]]);
      out.warpsPerCTA.push_back(b->warpsPerCTA[perm[i]]);
      place[perm[i]] = static_cast<std::int64_t>(i);
    }
    for (std::int64_t d : fullOrder(*b))
      out.order.push_back(place[d]);
    return fitting(context, out, result);
  }
  Encoding parent = attr.encoding();
  Sizes all(perm.begin(), perm.end());
  if (const auto *t = std::get_if<Transposed>(&parent.kind);
      t && t->parent.get() && t->perm.size() == perm.size()) { // two in a row are one
    for (std::size_t i = 0; i < perm.size(); ++i)
      all[i] = t->perm[perm[i]];
    const Encoding inner = *t->parent.get();
    parent = inner;
  }
  if (llvm::equal(all, llvm::seq<int64_t>(0, static_cast<int64_t>(all.size()))))
    return fitting(context, parent, result);
  return fitting(context, Transposed{all, parent}, result);
}

Sizes inverse(llvm::ArrayRef<int64_t> perm) {
  Sizes out(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    out[perm[i]] = static_cast<std::int64_t>(i);
  return out;
}

//===----------------------------------------------------------------------===//
// reshape, join, split
//===----------------------------------------------------------------------===//

std::optional<LayoutAttr> reshaped(LayoutAttr attr, Type from, Type to) {
  const Result<TileLayout> layout = lowered(attr, shapeOf(from));
  const Shape shape = shapeOf(to);
  if (!layout)
    return std::nullopt;
  return linear(attr.getContext(), layout->reshape(std::span<const int64_t>(shape.data(), shape.size())), to);
}

std::optional<LayoutAttr> joined(LayoutAttr attr, Type half, Type whole) {
  MLIRContext *context = attr.getContext();
  if (const Blocked *b = plainBlocked(attr)) {
    Blocked out = *b;
    out.sizePerThread.push_back(2);
    out.threadsPerWarp.push_back(1);
    out.warpsPerCTA.push_back(1);
    out.order = fullOrder(*b);
    out.order.insert(out.order.begin(), static_cast<std::int64_t>(b->sizePerThread.size()));
    if (auto fit = fitting(context, out, whole))
      return fit;
  }
  const Result<TileLayout> layout = lowered(attr, shapeOf(half));
  return layout ? linear(context, layout->core().join(), whole) : std::nullopt;
}

std::optional<LayoutAttr> halved(LayoutAttr attr, Type whole, Type half) {
  MLIRContext *context = attr.getContext();
  const Result<TileLayout> layout = lowered(attr, shapeOf(whole));
  const Result<LinearLayout> core = layout ? layout->core().split() : layout.status();
  if (!core)
    return std::nullopt;
  if (const Blocked *b = plainBlocked(attr); b && fullOrder(*b).front() + 1 == std::ssize(b->sizePerThread) &&
                                             b->sizePerThread.back() == 2 && b->threadsPerWarp.back() == 1 &&
                                             b->warpsPerCTA.back() == 1) {
    Blocked out = *b;
    for (Sizes *sizes : {&out.sizePerThread, &out.threadsPerWarp, &out.warpsPerCTA})
      sizes->pop_back();
    out.order = fullOrder(*b);
    out.order.erase(out.order.begin());
    if (auto fit = fitting(context, out, half))
      return fit;
  }
  return linear(context, core, half);
}

//===----------------------------------------------------------------------===//
// dot
//===----------------------------------------------------------------------===//

/// The accumulator's layout that an operand's belongs to.
std::optional<LayoutAttr> dotParent(LayoutAttr operand, unsigned number, Type result) {
  const auto *dot = std::get_if<layout::DotOperand>(&operand.encoding().kind);
  if (!dot || dot->op != number || !dot->parent.get())
    return std::nullopt;
  return fitting(operand.getContext(), *dot->parent.get(), result);
}

} // namespace

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

std::optional<LayoutAttr> dotOperandLayout(LayoutAttr accumulator, unsigned number, Type operand) {
  const Encoding &parent = accumulator.encoding();
  std::int64_t kWidth = 1;
  if (std::holds_alternative<layout::Mma>(parent.kind)) // a 32-bit word of neighbours along K
    kWidth = std::max<std::int64_t>(1, 32 / tile::storageBits(tile::elementTypeOf(operand)));
  else if (!std::holds_alternative<Blocked>(parent.kind))
    return std::nullopt;
  return fitting(accumulator.getContext(), layout::DotOperand{number, kWidth, parent}, operand);
}

std::optional<LayoutAttr> operandLayout(OpOperand &operand, LayoutAttr work) {
  using Answer = std::optional<LayoutAttr>;
  Operation *op = operand.getOwner();
  if (!isTied(operand))
    return std::nullopt;
  const Type source = operand.get().getType();
  const Type result = op->getNumResults() ? op->getResult(0).getType() : source;
  return llvm::TypeSwitch<Operation *, Answer>(op)
      .Case([&](tile::ExpandDimsOp e) { return sliceOf(work, result, static_cast<unsigned>(e.getAxis()), source); })
      .Case([&](tile::ReduceOp r) -> Answer {
        // Which of the many layouts with this slice?  The one that the slice was cut from.
        if (const Encoding *parent = parentOfSlice(work, static_cast<unsigned>(r.getAxis())))
          return fitting(work.getContext(), *parent, source);
        return std::nullopt;
      })
      .Case([&](tile::BroadcastOp) { return beforeBroadcast(work, result, source); })
      .Case([&](tile::TransposeOp t) { return permuted(work, inverse(t.getPerm()), source); })
      .Case([&](tile::ReshapeOp) { return reshaped(work, result, source); })
      .Case([&](tile::JoinOp) { return halved(work, result, source); })
      .Case([&](tile::SplitOp) { return joined(work, result, source); })
      .Case([&](tile::DotOp) -> Answer {
        const unsigned number = operand.getOperandNumber();
        return number == 2 ? Answer(work) : dotOperandLayout(work, number, source);
      })
      .Default([&](Operation *) { return fits(source, work) ? Answer(work) : std::nullopt; });
}

std::optional<LayoutAttr> workLayout(OpOperand &operand, LayoutAttr layout) {
  using Answer = std::optional<LayoutAttr>;
  Operation *op = operand.getOwner();
  if (!isTied(operand))
    return std::nullopt;
  const Type source = operand.get().getType();
  const Type result = op->getNumResults() ? op->getResult(0).getType() : source;
  if (!isTile(result)) // a reduction to a scalar
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Answer>(op)
      .Case([&](tile::ExpandDimsOp e) { return expanded(layout, source, static_cast<unsigned>(e.getAxis()), result); })
      .Case([&](tile::ReduceOp r) { return sliceOf(layout, source, static_cast<unsigned>(r.getAxis()), result); })
      .Case([&](tile::BroadcastOp) { return afterBroadcast(layout, source, result); })
      .Case([&](tile::TransposeOp t) { return permuted(layout, t.getPerm(), result); })
      .Case([&](tile::ReshapeOp) { return reshaped(layout, source, result); })
      .Case([&](tile::JoinOp) { return joined(layout, source, result); })
      .Case([&](tile::SplitOp) { return halved(layout, source, result); })
      .Case([&](tile::DotOp) -> Answer {
        const unsigned number = operand.getOperandNumber();
        return number == 2 ? Answer(layout) : dotParent(layout, number, result);
      })
      .Default([&](Operation *) { return fits(result, layout) ? Answer(layout) : std::nullopt; });
}

bool carriesForward(OpOperand &operand, LayoutAttr layout) {
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(operand.getOwner()))
    return parentOfSlice(layout, static_cast<unsigned>(expand.getAxis())) != nullptr;
  if (isa<tile::BroadcastOp>(operand.getOwner()))
    return !layout::boundShape(layout.encoding());
  return true;
}

bool fits(Type tile, LayoutAttr layout) {
  return lowered(layout, shapeOf(tile)).ok();
}

bool sameLayout(Type tile, LayoutAttr a, LayoutAttr b) {
  if (a == b)
    return true;
  const Result<TileLayout> x = lowered(a, shapeOf(tile)), y = lowered(b, shapeOf(tile));
  return x && y && *x == *y;
}

static std::string listText(Shape shape) {
  std::string out;
  for (int64_t extent : shape)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

static std::uint64_t threadWords(Type tile, const TileLayout &layout) {
  return (std::uint64_t(layout.registers()) * std::max(8u, planBits(tile)) + 31) / 32;
}

std::uint64_t threadWords(Type type) {
  if (isa<PendingType>(type))
    type = tileOf(type);
  if (!isTile(type))
    return 0;
  const Result<TileLayout> layout = layoutOf(type);
  return layout ? threadWords(type, *layout) : 0;
}

Status checkWarps(unsigned warps) {
  if (llvm::isPowerOf2_32(warps))
    return {};
  return Status(
      StatusCode::CompileError,
      format("a tile is spread over a power of two of warps, and %u warps execute this (tile.num_warps)", warps),
      "use 1, 2, 4, 8, 16 or 32 warps; a kernel without tiles may have any number up to 32");
}

Status checkPlaces(Type tile, unsigned warps) {
  KILN_TRY(checkWarps(warps));
  KILN_ASSIGN(const TileLayout layout, layoutOf(tile));
  if (layout.core().size(InDim::Warp) != warps)
    return Status(StatusCode::CompileError,
                  format("L05: the layout %s has %u warps, the kernel %u", layoutAttrOf(tile).text().str().c_str(),
                         layout.core().size(InDim::Warp), warps),
                  "make the product of warpsPerCTA (or of the warp bases) and tile.num_warps equal");
  const std::uint64_t words = threadWords(tile, layout);
  if (words <= maxThreadWords)
    return {};
  return Status(StatusCode::CompileError,
                format("L18: the tile of %s takes %llu registers of 32 bits a thread; the limit is %u",
                       listText(shapeOf(tile)).c_str(), static_cast<unsigned long long>(words), maxThreadWords),
                "use more warps (tile.num_warps) or a smaller tile");
}

} // namespace kiln::tile_gpu
