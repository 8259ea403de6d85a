//===- WgmmaHarness.h - Products of warpgroups, stated once more ----------===//
//
// For tests of wgmma: the arithmetic of section 2.1 of the emulator specification one element at a time, tiles laid out
// in shared memory, and kernels that run one product.  Nothing here uses the emulator's own code.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_WGMMAHARNESS_H
#define KILN_TESTS_EMULATOR_WGMMAHARNESS_H

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// A number format of matrix elements.
struct ElementFormat {
  std::string_view name;
  unsigned bits, exponentBits, fractionBits;
  bool infinity;
  bool integer = false, isSigned = false;
  unsigned skip() const { return integer ? 0 : bits - 1 - exponentBits - fractionBits; }
};
const ElementFormat &elementFormat(std::string_view name);

struct WgmmaTypes {
  std::string_view d, a, b;
  unsigned k; ///< elements
  bool saturate = false;
};

/// One element of D = A * B + C as sm_90's wgmma computes it.  `a` and `b` have k raw elements; `c` is raw too.
std::uint32_t wgmmaElement(const WgmmaTypes &types, const std::uint32_t *a, const std::uint32_t *b, std::uint32_t c,
                           bool negateA, bool negateB);

/// A matrix operand of 32 bytes of K: where its bytes lie and the descriptor that says so.
struct TileLayout {
  bool mnMajor = false;
  unsigned swizzle = 0; ///< bytes
  unsigned extent = 64; ///< of M or N
  unsigned start = 0;   ///< offset in shared memory
  unsigned leading = 16, stride = 0, baseOffset = 0;

  std::uint64_t descriptor() const;
  /// Of element (i along M or N, byte b of K); MN-major elements have 2 bytes and b is even.
  unsigned offset(unsigned i, unsigned b) const;
  /// Bytes from `start` on, at least.
  unsigned span() const;
};
/// A layout as kernels have it, with distances chosen at random where the hardware leaves a choice.
TileLayout randomLayout(std::mt19937 &random, bool mnMajor, unsigned swizzle, unsigned extent, unsigned start);

/// One product: kernel "k" with parameters image (of shared memory), fragments, accumulators, out; 128 threads.
struct WgmmaKernel {
  WgmmaTypes types;
  unsigned n = 8;
  bool fragments = false;
  TileLayout a, b;
  bool scaleD = true, negateA = false, negateB = false;
  bool scaleImmediate = false; ///< scale-d is a constant

  unsigned accumulators() const { return n / (types.d == "f16" ? 4 : 2); }
  std::string opcode() const;
  /// imm-scale and imm-trans, with a comma before.
  std::string immediates() const;
  std::string text(unsigned sharedBytes) const;
};

/// Register and half of element (row of 64, column) of D: thread of the warpgroup, register, shift.
struct FragmentPlace {
  unsigned thread, reg, shift;
};
FragmentPlace accumulatorPlace(bool halves, unsigned row, unsigned column);
FragmentPlace fragmentPlace(unsigned elementBits, unsigned row, unsigned k);

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_WGMMAHARNESS_H
