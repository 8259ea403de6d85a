// What is known of the addresses and masks of memory operations, and the widest access that follows.
#include "compiler/analysis/AxisAnalysis.h"

#include "compiler/analysis/AxisTransfer.h"
#include "compiler/layout/MemoryAccess.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace kiln::analysis {

using layout::AxisInfo;
using layout::Coords;
using Facts = AxisInfo::Facts;

Type accessedTile(Operation *op) {
  const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(op);
  return access ? Type(access->tile) : Type();
}

namespace {

/// Everything is in bounds.
AxisInfo noMask(const Coords &shape) {
  return AxisInfo::splat(1, shape);
}

std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(AxisInfo::big, std::uint64_t(a) * b));
}

/// A tile of a view: contiguous along the unit dimension; how its first element is aligned follows from the base, the
/// other strides and the coordinates.
AccessFacts viewFacts(const AxisAnalysis &analysis, Value view, ValueRange coords, const Coords &shape) {
  const AxisInfo nothing = AxisInfo::unknown(shape);
  const tile::ViewType type = cast<tile::ViewType>(view.getType());
  const int64_t unit = type.getUnit();
  if (unit == tile::ViewType::noUnit)
    return {nothing, nothing};
  const unsigned u = static_cast<unsigned>(unit);
  const std::uint32_t extent = std::bit_ceil(shape[u]);
  Facts c(shape.size(), 1), v(shape.size(), 1), k(shape.size(), 1);
  c[u] = extent;

  // Where the tile starts along each dimension of the view, from here to where it was made, and what bounds it along
  // the unit dimension.
  struct Along {
    std::uint32_t start; ///< a multiple of this
    bool one;            ///< tiles have extent 1
  };
  llvm::SmallVector<Along> dims;
  for (auto [d, coord] : llvm::enumerate(coords))
    dims.push_back({analysis.divisibility(coord), shape[static_cast<unsigned>(d)] == 1});
  size_t at = u; // the unit dimension among them
  std::uint32_t bounds = std::min(extent, dims[at].start);
  for (Operation *op = view.getDefiningOp(); op; op = view.getDefiningOp()) {
    if (auto narrow = dyn_cast<tile::NarrowViewOp>(op)) {
      Along &along = dims[narrow.getDim()];
      along.start = std::min(along.start, analysis.divisibility(narrow.getStart()));
      if (narrow.getDim() == at)
        bounds = std::min({bounds, analysis.divisibility(narrow.getSize()), along.start});
      view = narrow.getView();
    } else if (auto slice = dyn_cast<tile::SliceViewOp>(op)) {
      for (auto [d, coord] : llvm::zip_equal(slice.getDims(), slice.getCoords())) {
        dims.insert(dims.begin() + d, Along{analysis.divisibility(coord), true});
        at += static_cast<size_t>(d) <= at ? 1 : 0;
      }
      view = slice.getView();
    } else {
      break;
    }
  }
  auto make = view.getDefiningOp<tile::MakeViewOp>();
  if (!make) { // a view that comes through control flow: contiguous, and nothing else
    return {AxisInfo::known(c, v, k, shape), nothing};
  }
  bounds = std::min(bounds, analysis.divisibility(make.getExtents()[static_cast<unsigned>(at)]));
  std::uint32_t aligned = std::min(analysis.divisibility(make.getPointer()), dims[at].start);
  for (auto [d, along] : llvm::enumerate(dims)) {
    if (d == at)
      continue;
    const std::uint32_t stride = analysis.divisibility(make.getStrides()[static_cast<unsigned>(d)]);
    aligned = std::min(aligned, along.one ? product(stride, along.start) : stride);
  }
  v[u] = aligned;
  Facts together(shape.size(), 1);
  together[u] = bounds;
  return {AxisInfo::known(c, v, k, shape), AxisInfo::known(k, k, together, shape)};
}

} // namespace

std::optional<AccessFacts> AxisAnalysis::access(Operation *op) const {
  const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(op);
  const std::optional<Coords> shape = access && access->tile ? factShape(access->tile) : std::nullopt;
  if (!shape || access->tile.getRank() == 0)
    return std::nullopt;
  if (isa<tile::ViewType>(access->memory.getType()))
    return viewFacts(*this, access->memory, access->coords, *shape);
  const std::optional<AxisInfo> address = facts(access->memory),
                                mask = access->mask ? facts(access->mask) : noMask(*shape);
  if (!address || !mask)
    return std::nullopt;
  return AccessFacts{*address, *mask};
}

