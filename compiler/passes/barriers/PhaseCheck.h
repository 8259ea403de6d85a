//===- PhaseCheck.h - The phases of mbarriers along every path --------------===//
//
// For verify-barriers.  An mbarrier counts phases, a program names them modulo 2, and a thread that is one
// phase early or late takes one for another.  So on every path, for each mbarrier: arrivals come with phases 0, 1, 0,
// ..; a wait is for the phase of the last arrivals before it (for 1, if there are none); whoever waits for a phase, the
// elected thread or all threads, has waited for the one before it; and there are as many arrivals as mbarrier_init
// said.
//
// That the threads keep together as these counts assume is for the search: VerifyBarriers.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_PHASECHECK_H
#define KILN_PASSES_BARRIERS_PHASECHECK_H

#include "compiler/passes/barriers/BarrierPaths.h"

namespace kiln::proof {

/// Reports what is wrong, each operation once.  False if there was something.
bool checkPhases(const BarrierPaths &paths);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_PHASECHECK_H
