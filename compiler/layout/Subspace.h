//===- Subspace.h - Span without the bookkeeping --------------------------===//
//
// A growing subspace of GF(2)^64 that answers membership only: half the work of Span, which also remembers how each row
// was made.  The planner's inner loops use it for ranks and "does this vector lie in there".
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_SUBSPACE_H
#define KILN_LAYOUT_SUBSPACE_H

#include "compiler/layout/Gf2.h"

#include <algorithm>
#include <vector>

namespace kiln::layout {

class Subspace {
public:
  Subspace() {} // not defaulted: rows are meaningful only at the set bits of `pivots`
  explicit Subspace(std::span<const BitVector> vectors) { add(vectors); }
  Subspace(const Subspace &other) : pivots(other.pivots) { copyRows(other); }
  Subspace &operator=(const Subspace &other) {
    pivots = other.pivots;
    copyRows(other);
    return *this;
  }

  /// v modulo the subspace; 0 iff v is inside.  Rows are in echelon form only, so the highest pivot goes first.
  BitVector reduce(BitVector v) const {
    while (BitVector hit = v & pivots)
      v ^= rows[highestBit(hit)];
    return v;
  }
  bool contains(BitVector v) const { return reduce(v) == 0; }
  /// True if v was outside.
  bool add(BitVector v) {
    v = reduce(v);
    if (!v)
      return false;
    rows[highestBit(v)] = v;
    pivots |= unitVector(highestBit(v));
    return true;
  }
  void add(std::span<const BitVector> vectors) {
    for (BitVector v : vectors)
      add(v);
  }
  unsigned dim() const { return static_cast<unsigned>(std::popcount(pivots)); }

  Columns vectors() const {
    Columns out;
    for (unsigned p : bitsOf(pivots))
      out.push_back(rows[p]);
    return out;
  }
  /// All 2^dim vectors, in rising order.
  std::vector<std::uint32_t> elements() const {
    std::vector<std::uint32_t> out{0};
    out.reserve(std::size_t(1) << dim());
    for (unsigned p : bitsOf(pivots))
      for (std::size_t i = 0, n = out.size(); i < n; ++i)
        out.push_back(out[i] ^ static_cast<std::uint32_t>(rows[p]));
    std::sort(out.begin(), out.end());
    return out;
  }

private:
  void copyRows(const Subspace &other) {
    for (unsigned p : bitsOf(pivots))
      rows[p] = other.rows[p];
  }

  BitVector pivots = 0;
  BitVector rows[64]; // by highest bit
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_SUBSPACE_H
