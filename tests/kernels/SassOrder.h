//===- SassOrder.h - In which order an assembler put what matters -----------===//
//
// Reads a cubin for sm_90a: instructions of 16 bytes, of which the low 12 bits are the operation (found with nvdisasm).
// Which registers an instruction names: SassInFlight.h.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_SASSORDER_H
#define KILN_TESTS_KERNELS_SASSORDER_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

/// One instruction.
struct SassInstruction {
  std::uint64_t low = 0, high = 0;
  unsigned operation() const { return low & 0xFFF; }
  unsigned family() const { return low & 0x1FF; }                           ///< without the form of its operands
  unsigned form() const { return low >> 9 & 0x7; }                          ///< 1: the second source is a register
  bool isAlways() const { return (low >> 12 & 0xF) == 7; }                  ///< no predicate
  bool isProduct() const { return family() >= 0x1F0 && family() <= 0x1F3; } ///< of a warpgroup
  bool isProductWait() const { return operation() == 0x9C5 && (low >> 47 & 1); }
  unsigned leftByWait() const { return high >> 8 & 0xFF; } ///< groups in flight that a wait leaves
};
/// The kernel's text.  Empty if the cubin is no ELF file or has no such kernel.
std::vector<SassInstruction> sassOf(std::span<const std::byte> cubin, const std::string &kernel);

/// What stands between two waits for products of warpgroups.
struct BetweenWaits {
  unsigned leftBefore = 0, leftAfter = 0; ///< products in flight that the wait before, the wait after leaves
  unsigned specials = 0;                  ///< MUFU: exponentials, mostly
  unsigned products = 0;                  ///< HGMMA
};
/// In the order of addresses: one entry for each two neighbouring waits.
std::vector<BetweenWaits> betweenWaits(const std::vector<SassInstruction> &text);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_SASSORDER_H
