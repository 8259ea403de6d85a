//===- NumbersSweep.h - Runs cases on a device and checks every result -------===//
#ifndef KILN_TESTS_NUMBERS_NUMBERSSWEEP_H
#define KILN_TESTS_NUMBERS_NUMBERSSWEEP_H

#include "kiln/Device.h"
#include "tests/numbers/NumbersCases.h"

namespace kiln::test {

struct SweepResult {
  std::size_t checked = 0, wrong = 0;
  double worstUlps = 0;
  std::string first; ///< the first wrong result: operands, result, what was expected
  std::string worst; ///< operands of the worst error
};

/// One case of a loaded module, on about `count` operands.  Outputs are poisoned first.
Result<SweepResult> sweep(Device &device, Module &module, const NumbersCase &c, std::size_t count, unsigned thin = 1);

} // namespace kiln::test

#endif // KILN_TESTS_NUMBERS_NUMBERSSWEEP_H
