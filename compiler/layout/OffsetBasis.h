//===- OffsetBasis.h - The best swizzle for a pair of access forms --------===//
//
// Given what a store form and a load form demand of the low offset bits, this finds an offset map (a basis of the
// region's coordinates) that satisfies both and has the fewest bank conflicts on both sides at once.  With equal widths
// that is none: the vectors that one phase spans on either side have a common complement, and the rows of the map go
// there.  The steps are those of the layouts specification, 3.5: the low bits g with functionals mu, then the bank
// bits, then rows free of conflicts, then what lanes and warps still span, then bits that may number passes.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_OFFSETBASIS_H
#define KILN_LAYOUT_OFFSETBASIS_H

#include "compiler/layout/AccessForms.h"

#include <optional>

namespace kiln::layout {

struct OffsetBasis {
  Columns basis;          ///< offset bit -> region coordinates
  unsigned fixedBits = 0; ///< offset bits from here on may number passes
};

/// Searches for one pair of sides; keeps what does not depend on the forms.
class OffsetBasisSearch {
public:
  OffsetBasisSearch(const SideVectors &store, const SideVectors &load, unsigned regionBits, unsigned logBytes);

  /// Nothing if no linear offset map serves both forms.
  std::optional<OffsetBasis> find(Form store, Form load);

private:
  static constexpr unsigned maxLow = 4; ///< demanded offset bits: 16 single bytes, or a byte pair times 8 rows

  /// What a form wants of offset bit i < length: a register direction, or one lane's vector.
  struct Demand {
    Form form;
    unsigned registerBits = 0, length = 0; ///< bits [0, registerBits) are register directions, then lanes up to length
    BitVector lane[maxLow] = {};
    unsigned moving = 0; ///< which of movingVectors() must vanish
  };
  struct Low {
    Columns g, mu;
  };

  Demand demandOf(Form form, const SideVectors &side) const;
  Columns movingVectors(const SideVectors &side, unsigned moving) const;
  const Subspace &zeros(const Demand &a, const Demand &b, unsigned bit);
  std::optional<Low> chooseLow(const Demand &a, const Demand &b);
  bool separable(const Columns &g, BitVector decided, const Demand &a, const Demand &b);
  std::optional<Columns> footprint(const Low &low, const Demand &d, const SideVectors &side) const;

  const SideVectors &store, &load;
  unsigned n, logBytes, subWord;
  Columns prefer; ///< basis of GF(2)^n: what functionals should vanish on, in order
  Columns outer;  ///< vectors of lanes and warps (and blocks) of both sides: they must not change the pass
  /// Cache of zeros(): side state 0 nothing, 1 + moving, 4 + moving with registers.
  static constexpr unsigned states = 7;
  Subspace zeroCache[states * states];
  BitVector zeroKnown = 0;
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_OFFSETBASIS_H
