//===- AccessForms.h - What each shared-memory instruction demands --------===//
//
// A form (st, ld of 2^k elements, stmatrix, ldmatrix, each also .trans) wants the lowest offset bits to be certain
// register directions and lanes.  Two views of the same rules: `FormDemand` states them before an offset map exists, so
// that one can be built; `bindAccess` checks them on a given map and works out the instruction.
// Bank conflicts are a closed form because the map from words to banks is linear: all hit banks have equally many
// words.
//
// The vector accesses' demand has two halves, and the second is easily forgotten: registers span the low offset bits,
// *and* no lane, warp or block touches them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_ACCESSFORMS_H
#define KILN_LAYOUT_ACCESSFORMS_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/layout/Subspace.h"
#include "compiler/target/Target.h"

#include <array>

namespace kiln::layout {

/// A form with its width: k = log2 of the elements of a vector access, 0 for matrix forms.
struct Form {
  AccessForm form = AccessForm::St;
  unsigned k = 0;
};
using FormList = InlineVector<Form, 8>;

/// Log2 of the elements in the part of a 32-bit word that one thread owns: a whole word, or (trans) its 16-bit half.
inline unsigned matrixVectorBits(bool trans, unsigned logBytes) {
  return (trans ? 1u : 2u) - logBytes;
}

/// The lane bits that hold low offset bits: L0, L1 (plain: the words of a row), L2..L4 (trans: the columns).
inline std::span<const unsigned> matrixLanes(bool trans) {
  static constexpr unsigned plain[] = {0, 1}, transposed[] = {2, 3, 4};
  return trans ? std::span<const unsigned>(transposed) : std::span<const unsigned>(plain);
}

/// All forms worth trying for one side, widest vector last, matrix forms at the end.
FormList formsFor(bool store, unsigned registerBits, unsigned logBytes, bool lanePredicate, bool matrices,
                  const Target &target);

/// One side of a movement: vectors (region coordinates) of its register, lane, warp and block bits.
struct SideVectors {
  Columns registerBits; ///< numbers of the register bits that move
  Columns registers;    ///< their vectors
  Columns lanes, warps, blocks;
  BitVector lanePredicate = 0, warpPredicate = 0; ///< bits that must be 0 to take part
  bool keepAll = false; ///< registers of equal offset differ otherwise (another block) and all move
};

/// A form bound to an offset map: an Access without heap.
struct BoundAccess {
  Form form;
  Columns vector, matrices, instruction; ///< register directions over all register bits
  BitVector halves = 0;
  Columns lane, warp, block; ///< offsets
  Columns registerOffset;    ///< by entry of SideVectors::registerBits
  unsigned bytes = 0, wavefronts = 0, ideal = 0, constants = 0;
  BitVector addressSpan = 0;
  unsigned log2Instructions() const { return instruction.size(); }
  /// Whether an instruction's registers are neighbours: of the registers that move, the lowest directions.  Others have to
  /// be brought together where an instruction wants neighbours, as matrix instructions do.
  bool hasNeighbours() const;
};

/// Binds one side to the offset map `rows` (functionals, low offset bit first), of which the top passBits bits number
/// the pass.  False if the form is not legal there.
bool bindAccess(Form form, const SideVectors &side, unsigned logBytes, std::span<const BitVector> rows,
                unsigned passBits, BoundAccess &out);

/// The access as plan data; registerBits = register bits of the layout, instructions = of a warp in all passes.
Access emitAccess(const BoundAccess &bound, const SideVectors &side, unsigned registerBits, std::uint64_t instructions);

/// Number of instructions, log2, and wavefronts without conflicts of a form: known before any offset map is.
struct FormSize {
  unsigned logInstructions = 0, ideal = 0, bytes = 0, directions = 0; ///< directions that share a word (for permutes)
};
FormSize sizeOf(Form form, const SideVectors &side, unsigned logBytes);

/// Phases of one access of `bytes` a lane in which some lane is active.
unsigned activePhases(unsigned bytes, BitVector lanePredicate);

} // namespace kiln::layout

#endif // KILN_LAYOUT_ACCESSFORMS_H
