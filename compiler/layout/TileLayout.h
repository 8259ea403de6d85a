//===- TileLayout.h - Tiles whose extents are m * 2^k ---------------------===//
//
// Kernels want tiles of 96, 192, 80, 112 without waste.  Such a tile is a *core* (2^k along each dimension, laid out by
// a LinearLayout) repeated m_d times along dimension d, m_d odd, the product of all m_d at most 15.
//
//   element  =  core coordinate + 2^k_d * rep_d          along each dimension d
//   register =  rep * (core registers) + core register   with rep = rep_0, rep_1, .. in dimension order, last one
//   fastest
//
// Lanes, warps and blocks carry no repetitions, so everything said about the core holds: free masks, owners, vector
// widths; a conversion is the core's plan once a repetition.  The core is a function of the shape alone, so two layouts
// of one shape always agree on it.  A power-of-two tile is its own core, with one repetition.
//
// Example: a wgmma accumulator 64x96 is the core 64x32 three times, which is the hardware's register order.
//
// In shared memory every repetition is a *slab* of its own, a whole core, aligned as the encoding demands; in buffers
// of TMA and wgmma the repetitions lie in the hardware's order instead, so that one descriptor spans them (SharedTile).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_TILELAYOUT_H
#define KILN_LAYOUT_TILELAYOUT_H

#include "compiler/layout/SharedEncodings.h"

namespace kiln::layout {

/// The largest product of the odd factors.
constexpr unsigned maxRepetitions = 15;

struct TileShape {
  Coords core;   ///< 2^k of each dimension
  Coords counts; ///< m of each dimension

  unsigned dims() const { return core.size(); }
  std::uint32_t extent(unsigned d) const { return core[d] * counts[d]; }
  unsigned repetitions() const;
  /// rep -> its number along each dimension, and back.
  Coords repCoords(unsigned rep) const;
  unsigned repIndex(std::span<const std::uint32_t> repCoords) const;
  Sizes coreSizes() const { return Sizes(core.begin(), core.end()); }
  Sizes extents() const;
  bool operator==(const TileShape &) const = default;
};

/// Splits extents into m * 2^k.  L01 (m too large; the remedy names the extents to pad to), L18.
Result<TileShape> splitExtents(std::span<const std::int64_t> shape);

/// The tile of fewest elements that is legal and at least `shape`: what a view pads to.  Nothing above 2^20 elements
/// times 15, or for extents below 1.
std::optional<Sizes> paddedShape(std::span<const std::int64_t> shape);

/// Where an element lives: repetition, and flat index in the core.
struct TileElement {
  unsigned rep = 0;
  BitVector coreFlat = 0;
  bool operator==(const TileElement &) const = default;
};

class TileLayout {
public:
  static Result<TileLayout> create(const Encoding &encoding, std::span<const std::int64_t> shape);
  static Result<TileLayout> create(const Encoding &encoding, std::initializer_list<std::int64_t> shape) {
    return create(encoding, std::span(shape.begin(), shape.size()));
  }
  /// A core with repetition counts (odd, product at most 15): L01, L02.
  static Result<TileLayout> create(const LinearLayout &core, std::span<const std::uint32_t> counts);

  const LinearLayout &core() const { return coreLayout; }
  const TileShape &tile() const { return tileShape; }
  unsigned dims() const { return coreLayout.dims(); }
  std::uint32_t shape(unsigned d) const { return tileShape.extent(d); }
  Sizes shape() const;
  unsigned repetitions() const { return tileShape.repetitions(); }
  /// Registers of a thread: repetitions times those of the core.
  unsigned registers() const { return repetitions() * coreLayout.size(InDim::Register); }

  /// The element at a place; the register index includes the repetition.
  Coords coords(unsigned reg, unsigned lane, unsigned warp, unsigned block) const;
  Coords coords(const TileElement &element) const;
  TileElement locate(std::span<const std::uint32_t> coords) const;

