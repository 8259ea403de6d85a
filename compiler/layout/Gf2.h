//===- Gf2.h - Linear algebra over GF(2) on machine words -----------------===//
//
// A vector is an integer, addition is xor, a matrix is a list of integer columns, and a linear map applied to x is the
// xor of the columns at the set bits of x.  Everything that layouts need (rank, kernel, inverse, intersection) is
// Gaussian elimination on words.  The same integers also serve as *sets of generators*: bit i stands for generator i.
//
// Example: columns {1, 2, 3} span GF(2)^2; the third depends on the first two, and kernel() says how: {0b111}, the xor
// of all three is zero.
//
// Limits: 64 coordinate bits, 64 generators; nothing here allocates.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_GF2_H
#define KILN_LAYOUT_GF2_H

#include "compiler/layout/InlineVector.h"
#include "support/Status.h"

#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace kiln::layout {

/// A vector over GF(2), or a set of generators.
using BitVector = std::uint64_t;

/// A matrix as its columns, or a list of vectors.
using Columns = InlineVector<BitVector, 64>;

/// The positions of the set bits, lowest first: `for (unsigned i : bitsOf(x))`.
class BitRange {
public:
  class iterator {
  public:
    explicit iterator(BitVector bits) : left(bits) {}
    unsigned operator*() const { return static_cast<unsigned>(std::countr_zero(left)); }
    iterator &operator++() {
      left &= left - 1;
      return *this;
    }
    bool operator!=(const iterator &other) const { return left != other.left; }
    bool operator==(const iterator &other) const { return left == other.left; }

  private:
    BitVector left;
  };
  explicit BitRange(BitVector bits) : bits(bits) {}
  iterator begin() const { return iterator(bits); }
  iterator end() const { return iterator(0); }

private:
  BitVector bits;
};
inline BitRange bitsOf(BitVector x) {
  return BitRange(x);
}

/// 1 if an odd number of bits is set.
inline unsigned parity(BitVector x) {
  return static_cast<unsigned>(std::popcount(x)) & 1u;
}

/// Position of the highest set bit; x != 0.
inline unsigned highestBit(BitVector x) {
  return 63u - static_cast<unsigned>(std::countl_zero(x));
}

/// The unit vector e_i.
inline BitVector unitVector(unsigned i) {
  return BitVector(1) << i;
}

/// The set {0 .. n-1}, n <= 64.
inline BitVector lowMask(unsigned n) {
  return n >= 64 ? ~BitVector(0) : (BitVector(1) << n) - 1;
}

/// Matrix times vector: the xor of the columns at the set bits of x.
inline BitVector apply(std::span<const BitVector> cols, BitVector x) {
  BitVector y = 0;
  for (unsigned i : bitsOf(x))
    y ^= cols[i];
  return y;
}

/// The bits of v at the positions of `mask`, packed to the low end.
inline BitVector gatherBits(BitVector v, BitVector mask) {
  BitVector out = 0;
  unsigned i = 0;
  for (unsigned b : bitsOf(mask))
    out |= (v >> b & 1) << i++;
  return out;
}

/// A growing subspace: a fully reduced basis that remembers how each row was made from the vectors offered to add().
/// Every vector offered gets a number (0, 1, ...), dependent ones too; solve() uses only independent ones.
class Span {
public:
  Span() {} // not defaulted: rows are meaningful only at the set bits of pivotMask
  explicit Span(std::span<const BitVector> generators) {
    for (BitVector g : generators)
      add(g);
  }
  Span(const Span &other) : pivotMask(other.pivotMask), count(other.count) { copyRows(other); }
  Span &operator=(const Span &other) {
    pivotMask = other.pivotMask;
    count = other.count;
    copyRows(other);
    return *this;
  }

