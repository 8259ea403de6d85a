#include "compiler/layout/TileLayout.h"

#include "compiler/layout/Checks.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

unsigned TileShape::repetitions() const {
  unsigned out = 1;
  for (std::uint32_t m : counts)
    out *= m;
  return out;
}

Coords TileShape::repCoords(unsigned rep) const {
  Coords out(dims(), 0);
  for (unsigned d = dims(); d-- > 0;) {
    out[d] = rep % counts[d];
    rep /= counts[d];
  }
  return out;
}

unsigned TileShape::repIndex(std::span<const std::uint32_t> repCoords) const {
  unsigned out = 0;
  for (unsigned d = 0; d < dims(); ++d)
    out = out * counts[d] + repCoords[d];
  return out;
}

Sizes TileShape::extents() const {
  Sizes out;
  for (unsigned d = 0; d < dims(); ++d)
    out.push_back(extent(d));
  return out;
}

namespace {

/// A legal tile has at most 2^20 core elements, so no extent exceeds this one.
constexpr std::int64_t maxExtent = std::int64_t(maxRepetitions) << maxTensorBits;

/// The smallest m * 2^k >= extent.
std::int64_t roundUp(std::int64_t extent, std::int64_t m) {
  std::int64_t out = m;
  while (out < extent)
    out *= 2;
  return out;
}

struct PaddingSearch {
  std::span<const std::int64_t> shape;
  Sizes now, best;
  double bestVolume = 0;

  void visit(unsigned room, double volume) {
    std::size_t d = now.size();
    if (d == shape.size()) {
      if (best.empty() || volume < bestVolume) {
        best = now;
        bestVolume = volume;
      }
      return;
    }
    for (unsigned m = 1; m <= room; m += 2) {
      now.push_back(roundUp(shape[d], m));
      visit(room / m, volume * static_cast<double>(now.back()));
      now.pop_back();
    }
  }
};

} // namespace

std::optional<Sizes> paddedShape(std::span<const std::int64_t> shape) {
  double least = 1;
  for (std::int64_t extent : shape) {
    if (extent < 1 || extent > maxExtent)
      return std::nullopt;
    least *= static_cast<double>(extent);
  }
  if (shape.size() > maxDims || least > static_cast<double>(maxExtent))
    return std::nullopt;
  // Odd factors with a product of at most 15: a handful of combinations whatever the rank.
  PaddingSearch search{shape, {}, {}, 0};
  search.visit(maxRepetitions, 1);
  return search.best;
}

Result<TileShape> splitExtents(std::span<const std::int64_t> shape) {
  if (shape.size() > maxDims)
    return checkExtents(shape).takeStatus();
  TileShape out;
  std::uint64_t product = 1;
  unsigned coreBits = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t extent = shape[d];
    if (extent < 1)
      return Status::invalid(
          format("L01: extent %lld of dimension %zu is not positive", static_cast<long long>(extent), d),
          "give it a positive extent");
    unsigned log = static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(extent)));
    std::uint64_t odd = static_cast<std::uint64_t>(extent) >> log;
    product = odd > maxRepetitions || product > maxRepetitions ? maxRepetitions + 1 : product * odd;
    coreBits += log;
    if (coreBits > maxTensorBits || extent > maxExtent)
      return Status::invalid(
          format("L18: a tile of %s has more than 2^%u elements", shapeText(shape).c_str(), maxTensorBits),
          "use a smaller tile");
    if (product > maxRepetitions) {
      auto padded = paddedShape(shape);
      return Status::invalid(
          format("L01: extents %s are no powers of two times odd factors with a product of at most %u",
                 shapeText(shape).c_str(), maxRepetitions),
          padded ? "pad through the view to " + shapeText(*padded) : "use a smaller tile");
    }
    out.core.push_back(std::uint32_t(1) << log);
    out.counts.push_back(static_cast<std::uint32_t>(odd));
  }
  return out;
}

