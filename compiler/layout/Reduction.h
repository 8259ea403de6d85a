//===- Reduction.h - Reductions and scans along one dimension --------------===//
//
// reduce: the operation is associative and commutative.  Partial results are combined first in registers, then between
// lanes by butterflies, then, if warps or blocks take part, by one ordinary conversion that brings every partial result
// of an element into one thread.  No copy is ever combined twice, in any linear layout, and all copies of a result are
// bitwise equal, floats too: every step pairs the same two values everywhere.  The order depends on the layout alone.
//
// scan: the operation is associative.  Axis bits are combined from low to high; see ScanPlan.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_REDUCTION_H
#define KILN_LAYOUT_REDUCTION_H

#include "compiler/layout/Planner.h"

#include <optional>

namespace kiln::layout {

/// x[r] = x[r] o shfl.bfly(x[r ^ registerXor], laneXor), for every held register r, from the old values.
struct LaneStep {
  Mask registerXor = 0; ///< stays inside the held registers
  Mask laneXor = 0;
};

/// Partial results of several warps: move them with `plan`, then combine.
struct PartialExchange {
  LinearLayout source;      ///< of the tensor (result shape x 2^numberBits): what the threads hold
  LinearLayout destination; ///< all partial results of an element in one thread: the low numberBits register bits
  unsigned numberBits = 0;
  ConversionPlan plan;
};

/// A register is *held* if only bits of heldRegisters are set in it: one for each partial result of a thread.
struct ReductionPlan {
  unsigned axis = 0;
  unsigned elementBits = 0;
  Mask heldRegisters = 0; ///< register bits

  /// 1. x[r] = x[r] o x[r ^ q] for each q in order; needed are the registers from which the held ones are reached.
  std::vector<Mask> registerSteps;
  /// 2. One shuffle (two for 64 bits) a held register and step.
  std::vector<LaneStep> laneSteps;
  bool wholeWarp = false; ///< step 2 combines all 32 lanes, registerXor 0: redux.sync may replace it where it exists
  unsigned shuffles = 0;  ///< a warp

  /// 3. Only if warps or blocks hold different parts.  Register r of exchange->source is held register
  /// apply(partialRegister, r).  After the conversion combine registers r and r ^ 1, then halve, numberBits times;
  /// register r of `result` is then number r << numberBits of the destination.
  std::optional<PartialExchange> exchange;
  std::vector<Mask> partialRegister;
  /// Hardware vectors (register bits low, then lane, warp, block) that step 3 combines along, for printing and
  /// checking.
  std::vector<Mask> crossSteps;
  /// (result index << numberBits | partial number) of each hardware bit.
  std::vector<Mask> tags;

  LinearLayout result; ///< slice(axis) of the layout; all its copies hold the result
  /// Without exchange: register r of `result` is held register apply(resultRegister, r).
  std::vector<Mask> resultRegister;
};

/// L10 (axis), L04, L07, and the planner's diagnostics for the exchange.  Of a tile of m * 2^k `layout` is the core:
/// repetitions along the axis are combined first, in registers; `repetitions` of the result are then reduced alike,
/// their partial results exchanged together.
Result<ReductionPlan> planReduction(const LinearLayout &layout, unsigned axis, unsigned elementBits,
                                    const Target &target, std::uint64_t scratchBytes = defaultScratchBytes,
                                    unsigned repetitions = 1);

enum class ScanKind : unsigned char { Register, Shuffle };

/// Combines every element whose axis bit is set with the *total* of the sibling half: the element with this bit clear
/// and all lower axis bits set, as left operand.  (Reverse: elements with the bit clear, with the element that has it
/// set and all lower bits clear, as right operand.)  So the left operand always is the one of the lower indices: a
/// reverse scan passes what it has combined so far as the right one.
struct ScanStep {
  ScanKind kind = ScanKind::Register;
  InDim dim = InDim::Register; ///< home of the axis bit
  unsigned bit = 0;
  /// Places of the lower axis bits.  Forward, the total of (register, lane) is at register (r & ~bit) | lowRegisters,
  /// lane (l & ~bit) | lowLanes; reverse: (r | bit) & ~lowRegisters, (l | bit) & ~lowLanes.
  Mask lowRegisters = 0, lowLanes = 0;
};

/// What comes before each run, computed once instead of by every thread: the totals go to threads of which each warp's
/// hold all numbers of an element, are scanned there, and come back to where they were.
struct TotalsTrip {
  LinearLayout scanning; ///< of the totals: the number's bits in the low registers, then in neighbouring lanes
  ConversionPlan there, back;
};

/// Steps for the axis bits below the first one that warps or blocks hold; then, if there is one, a single exchange of
/// totals for all bits from there on.  The totals tensor drops the axis bits that are done; every thread first takes
/// the total of its run (lowRegisters, lowLanes as in a step without a bit: shuffle if lowLanes), moves it with `plan`,
/// and combines, in order, the totals whose number is below its own (reverse: above), then its own value.  With `trip`
/// it combines what the trip brings for its number, then its own value.
struct ScanPlan {
  unsigned axis = 0;
  std::vector<ScanStep> steps;
  std::optional<PartialExchange> totals;
  std::optional<TotalsTrip> trip; ///< instead of totals->plan, where it is cheaper
  double totalsCost = 0;          ///< of totals->plan or the trip, with what threads combine: SM cycles of one block
  Mask lowRegisters = 0, lowLanes = 0; ///< of all axis bits done before the exchange
  /// Register r of totals->source is register apply(totalRegister, r) (with the low bits as above).
  std::vector<Mask> totalRegister;
  /// The totals for register r start at register apply(totalsOf, r) of totals->destination: one for each number.
  std::vector<Mask> totalsOf;
  /// The number of a place: columns for register, lane, warp, block bits.
  std::vector<Mask> number[4];
};

/// Nothing (an answer, not an error) unless the layout is a permutation that holds the axis: convert first.  Of a tile
/// of m * 2^k `layout` is the core, and the totals of all its `repetitions` are exchanged together; each takes those of
/// the repetitions before it along the axis as well.
Result<std::optional<ScanPlan>> planScan(const LinearLayout &layout, unsigned axis, unsigned elementBits,
                                         const Target &target, std::uint64_t scratchBytes = defaultScratchBytes,
                                         unsigned repetitions = 1);

} // namespace kiln::layout

#endif // KILN_LAYOUT_REDUCTION_H
