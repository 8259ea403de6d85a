//===- SassOrder.h - In which order an assembler put what matters -----------===//
//
// Reads a cubin for sm_90a: instructions of 16 bytes, of which the low 12 bits are the operation (found with nvdisasm).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_SASSORDER_H
#define KILN_TESTS_KERNELS_SASSORDER_H

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

/// What stands between two waits for products of warpgroups.
struct BetweenWaits {
  unsigned leftBefore = 0, leftAfter = 0; ///< products in flight that the wait before, the wait after leaves
  unsigned specials = 0;                  ///< MUFU: exponentials, mostly
  unsigned products = 0;                  ///< HGMMA
};
/// Of the kernel's text, in the order of its addresses: one entry for each two neighbouring waits.  Empty if the cubin
/// is no ELF file or has no such kernel.
std::vector<BetweenWaits> betweenWaits(std::span<const std::byte> cubin, const std::string &kernel);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_SASSORDER_H