Result<TileLayout> TileLayout::create(const Encoding &encoding, std::span<const std::int64_t> shape) {
  TileLayout out;
  KILN_ASSIGN(out.tileShape, splitExtents(shape));
  KILN_ASSIGN(out.coreLayout, lower(encoding, out.tileShape.coreSizes()));
  return out;
}

Result<TileLayout> TileLayout::create(const LinearLayout &core, std::span<const std::uint32_t> counts) {
  TileLayout out;
  Sizes list(counts.begin(), counts.end());
  KILN_TRY(checkLength("repetitions", list, core.dims()));
  std::uint64_t product = 1;
  for (std::uint32_t m : counts) {
    product = m > maxRepetitions || m % 2 == 0 ? maxRepetitions + 1u : product * m;
    if (product > maxRepetitions)
      return Status::invalid(format("L01: repetitions %s are not odd with a product of at most %u",
                                    listText(list).c_str(), maxRepetitions),
                             "pad through the view");
  }
  out.coreLayout = core;
  out.tileShape.core = core.shape();
  out.tileShape.counts = Coords(counts);
  return out;
}

Sizes TileLayout::shape() const {
  return tileShape.extents();
}

Coords TileLayout::coords(unsigned reg, unsigned lane, unsigned warp, unsigned block) const {
  unsigned coreRegisters = coreLayout.size(InDim::Register);
  return coords(TileElement{reg / coreRegisters, coreLayout.apply(reg % coreRegisters, lane, warp, block)});
}

Coords TileLayout::coords(const TileElement &element) const {
  Coords out = coreLayout.coords(element.coreFlat), rep = tileShape.repCoords(element.rep);
  for (unsigned d = 0; d < dims(); ++d)
    out[d] += rep[d] * tileShape.core[d];
  return out;
}

TileElement TileLayout::locate(std::span<const std::uint32_t> coords) const {
  Coords rep, inner;
  for (unsigned d = 0; d < dims(); ++d) {
    rep.push_back(coords[d] / tileShape.core[d]);
    inner.push_back(coords[d] % tileShape.core[d]);
  }
  return {tileShape.repIndex(rep), coreLayout.flat(inner)};
}

Result<TileLayout> TileLayout::slice(unsigned d) const {
  TileLayout out;
  KILN_ASSIGN(out.coreLayout, coreLayout.slice(d));
  for (unsigned e = 0; e < dims(); ++e) {
    if (e == d)
      continue;
    out.tileShape.core.push_back(tileShape.core[e]);
    out.tileShape.counts.push_back(tileShape.counts[e]);
  }
  return out;
}

Result<TileLayout> TileLayout::transpose(std::span<const unsigned> perm) const {
  TileLayout out;
  KILN_ASSIGN(out.coreLayout, coreLayout.transpose(perm));
  for (unsigned p : perm) {
    out.tileShape.core.push_back(tileShape.core[p]);
    out.tileShape.counts.push_back(tileShape.counts[p]);
  }
  return out;
}

unsigned TileLayout::transposedRep(std::span<const unsigned> perm, unsigned rep) const {
  Coords at = tileShape.repCoords(rep);
  unsigned out = 0;
  for (unsigned p : perm)
    out = out * tileShape.counts[p] + at[p];
  return out;
}

