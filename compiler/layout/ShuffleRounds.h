//===- ShuffleRounds.h - Conversions inside a warp, by pick, shuffle, place ===//
//
// Any conversion that stays inside a warp, with any number of register/lane swaps and any replication.  One *round* for
// each index t: lane l receives destination register t ^ S l, for a linear S from lanes to rounds.  A sending lane must
// know which register to send; a suitable S always exists, and among at most twelve candidates the cheapest is taken.
// Example: lanes 0 and 1 swap one of their two registers.  S = identity on that bit: in round 0 each lane receives what
// it keeps or gets at "its own" index, in round 1 the other one, and one conditional swap before and after sort it out.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_SHUFFLEROUNDS_H
#define KILN_LAYOUT_SHUFFLEROUNDS_H

#include "compiler/layout/ConversionProblem.h"

#include <vector>

namespace kiln::layout {

/// The pull map of a conversion inside a warp: for kept destination registers r', lane l' and outer (warp and block) w
///   source register = A r' ^ B l' ^ R w,   source lane = C r' ^ D l' ^ L w.
struct LanePull {
  Columns kept;     ///< destination register bits that are not copies of lower ones
  Columns expanded; ///< E: destination register bit -> kept registers
  Columns A, B, C, D, R, L;

  explicit LanePull(const ConversionProblem &p);
};

/// One schedule; A and C may have extra columns, rounds in which a lane sends a second register.
struct ShuffleSchedule {
  Columns A, C;
  BitVector S[laneBits] = {};

  double cost = 0;
  unsigned shuffles = 0, selects = 0, rounds = 0;
  std::uint64_t permutes = 0;
};

/// All schedules of a conversion of level 1 or 2.
class ShuffleRounds {
public:
  explicit ShuffleRounds(const ConversionProblem &p);

  /// The least cost; ties go to fewer shuffles, selects, rounds, then to the earlier candidate.
  const ShuffleSchedule &best() const { return schedules[bestIndex]; }
  /// Every distinct candidate.
  std::span<const ShuffleSchedule> all() const { return schedules; }
  /// Writes the schedule into a plan: its steps and counts.
  void emit(const ShuffleSchedule &schedule, ConversionPlan &plan) const;

private:
  void generate();
  void offer(ShuffleSchedule schedule, unsigned cancel);
  void evaluate(ShuffleSchedule &schedule) const;

  const ConversionProblem &problem;
  LanePull pull;
  Columns pack;                 ///< kept-register directions that share a word
  Columns kernelC, kernelImage; ///< ker C, and its images under A
  std::vector<ShuffleSchedule> schedules;
  unsigned bestIndex = 0;
};

/// Byte permutes needed for `registers` registers of which those along `directions` share 32-bit words: 0 if the words
/// are formed by the lowest register bits, else one a word.
std::uint64_t wordPermutes(std::span<const BitVector> directions, std::uint64_t registers, unsigned storageBytes);

/// True for the map of an mma fragment (mma.sync or wgmma; accumulator or operand; or a transpose of one): a
/// permutation layout in which for dims x != y and some q lanes 0 and 1 are bits q, q+1 of x, the bits of x below q are
/// registers, and lanes 2, 3, 4 are bits 0, 1, 2 of y.  Bits past an extent are 0 instead.
bool isQuadFragment(const LinearLayout &layout);

} // namespace kiln::layout

#endif // KILN_LAYOUT_SHUFFLEROUNDS_H
