//===- Hardware.h - GPUs that the performance model knows -----------------===//
//
// The numbers of Hardware.def; what each is and where it comes from stands there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_MODEL_HARDWARE_H
#define KILN_RUNTIME_MODEL_HARDWARE_H

#include "compiler/target/Target.h"
#include "support/Status.h"

#include <string_view>

namespace kiln::model {

struct Hardware {
  unsigned sm = 0;
  std::string_view name;
  double clock = 0, productClock = 0, sustained = 0, matrix = 0, syncShare = 0, special = 0, narrow = 0, dram = 0,
         l2 = 0;
};

/// The GPU that stands for a target; InvalidArgument, with the targets that have one, if none does.
Result<Hardware> hardwareOf(const Target &target);

/// FLOP/s of all units for products of factors with so many bits, by the clock that such kernels have.
inline double productRate(const Hardware &h, unsigned bits, unsigned multiprocessors) {
  return h.matrix * 16 / bits * multiprocessors * h.productClock * 1e9;
}

} // namespace kiln::model

#endif // KILN_RUNTIME_MODEL_HARDWARE_H