Result<TileLayout> TileLayout::reshape(std::span<const std::int64_t> newShape) const {
  TileLayout out;
  KILN_ASSIGN(out.tileShape, splitExtents(newShape));
  std::uint64_t elements = 1, newElements = 1;
  for (unsigned d = 0; d < dims(); ++d)
    elements *= shape(d);
  for (unsigned d = 0; d < out.tileShape.dims(); ++d)
    newElements *= out.tileShape.extent(d);
  if (elements != newElements)
    return Status::invalid(format("L11: a reshape of %s to %s changes the number of elements from %llu to %llu",
                                  shapeText(shape()).c_str(), shapeText(newShape).c_str(),
                                  static_cast<unsigned long long>(elements),
                                  static_cast<unsigned long long>(newElements)),
                           "keep the product of the extents");
  // A counted dimension is whole if one of the same extent has as many elements after it; the power-of-two dimensions
  // between counted ones may regroup freely.
  struct Counted {
    std::uint64_t extent, after;
    bool operator==(const Counted &) const = default;
  };
  auto countedDims = [](const TileShape &tile) {
    std::vector<Counted> list;
    std::uint64_t after = 1;
    for (unsigned d = tile.dims(); d-- > 0; after *= tile.extent(d))
      if (tile.counts[d] > 1)
        list.push_back({tile.extent(d), after});
    return list;
  };
  if (countedDims(tileShape) != countedDims(out.tileShape))
    return Status::invalid(format("L11: a reshape of %s to %s splits or merges a dimension that is no power of two",
                                  shapeText(shape()).c_str(), shapeText(newShape).c_str()),
                           "keep each such dimension whole, or pad it to a power of two through the view");
  KILN_ASSIGN(out.coreLayout, coreLayout.reshape(out.tileShape.core));
  return out;
}

