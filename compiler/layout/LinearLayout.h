//===- LinearLayout.h - Which thread holds which tensor element -----------===//
//
// A distributed layout says where the elements of a tensor live: a map L from a hardware place (register, lane, warp,
// block) to a tensor coordinate.  All useful layouts are *linear over GF(2)*: write the place as bits; every bit has a
// fixed coordinate, its **basis**, and the element at a place is the xor of the bases of the bits that are set.
//
// Worked example.  A warp holds a 4x16 tensor; each lane holds two neighbouring elements of a row, eight lanes fill a
// row, four rows fill the warp:
//
//     register: j1; lane: j2 j4 j8 i1 i2
//
// "j1" is the basis (0, 1): register bit 0 steps 1 along dimension 1.  "i2" is (2, 0).  Lane 11 = 0b01011, register 1
// holds  lane bit 0 (j2) ^ lane bit 1 (j4) ^ lane bit 3 (i1) ^ register bit 0 (j1)  =  row 1, column 7.
// Dimensions are named i, j, k, ..; "i1+j8" steps along two of them (a shear); "0" is a basis that goes nowhere.
//
// **Replication.**  A bit with basis 0 (or, in general, one whose basis is an xor of earlier ones) makes copies: all
// places that differ by it hold the same element.  Scanning register, lane, warp, block from the low bits up, such bits
// are *free* (freeMask).  The **owner** of an element is its copy with all free bits 0: there is exactly one, and it
// has the smallest place number.  Loads may be done by every copy; stores and atomics by owners only.
//
// Internally a coordinate is one integer, the row-major flat index (last dimension in the low bits), and a basis is
// such an integer.  So reshape changes no column, and the whole algebra is Gf2.h on the columns.
//
// A **shared-memory layout** is the same kind of map from the one input `offset` (in elements of one block's buffer).
//
// Layouts are plain values: no heap, `==`, hash().  Two layouts with equal columns are the same layout, whatever
// encoding they came from.  Limits, checked by create() with the diagnostic L18: 2^20 elements, maxDims dimensions,
// maxInputBits bases.  Every other diagnostic code is that of the layouts specification, section 1.5.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_LINEARLAYOUT_H
#define KILN_LAYOUT_LINEARLAYOUT_H

