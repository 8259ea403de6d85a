//===- SharedExchange.h - Conversions through shared memory ----------------===//
//
// A *region* is what one buffer of scratch holds: a warp's, a block's, or (cluster) a block's, read by other blocks.
// Only owners store.  Every pair of access forms is costed, each with the best swizzle for it, and the cheapest that
// fits the scratch limit is taken; the scalar exchange exists for every pair of layouts down to one element of scratch.
// Repetitions share a round of scratch while the limit allows: no more of them than the fewest rounds need, so that the
// plan for the scratch that a plan uses is that plan.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_SHAREDEXCHANGE_H
#define KILN_LAYOUT_SHAREDEXCHANGE_H

#include "compiler/layout/AccessForms.h"
#include "compiler/layout/ConversionProblem.h"

#include <optional>

namespace kiln::layout {

/// A conversion in the coordinates of one region.
struct SharedRegion {
  Scope scope = Scope::Cta;
  unsigned bits = 0;    ///< log2 of the elements of a region
  unsigned regions = 1; ///< warps for scope Warp, else 1
  SideVectors store, load;
  Columns source[4], destination[4]; ///< coordinates of every register, lane, warp, block bit
  Columns remote[4];                 ///< scope Cluster: block part of each destination bit
  bool remoteRegisters = false;      ///< registers of one thread come from several blocks

  SharedRegion(const ConversionProblem &p, Scope scope);
};

/// A bound pair of accesses with its counts.
struct SharedCandidate {
  Scope scope = Scope::Cta;
  Columns basis, rows;
  BoundAccess store, load;
  unsigned passBits = 0, perRound = 1;
  bool predicatedPasses = false;
  std::uint64_t scratchBytes = 0;
  std::uint64_t wavefronts = 0, conflicts = 0;
  std::uint64_t permutes = 0;
  unsigned barriers = 0;
  Barrier barrier = Barrier::None;
  double cost = 0;
};

class SharedExchange {
public:
  SharedExchange(const ConversionProblem &p, Scope scope) : problem(p), region(p, scope) {}

  /// The cheapest legal pair of forms, or why there is none.  With `every`, all legal pairs are appended to it in a
  /// fixed order and nothing is skipped; without, pairs that cannot be cheaper are not worked out.  The answer is the
  /// same.
  std::optional<SharedCandidate> best(std::uint64_t scratchLimit, std::string &reason,
                                      std::vector<SharedCandidate> *every = nullptr) const;
  /// One element an instruction, natural offsets, passes predicated; nothing if the limit is below one element a
  /// region.
  std::optional<SharedCandidate> scalar(std::uint64_t scratchLimit) const;

  void emit(const SharedCandidate &candidate, ConversionPlan &plan) const;

private:
  struct Counts;
  unsigned perRound(unsigned passBits, std::uint64_t scratchLimit) const;
  void count(SharedCandidate &c, std::uint64_t scratchLimit) const;
  double cost(const Counts &c) const;

  const ConversionProblem &problem;
  SharedRegion region;
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_SHAREDEXCHANGE_H
