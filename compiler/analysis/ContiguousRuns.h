//===- ContiguousRuns.h - Neighbours whose addresses follow one another ------===//
//
// For accesses that move more than a thread can at once: of these no alignment proves that addresses do not wrap on the
// way.  Contiguity beyond divisibility is a hint to others (AxisAnalysis.h).  Here it counts where what is added along
// the run is added in 64 bits, in which addresses of one tensor do not wrap.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_CONTIGUOUSRUNS_H
#define KILN_ANALYSIS_CONTIGUOUSRUNS_H

#include "compiler/analysis/AxisAnalysis.h"

namespace kiln::analysis {

/// So many neighbours along `dim`, a power of two, lie one after the other in memory and are masked alike (null mask:
/// none is), and each such run begins at a multiple of `alignment` bytes; at most `most`.  1: nothing is known.
std::uint32_t contiguousRun(const AxisAnalysis &analysis, mlir::Value pointers, mlir::Value mask, unsigned dim,
                            std::uint32_t most, unsigned alignment);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_CONTIGUOUSRUNS_H