#include "compiler/layout/Gf2.h"
#include "support/Status.h"

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln::layout {

/// Inputs of a layout, low bits first.  Offset is the input of shared-memory layouts, which have no other.
enum class InDim : unsigned char { Register, Lane, Warp, Block, Offset };
constexpr unsigned numHardwareDims = 4;
constexpr unsigned numInDims = 5;
constexpr std::array<InDim, numHardwareDims> hardwareDims = {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block};
constexpr unsigned laneBits = 5;
constexpr unsigned warpSize = 1u << laneBits;

constexpr unsigned index(InDim d) {
  return static_cast<unsigned>(d);
}
/// "register", "lane", "warp", "block", "offset".
std::string_view inDimName(InDim d);

constexpr unsigned maxDims = 8;        ///< tensor rank
constexpr unsigned maxTensorBits = 20; ///< log2 of the number of elements
constexpr unsigned maxInputBits = 32;  ///< bases of all inputs together
constexpr unsigned maxBitsPerInput = 24;

/// A tensor coordinate, one number a dimension.
using Coords = InlineVector<std::uint32_t, maxDims>;

/// "64x32"; "scalar" for rank 0.
std::string shapeText(std::span<const std::uint32_t> shape);

class LinearLayout {
public:
  /// Bases of each input as flat row-major indices; missing inputs have none.
  struct Bases {
    std::span<const BitVector> registers = {}, lanes = {}, warps = {}, blocks = {}, offsets = {};
  };

  /// A scalar held by register 0 of one lane: the layout with nothing in it.
  LinearLayout() = default;

  /// Checks extents (L01, L18) and that every basis stays inside the tensor (L08).  Says nothing about coverage: ask
  /// isSurjective() or checkDistributed().
  static Result<LinearLayout> create(std::span<const std::uint32_t> shape, const Bases &bases);
  static Result<LinearLayout> create(std::initializer_list<std::uint32_t> shape, const Bases &bases) {
    return create(std::span(shape.begin(), shape.size()), bases);
  }

  //===--- the tensor ------------------------------------------------------===//

  unsigned dims() const { return numDims; }
  std::uint32_t shape(unsigned d) const { return 1u << logShape[d]; }
  Coords shape() const;
  unsigned log2Shape(unsigned d) const { return logShape[d]; }
  /// n: log2 of the number of elements.
  unsigned totalBits() const { return tensorBits; }
  std::uint32_t numElements() const { return 1u << tensorBits; }
  /// Position of the lowest bit of dimension d in a flat index.
  unsigned bitPosition(unsigned d) const {
    unsigned at = 0;
    for (unsigned e = d + 1; e < numDims; ++e)
      at += logShape[e];
    return at;
  }
  /// Flat index of coordinate 2^bit along dimension d.
  BitVector unit(unsigned d, unsigned bit) const { return unitVector(bitPosition(d) + bit); }
  /// The bits of a flat index that belong to dimension d.
  BitVector dimMask(unsigned d) const { return lowMask(logShape[d]) << bitPosition(d); }
  /// The coordinate of a flat index along one dimension.
  std::uint32_t coord(BitVector flatIndex, unsigned d) const {
    return static_cast<std::uint32_t>(flatIndex >> bitPosition(d) & lowMask(logShape[d]));
  }
  Coords coords(BitVector flatIndex) const;
  BitVector flat(std::span<const std::uint32_t> coords) const;

  //===--- the map ---------------------------------------------------------===//

  unsigned bits(InDim d) const { return start[index(d) + 1] - start[index(d)]; }
  /// 2^bits: registers of a thread, lanes, warps, blocks, or elements of the buffer.
  std::uint32_t size(InDim d) const { return 1u << bits(d); }
  BitVector column(InDim d, unsigned i) const { return bases[start[index(d)] + i]; }
  std::span<const BitVector> columns(InDim d) const { return {bases + start[index(d)], bits(d)}; }
  /// Register .. block concatenated: hardware index = block | warp | lane | register, register in the low bits.
  std::span<const BitVector> allColumns() const { return {bases, start[numHardwareDims]}; }
  /// The first `level` inputs concatenated: 1 register, 2 +lane, 3 +warp, 4 +block.
  std::span<const BitVector> innerColumns(unsigned level) const { return {bases, start[level]}; }
  /// Bits of the hardware index, and where an input starts in it.
  unsigned hardwareBits() const { return start[numHardwareDims]; }
  unsigned hardwareStart(InDim d) const { return start[index(d)]; }

  /// Flat index of the element at a place.  Indices are taken modulo the sizes.
  BitVector apply(unsigned reg, unsigned lane, unsigned warp, unsigned block) const;
  BitVector apply(BitVector hardwareIndex) const { return layout::apply(allColumns(), hardwareIndex); }
  BitVector applyOffset(BitVector offset) const { return layout::apply(columns(InDim::Offset), offset); }

  //===--- properties ------------------------------------------------------===//

  /// The bases reach every element.
  bool isSurjective() const { return layout::rank(everyColumn()) == tensorBits; }
  /// No element has two copies.
  bool isInjective() const { return layout::rank(everyColumn()) == everyColumn().size(); }
  /// Every basis is 0 or a unit vector, and no unit vector occurs twice.
  bool isPermutation() const;
  /// L07 with the missing coordinate bits, if some element has no home.
  Status checkDistributed() const;
  /// L17 unless offsets and elements correspond one to one.
  Status checkShared() const;

  /// Free bits of one input: 0 in the owner of every element (see the top of this file).
  BitVector freeMask(InDim d) const;
  std::array<BitVector, numInDims> freeMasks() const;
  /// Matrix over all hardware bits: place -> place of the owner of the same element.
  Columns ownerMap() const;

  //===--- algebra ---------------------------------------------------------===//

  /// Pull map: for every hardware bit of this layout a hardware index x of `source` with source(x) = its basis (free
  /// bits of the source 0).  L07 if the source does not hold it, L12 if the shapes differ.
  Result<Columns> composeInverse(const LinearLayout &source) const;
  /// This layout in the low bits of every input and output dimension, `high` in the high bits.  L12, L18.
  Result<LinearLayout> product(const LinearLayout &high) const;
  /// The layout b with low.product(b) == *this, if there is one.
  std::optional<LinearLayout> divideLeft(const LinearLayout &low) const;
  /// Dimension i of the result is dimension perm[i] of this one.  L06.
  Result<LinearLayout> transpose(std::span<const unsigned> perm) const;
  Result<LinearLayout> transpose(std::initializer_list<unsigned> perm) const {
    return transpose(std::span(perm.begin(), perm.size()));
  }
  /// Same flat indices, new extents.  L01, L11, L18.
  Result<LinearLayout> reshape(std::span<const std::uint32_t> shape) const;
  Result<LinearLayout> reshape(std::initializer_list<std::uint32_t> shape) const {
    return reshape(std::span(shape.begin(), shape.size()));
  }
  /// Deletes dimension d; register bases that become 0 are dropped, the others replicate.  L10.
  Result<LinearLayout> slice(unsigned d) const;
  /// A new dimension of extent 1 before dimension d (d == dims() appends).  L10, L18.
  Result<LinearLayout> expand(unsigned d) const;
  /// A new last dimension of extent 2, held by a new lowest register bit: what `join` of two tensors gives.  L18.
  Result<LinearLayout> join() const;
  /// Undoes join(): L11 unless the last dimension has extent 2 and one register bit, and nothing else, runs along it.
  Result<LinearLayout> split() const;
  /// The same layout without register bits that only make copies.
  LinearLayout withoutRegisterCopies() const;

  /// "register: j1 j2; lane: j4 j8 i1 i2 i4; warp: i8 i16".
  std::string text() const;
  /// One basis: "j4", "i1+j8", "0".
  std::string basisText(BitVector basis) const;

  std::size_t hash() const;
  friend bool operator==(const LinearLayout &a, const LinearLayout &b);

private:
  std::span<const BitVector> everyColumn() const { return {bases, start[numInDims]}; }
  void setShape(std::span<const unsigned char> logs);
  void append(InDim d, BitVector basis);

  unsigned char numDims = 0, tensorBits = 0;
  unsigned char start[numInDims + 1] = {}; // columns of input d: [start[d], start[d+1])
  unsigned char logShape[maxDims] = {};
  BitVector bases[maxInputBits] = {};
};

/// True if broadcasting dimension d into `result` from `source` (extent 1 along d) moves nothing: every thread already
/// holds what it needs.  Compares the slices along d, register copies aside.
bool broadcastIsFree(const LinearLayout &source, const LinearLayout &result, unsigned d);

} // namespace kiln::layout

template <> struct std::hash<kiln::layout::LinearLayout> {
  std::size_t operator()(const kiln::layout::LinearLayout &layout) const { return layout.hash(); }
};

#endif // KILN_LAYOUT_LINEARLAYOUT_H
