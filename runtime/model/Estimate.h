//===- Estimate.h - The order of configurations before they are compiled ----===//
//
// From what a program needs at the least to milliseconds, without a compile and without the emulator: good for an order
// (which configurations are worth a compile), not for a time.  As in Prediction.h a launch takes as long as the
// multiprocessor with the most programs; the units' counts are those of the products and of their operands alone.
//
//   product   flops / (matrix rate), more where fewer warps are resident than there are schedulers; plus
//             what a step waits
//   copies    bytes / (L2's rate / multiprocessors), and the slower the fewer bytes are in flight
//   operands  bytes / shared memory's rate: flat tiles are read more often than they are multiplied
//   special   powers between products / (special functions' rate), of which the most is not hidden
//   program   norm(norm(product, operands) + special, copies) where copies overlap with products, else with copies
//   added; twice that where a thread's
//             tiles leave it no registers; plus `handOver` where a program is alone on its multiprocessor
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_MODEL_ESTIMATE_H
#define KILN_RUNTIME_MODEL_ESTIMATE_H

#include "compiler/target/ProgramNeeds.h"
#include "runtime/model/Hardware.h"

namespace kiln::model {

/// Of needs that the target satisfies.
double estimateMilliseconds(const ProgramNeeds &needs, const Target &target, const Hardware &hardware,
                            unsigned multiprocessors);

} // namespace kiln::model

#endif // KILN_RUNTIME_MODEL_ESTIMATE_H
