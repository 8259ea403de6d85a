//===- PlanOracle.h - Runs a conversion plan on the CPU, bit by bit -------===//
//
// The oracle believes nothing of a plan except its steps.  Every register of every thread starts with the number of its
// own place (block | warp | lane | register, register low); the steps move places about; at the end each destination
// register must hold a place whose element, by the source layout, is the one the destination layout asks for.
//
// Barriers are explicit: the phases of a shared-memory plan (store, load, store, load, ..) are separated only by the
// barriers that the plan counts, warps run in random order between barriers, and memory reports races.  Scope Cluster
// must also let remote readers finish before the plan ends.
//
// Besides wrong data it rejects: two writers of a byte in a pass, reads of unwritten or torn elements, misaligned or
// foreign addresses, reads of words that no step made, wavefronts that differ from the bank simulation, any count
// (shuffles, selects, instructions, scratch, passes, barriers, wavefronts, conflicts, cost) that the steps do not bear
// out, and descriptive fields (offset basis, coordinates) that contradict the addresses.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LAYOUT_PLANORACLE_H
#define KILN_TESTS_LAYOUT_PLANORACLE_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/target/Target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::test {

struct OracleOptions {
  std::uint64_t seed = 1;         ///< order of the warps between barriers
  const Target *target = nullptr; ///< whose capabilities the plan may use; null: the target that the plan names
  bool stepsAlone = false;        ///< do not compare what the plan says about its steps; only run them
};

struct OracleRun {
  std::string error;                 ///< empty: the plan is right
  std::vector<std::uint32_t> places; ///< [block][warp][lane][register]: the source place whose value arrived
  std::uint64_t trace = 0;           ///< equal for two plans whose emitted instructions are equal
};

OracleRun runPlan(const layout::ConversionPlan &plan, const layout::LinearLayout &source,
                  const layout::LinearLayout &destination, const OracleOptions &options = {});

/// All values of a layout, [block][warp][lane][register].
std::vector<std::uint32_t> elementTable(const layout::LinearLayout &layout);

/// The smallest level (register, lane, warp, block) at which every destination position finds its element, over all,
/// also non-linear, choices of copies.  1 register, 2 lane, 3 warp, 4 block.
unsigned bruteForceLevel(const layout::LinearLayout &source, const layout::LinearLayout &destination);

/// At level 1: is there one choice of source registers that serves all threads?
bool oneRenameServesAll(const layout::LinearLayout &source, const layout::LinearLayout &destination);

struct LocalRun {
  std::string error;                           ///< empty: the access is right
  std::uint64_t wavefronts = 0, conflicts = 0; ///< simulated, whole block
};

/// A store to, or load from, a buffer whose layout is given.  A store must fill every byte of the buffer with the
/// element that `shared` puts there; a load must leave in every register its element, copies among the registers
/// excepted, which are filled by renaming: register r is then that of `registerCopy` (columns; empty for stores).
LocalRun runLocalAccess(const layout::Access &access, const layout::LinearLayout &distributed,
                        const layout::LinearLayout &shared, unsigned storageBytes,
                        const std::vector<layout::Mask> &registerCopy);

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_PLANORACLE_H