  /// {residual, generators}: v = residual ^ xor of the generators; the residual is 0 iff v is in the span.
  std::pair<BitVector, BitVector> reduce(BitVector v) const {
    BitVector made = 0;
    // Rows are fully reduced: no row contains the pivot of another one, so one pass over v's pivots is enough.
    for (unsigned p : bitsOf(v & pivotMask)) {
      v ^= rows[p].vector;
      made ^= rows[p].made;
    }
    return {v, made};
  }

  /// Offers one generator; true if it was independent of the earlier ones.
  bool add(BitVector v) {
    assert(count < 64);
    auto [rest, made] = reduce(v);
    made ^= unitVector(count++);
    if (!rest)
      return false;
    unsigned pivot = highestBit(rest);
    for (unsigned p : bitsOf(pivotMask)) {
      if (rows[p].vector >> pivot & 1) {
        rows[p].vector ^= rest;
        rows[p].made ^= made;
      }
    }
    rows[pivot] = {rest, made};
    pivotMask |= unitVector(pivot);
    return true;
  }

  /// The generators whose xor is v, if v is in the span.
  std::optional<BitVector> solve(BitVector v) const {
    auto [rest, made] = reduce(v);
    if (rest)
      return std::nullopt;
    return made;
  }

  bool contains(BitVector v) const { return reduce(v).first == 0; }
  unsigned dim() const { return static_cast<unsigned>(std::popcount(pivotMask)); }
  /// How many generators were offered, dependent ones included.
  unsigned offered() const { return count; }

  /// The highest bits of the reduced rows, as a set; walk it with bitsOf() for the rows in order of their pivots.
  BitVector pivots() const { return pivotMask; }
  /// The reduced row with that pivot, and the generators it is made of.
  BitVector row(unsigned pivot) const { return rows[pivot].vector; }
  BitVector rowGenerators(unsigned pivot) const { return rows[pivot].made; }

private:
  struct Row {
    BitVector vector, made;
  };
  void copyRows(const Span &other) {
    for (unsigned p : bitsOf(pivotMask))
      rows[p] = other.rows[p];
  }

  BitVector pivotMask = 0;
  unsigned count = 0;
  Row rows[64]; // by pivot
};

/// Dimension of the span.
unsigned rank(std::span<const BitVector> vectors);

/// The vectors that are independent of the earlier ones, in order.
Columns basis(std::span<const BitVector> vectors);

/// Basis of {x : cols x = 0}.  The highest bit of each vector is a dependent column; these are distinct.
Columns kernel(std::span<const BitVector> cols);

/// Basis of span(a) and span(b) in common.
Columns intersect(std::span<const BitVector> a, std::span<const BitVector> b);

/// Basis of {v in span(vectors) : every functional in `masks` vanishes on v}; a functional m maps v to parity(v & m).
Columns whereZero(std::span<const BitVector> vectors, std::span<const BitVector> masks);

/// For a basis `cols` of GF(2)^n: rows mu with bit i of cols^-1 t = parity(t & mu[i]).  L17 unless it is a basis.
Result<Columns> inverseRows(std::span<const BitVector> cols, unsigned n);

/// The coordinates of t under the rows mu of inverseRows().
inline BitVector coordsOf(std::span<const BitVector> mu, BitVector t) {
  BitVector x = 0;
  for (unsigned i = 0; i < mu.size(); ++i)
    x |= BitVector(parity(t & mu[i])) << i;
  return x;
}

/// Columns outer(inner_j): the map "outer after inner".
Columns compose(std::span<const BitVector> outer, std::span<const BitVector> inner);

/// Mask of a functional on GF(2)^n that is 1 on oneOn, 0 on zeroOn, and 0 on as many of `prefer` (in order) as
/// possible.  Nothing if oneOn lies in the span of zeroOn.
std::optional<BitVector> functional(std::span<const BitVector> zeroOn, BitVector oneOn, unsigned n,
                                    std::span<const BitVector> prefer = {});

} // namespace kiln::layout

#endif // KILN_LAYOUT_GF2_H