std::string TileLayout::text() const {
  std::string out = coreLayout.text();
  if (repetitions() == 1)
    return out;
  out += out.empty() ? "repeat:" : "; repeat:";
  for (unsigned d = 0; d < dims(); ++d)
    if (tileShape.counts[d] > 1)
      out += format(" %c%u", 'i' + int(d), tileShape.counts[d]);
  return out;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

namespace {

/// Fields of offset bits that weigh `weights` bytes each, bit 0 first.
OffsetFields fieldsOf(std::span<const std::uint64_t> weights, unsigned storageBytes) {
  OffsetFields out;
  for (unsigned i = 0; i < weights.size(); ++i) {
    if (out.empty() || weights[i] != out.back().bytes << out.back().bits)
      out.push_back({i, 0, weights[i]});
    ++out.back().bits;
  }
  if (out.empty()) // a single element
    out.push_back({0, 0, storageBytes});
  return out;
}

} // namespace

Result<SharedTile> SharedTile::create(const SharedEncoding &encoding, std::span<const std::int64_t> shape,
                                      unsigned bits) {
  SharedTile out(encoding);
  KILN_ASSIGN(out.tileShape, splitExtents(shape));
  KILN_ASSIGN(out.coreLayout, lowerShared(encoding, out.tileShape.coreSizes(), bits));
  KILN_ASSIGN(out.mu, inverseRows(out.coreLayout.columns(InDim::Offset), out.coreLayout.totalBits()));
  out.elementBits = bits;
  if (const auto *tma = std::get_if<Tma>(&encoding.kind))
    KILN_TRY(out.placeAsHardware(*tma));
  else
    out.placeSlabs();
  return out;
}

void SharedTile::placeSlabs() {
  const std::uint64_t element = storageBytes(elementBits), align = alignment();
  InlineVector<std::uint64_t, maxBitsPerInput> weights;
  for (unsigned i = 0; i < coreLayout.totalBits(); ++i)
    weights.push_back(paddedOffset(how, std::uint64_t(1) << i) * element);
  offsetFields = fieldsOf(weights, storageBytes(elementBits));
  const std::uint64_t core = layout::byteOf(offsetFields, coreLayout.numElements() - 1u) + element;
  std::uint64_t stride = (core + align - 1) / align * align;
  size = stride * (tileShape.repetitions() - 1) + core;
  strides.resize(tileShape.dims(), 0);
  for (unsigned d = tileShape.dims(); d-- > 0; stride *= tileShape.counts[d])
    strides[d] = stride;
}

/// Columns of S bytes one after the other, in each its rows one after the other.  No swizzle: one column of whole rows.
Status SharedTile::placeAsHardware(const Tma &tma) {
  // lowerShared() has accepted the order.
  const Sizes order = tma.order.empty() ? lastDimFirst(tileShape.dims()) : tma.order;
  const auto innermost = static_cast<unsigned>(order[0]);
  const std::uint64_t element = storageBytes(elementBits), coreRow = tileShape.core[innermost] * element;
  const std::uint64_t column = tma.swizzle ? static_cast<std::uint64_t>(tma.swizzle) : coreRow;

  InlineVector<std::uint64_t, maxBitsPerInput> weights;
  std::uint64_t below = element; // bytes of everything inside the next bit or dimension
  for (; below < column; below *= 2)
    weights.push_back(below);
  strides.resize(tileShape.dims(), 0);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto d = static_cast<unsigned>(order[i]);
    for (std::uint64_t step = 1; step < tileShape.core[d]; step *= 2)
      weights.push_back(step * below);
    strides[d] = below * tileShape.core[d];
    below *= tileShape.extent(d);
  }
  for (std::uint64_t at = column; at < coreRow; at *= 2)
    weights.push_back(at / column * below);
  strides[innermost] = coreRow / column * below;
  size = strides[innermost] * tileShape.counts[innermost];
  offsetFields = fieldsOf(weights, storageBytes(elementBits));

  if (!tma.swizzle && below > column && tileShape.counts[innermost] > 1)
    return Status::invalid(
        format("L14: swizzle = 0 of rows of %u elements: rows without a swizzle are whole, and of a power of two",
               tileShape.extent(innermost)),
        coreRow >= 32 ? format("use swizzle = %u", static_cast<unsigned>(std::min<std::uint64_t>(coreRow, 128)))
                      : std::string("pad the row through the view, or use a swizzled buffer"));
  // What is added to a place keeps its swizzle and its alignment; what lanes add differently, its bank too.
  const OffsetField &first = offsetFields[0];
  const std::uint64_t repeats = 8 * static_cast<std::uint64_t>(tma.swizzle), banks = 128, widest = 16;
  const std::uint64_t fields = repeats ? repeats : banks,
                      repetitions = repeats ? repeats : std::min(widest, first.bytes << first.bits);
  auto check = [&](std::uint64_t step, std::uint64_t period) -> Status {
    if (step % period == 0)
      return {};
    return Status::invalid(
        format("L14: in a tma buffer of %s with swizzle = %lld parts of the core %s lie %llu bytes apart, no multiple "
               "of %llu",
               shapeText(tileShape.extents()).c_str(), static_cast<long long>(tma.swizzle),
               shapeText(tileShape.coreSizes()).c_str(), static_cast<unsigned long long>(step),
               static_cast<unsigned long long>(period)),
        "use rows whose powers of two are at least 8, pad them through the view, or use a swizzled buffer");
  };
  for (std::size_t i = 1; i < offsetFields.size(); ++i)
    KILN_TRY(check(offsetFields[i].bytes, fields));
  for (unsigned d = 0; d < tileShape.dims(); ++d)
    if (tileShape.counts[d] > 1)
      KILN_TRY(check(strides[d], repetitions));
  return {};
}

std::uint64_t SharedTile::repetitionByte(unsigned rep) const {
  const Coords at = tileShape.repCoords(rep);
  std::uint64_t out = 0;
  for (unsigned d = 0; d < at.size(); ++d)
    out += at[d] * strides[d];
  return out;
}

std::uint64_t SharedTile::byteOffset(std::span<const std::uint32_t> coords) const {
  Coords inner;
  std::uint64_t out = 0;
  for (unsigned d = 0; d < tileShape.dims(); ++d) {
    out += coords[d] / tileShape.core[d] * strides[d];
    inner.push_back(coords[d] % tileShape.core[d]);
  }
  return out + layout::byteOf(offsetFields, coordsOf(mu, coreLayout.flat(inner)));
}

} // namespace kiln::layout
