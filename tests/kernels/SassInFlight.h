//===- SassInFlight.h - Registers of products in flight, touched by others ---===//
//
// Products of warpgroups (wgmma) run while later instructions do.  Until a wait covers them, their sums may be neither
// read nor written but by products that add to the same sums, and what they read from registers may not be written:
// the hardware does not check either.  Kiln's passes keep to that in PTX; here it is asked of what the assembler made.
//
// The text is walked as it may run: jumps are followed, each instruction once for each set of products that can be in
// flight there.  Where the encoding of operands is not known, the general one is assumed.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_SASSINFLIGHT_H
#define KILN_TESTS_KERNELS_SASSINFLIGHT_H

#include "tests/kernels/SassOrder.h"

namespace kiln::test {

struct TouchedInFlight {
  std::size_t toucher = 0, product = 0; ///< places in the text
  unsigned reg = 0;
  bool isSum = false; ///< or an operand in registers
  std::string text(const std::vector<SassInstruction> &of) const;
};
struct InFlightReport {
  std::vector<TouchedInFlight> touched;
  unsigned products = 0;      ///< that were walked
  unsigned fromRegisters = 0; ///< of these, with the left operand in registers
  unsigned meanwhile = 0;     ///< other instructions with registers that can run while a product is in flight
  unsigned spills = 0;        ///< of these, loads and stores of local memory
};
InFlightReport touchedInFlight(const std::vector<SassInstruction> &text);

/// The text with one instruction that runs while a product is in flight made to write one of its registers: a sum, or,
/// if not `sum`, an operand.  Empty if there is none.
std::vector<SassInstruction> withTouchInFlight(std::vector<SassInstruction> text, bool sum);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_SASSINFLIGHT_H