/// A tile of a view that goes into a product, or comes from one.
static bool isTileOfProduct(Operation *op) {
  const auto holdsDot = [](const SetVector<Operation *> &slice) {
    return llvm::any_of(slice, [](Operation *o) { // itself, or the loop that adds up
      return o->walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    });
  };
  SetVector<Operation *> slice;
  if (isa<tile::LoadViewOp>(op)) {
    getForwardSlice(op, &slice);
  } else if (auto store = dyn_cast<tile::StoreViewOp>(op)) {
    BackwardSliceOptions options;
    options.omitUsesFromAbove = false;
    (void)getBackwardSlice(store.getValue(), &slice, options);
  }
  return holdsDot(slice);
}

std::optional<AccessFacts> AxisAnalysis::usualAccess(Operation *op) const {
  std::optional<AccessFacts> out = access(op);
  if (out && isTileOfProduct(op))
    out->mask = noMask(*factShape(accessedTile(op)));
  return out;
}

/// What units of memory add several of at a time: `red` knows no acquire.
static bool isSumOfFloats(Operation *op) {
  auto atomic = dyn_cast<tile::AtomicRmwOp>(op);
  return atomic && atomic.getResult().use_empty() && atomic.getKind() == tile::Rmw::Add &&
         (atomic.getOrder() == tile::Order::Relaxed || atomic.getOrder() == tile::Order::Release) &&
         tile::elementTypeOf(atomic.getValue().getType()).isF32();
}

VectorAccess vectorAccess(Operation *op, const AccessFacts &facts, const layout::TileLayout &layout,
                          unsigned maxBytes) {
  VectorAccess best;
  const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(op);
  if (!access || (access->atomic && !isSumOfFloats(op)))
    return best;
  if (auto cache = op->getAttrOfType<tile::CacheAttr>("cache"); cache && cache.getValue() == tile::Cache::Volatile)
    return best;
  Type element = tile::elementTypeOf(access->tile);
  if (auto pointer = dyn_cast<tile::PtrType>(element))
    element = pointer.getPointee();
  const unsigned bits = tile::storageBits(element);
  for (unsigned d = 0; d < facts.address.dims() && d < layout.dims(); ++d) {
    const std::uint32_t alignment = product(facts.address.divisibility(d), bits / 8);
    const unsigned elements = layout::vectorElements(layout.core(), d, bits, facts.address.contiguity(d), alignment,
                                                     facts.mask.constancy(d), maxBytes);
    if (elements > best.elements)
      best = {d, elements};
  }
  return best;
}

VectorAccess unmaskedAccess(Operation *op, const AccessFacts &facts, const layout::TileLayout &layout) {
  const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(op);
  const auto view = access ? dyn_cast<tile::ViewType>(access->memory.getType()) : tile::ViewType();
  const int64_t unit = view ? view.getUnit() : tile::ViewType::noUnit;
  auto cache = op->getAttrOfType<tile::CacheAttr>("cache");
  if (unit == tile::ViewType::noUnit || (cache && cache.getValue() == tile::Cache::Volatile))
    return vectorAccess(op, facts, layout);
  const unsigned bits = tile::storageBits(tile::elementTypeOf(accessedTile(op))), d = static_cast<unsigned>(unit);
  const std::uint32_t alignment = product(facts.address.divisibility(d), bits / 8);
  return {d, layout::vectorElements(layout.core(), d, bits, facts.address.contiguity(d), alignment)};
}

bool beginsAtZero(Value view) {
  for (;;) {
    if (auto narrow = view.getDefiningOp<tile::NarrowViewOp>()) {
      if (static_cast<int64_t>(narrow.getDim()) == narrow.getType().getUnit())
        return false;
      view = narrow.getView();
    } else if (auto slice = view.getDefiningOp<tile::SliceViewOp>()) {
      if (slice.getType().getUnit() == tile::ViewType::noUnit)
        return false;
      view = slice.getView();
    } else {
      return view.getDefiningOp<tile::MakeViewOp>() != nullptr;
    }
  }
}

VectorAccess AxisAnalysis::vectorAccess(Operation *op, unsigned maxBytes) const {
  const std::optional<AccessFacts> known = access(op);
  if (!known)
    return {};
  const Result<layout::TileLayout> layout = tile_gpu::layoutOf(accessedTile(op));
  return layout ? analysis::vectorAccess(op, *known, *layout, maxBytes) : VectorAccess();
}

} // namespace kiln::analysis
