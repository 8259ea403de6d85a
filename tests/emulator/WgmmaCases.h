//===- WgmmaCases.h - Products compared with their statement ---------------===//
//
// Runs kernels of one product on a device, the emulator or a GPU, and compares every element of D with WgmmaHarness.h.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_WGMMACASES_H
#define KILN_TESTS_EMULATOR_WGMMACASES_H

#include "kiln/Device.h"
#include "tests/emulator/WgmmaHarness.h"

#include <cstdint>
#include <random>
#include <span>

namespace kiln::test {

std::span<const WgmmaTypes> wgmmaTypes();

/// What the elements of a test are drawn from.
enum class Values {
  Small,     ///< about 1
  Wide,      ///< exponents up to 12 from that of 1
  AnyFinite, ///< zeros and subnormal numbers too
  AnyBits,   ///< infinities and NaNs too
};
std::uint32_t randomElement(std::mt19937 &random, const ElementFormat &f, Values values);

constexpr unsigned wgmmaSharedBase = 1024; ///< where dynamic shared memory starts

void setRandomScales(std::mt19937 &random, WgmmaKernel &kernel);
/// Chooses layouts, runs the product and compares every element; failures are GoogleTest's.
void checkWgmma(Device &device, std::mt19937 &random, WgmmaKernel kernel, Values values, unsigned swizzleA, bool mnA,
                unsigned swizzleB, bool mnB);

void wgmmaEveryTypeMajorAndSwizzle(Device &device);
void wgmmaEveryWidth(Device &device);
/// Numbers of any size, where the truncation of addends shows, and infinities and NaNs.
void wgmmaAnyNumbers(Device &device);

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_WGMMACASES_H