  /// Drops dimension d and its count: registers that differed along d only are gone.  L10.
  Result<TileLayout> slice(unsigned d) const;
  /// Dimension i of the result is dimension perm[i] of this one; counts move along, so repetitions are renumbered:
  /// see transposedRep().  L06.
  Result<TileLayout> transpose(std::span<const unsigned> perm) const;
  /// The repetition of transpose(perm) that holds what `rep` holds here.  A renaming of registers, no instruction.
  unsigned transposedRep(std::span<const unsigned> perm, unsigned rep) const;
  /// Row-major reshape; every dimension with a count must stay whole (L11).
  Result<TileLayout> reshape(std::span<const std::int64_t> shape) const;

  /// The core's text, and the repetitions if there are any: "..; repeat: j3".
  std::string text() const;
  bool operator==(const TileLayout &) const = default;

private:
  LinearLayout coreLayout;
  TileShape tileShape;
};

/// A run of offset bits: what they number counts `bytes` each.
struct OffsetField {
  unsigned bit = 0, bits = 0; ///< from bit `bit` on
  std::uint64_t bytes = 0;
  bool operator==(const OffsetField &) const = default;
};

/// How offsets in a core become bytes: the sum over the fields, which cover the offset's bits from low to high.  One
/// field, of the bytes of an element, where elements lie one after the other.
using OffsetFields = InlineVector<OffsetField, maxBitsPerInput>;

inline std::uint64_t byteOf(const OffsetFields &fields, std::uint64_t offset) {
  std::uint64_t out = 0;
  for (const OffsetField &f : fields)
    out += (offset >> f.bit & ((std::uint64_t(1) << f.bits) - 1)) * f.bytes;
  return out;
}

/// A tile in shared memory.  An element of repetition `rep` whose offset in the core is `o` lies at byte
///   repetitionByte(rep) + byteOf(fields(), o).
///
/// All encodings but Tma: a whole core, slab after slab; padding is a second field.  Tma: [column of S bytes][row][S
/// bytes], columns and rows counted over the full extents.  So a repetition along the rows begins 2^k rows later, one
/// along the columns as many columns of S bytes; the core's own bits past its first rows (further dimensions of rows,
/// columns of S bytes) weigh more than a power of two: further fields.  All of these are multiples of the bytes after
/// which the swizzle repeats (L14 otherwise), so what is true of the core in itself stays true: vectors, rows of matrix
/// instructions, bank conflicts.
class SharedTile {
public:
  static Result<SharedTile> create(const SharedEncoding &encoding, std::span<const std::int64_t> shape, unsigned bits);
  static Result<SharedTile> create(const SharedEncoding &encoding, std::initializer_list<std::int64_t> shape,
                                   unsigned bits) {
    return create(encoding, std::span(shape.begin(), shape.size()), bits);
  }

  const SharedEncoding &encoding() const { return how; }
  /// Offset bases of one slab (before padding).
  const LinearLayout &core() const { return coreLayout; }
  /// Rows of its inverse: bit i of the offset of t is parity(t & inverse()[i]).
  const Columns &inverse() const { return mu; }
  const TileShape &tile() const { return tileShape; }
  unsigned bits() const { return elementBits; }
  const OffsetFields &fields() const { return offsetFields; }
  /// From one repetition along dimension d to the next.
  std::uint64_t repetitionStride(unsigned d) const { return strides[d]; }
  std::uint64_t repetitionByte(unsigned rep) const;
  /// Of the whole buffer.
  std::uint64_t bytes() const { return size; }
  unsigned alignment() const { return baseAlignment(how); }

  /// Byte address of an element in the buffer.
  std::uint64_t byteOffset(std::span<const std::uint32_t> coords) const;

private:
  explicit SharedTile(const SharedEncoding &encoding) : how(encoding) {}
  void placeSlabs();
  Status placeAsHardware(const Tma &tma);

  SharedEncoding how;
  LinearLayout coreLayout;
  TileShape tileShape;
  Columns mu;
  unsigned elementBits = 0;
  OffsetFields offsetFields;
  InlineVector<std::uint64_t, maxDims> strides;
  std::uint64_t size = 0;
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_TILELAYOUT_H
