//===- FloatReference.h - Floating point by exact integers ----------------===//
//
// The oracle of the floating-point tests: values are wide fixed-point numbers, so sums and products are exact and
// rounding is a shift.  It shares no code and no method with the emulator.  Also the edge values of the emulator
// specification (section 6.1) and a runner that tries an opcode at every CPU level.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_FLOATREFERENCE_H
#define KILN_TESTS_EMULATOR_FLOATREFERENCE_H

#include "tests/emulator/HandlerHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace kiln::emulator::test {

using U64 = std::uint64_t;
using U32 = std::uint32_t;

enum class Mode { Near, Zero, Down, Up, Away };
inline Mode modeOf(const std::string &name) {
  return name == "rz"    ? Mode::Zero
         : name == "rm"  ? Mode::Down
         : name == "rp"  ? Mode::Up
         : name == "rna" ? Mode::Away
                         : Mode::Near;
}

/// A binary format with a sign bit; `topCode` is the first code that is no finite value (infinity where there is one).
struct Format {
  unsigned width, mantissa;
  int minExponent; ///< of the smallest normal value
  U64 topCode;
  U64 nan; ///< the canonical NaN
  int bias() const { return 1 - minExponent; }
  U64 sign() const { return U64(1) << (width - 1); }
};
inline constexpr Format f64Format{64, 52, -1022, 0x7ff0000000000000, 0xfff8000000000000};
inline constexpr Format f32Format{32, 23, -126, 0x7f800000, 0x7fffffff};
inline constexpr Format f16Format{16, 10, -14, 0x7c00, 0x7fff};
inline constexpr Format bf16Format{16, 7, -126, 0x7f80, 0x7fff};

/// Units of 2^-fixedPoint.  f64 values beyond 2^600 or with bits below the unit become others that round alike in any
/// narrower format.
using Fixed = unsigned _BitInt(1024);
inline constexpr int fixedPoint = 350;

struct Exact {
  bool nan = false, infinite = false, negative = false;
  Fixed magnitude = 0;
  bool zero() const { return !nan && !infinite && magnitude == 0; }
};

struct Parts {
  bool nan = false, infinite = false, negative = false;
  U64 mantissa = 0;
  int exponent = 0; ///< value = mantissa * 2^exponent
};

inline Parts partsOf(const Format &f, U64 bits) {
  Parts p;
  const U64 m = bits & (f.sign() - 1);
  p.negative = (bits & f.sign()) != 0;
  if (m >= f.topCode) {
    p.infinite = m == f.topCode;
    p.nan = !p.infinite;
    return p;
  }
  const int e = static_cast<int>(m >> f.mantissa);
  p.mantissa = (m & ((U64(1) << f.mantissa) - 1)) | (e ? U64(1) << f.mantissa : 0);
  p.exponent = (e ? e : 1) - f.bias() - static_cast<int>(f.mantissa);
  return p;
}
/// .ftz of an input.
inline U64 flushBits(const Format &f, U64 bits) {
  return (bits & (f.sign() - 1)) < (U64(1) << f.mantissa) ? bits & f.sign() : bits;
}

inline Exact exactOf(bool negative, unsigned __int128 m, int e) {
  Exact x;
  x.negative = negative;
  if (m)
    x.magnitude = e < -fixedPoint ? Fixed(1) : Fixed(m) << (std::min(e, 600) + fixedPoint);
  return x;
}
inline Exact exactOf(const Parts &p) {
  Exact x = p.nan || p.infinite ? Exact{} : exactOf(p.negative, p.mantissa, p.exponent);
  x.nan = p.nan;
  x.infinite = p.infinite;
  x.negative = p.negative;
  return x;
}
inline Exact exactOf(const Format &f, U64 bits) {
  return exactOf(partsOf(f, bits));
}

inline Exact product(const Parts &a, const Parts &b) {
  const bool zero = (!a.nan && !a.infinite && a.mantissa == 0) || (!b.nan && !b.infinite && b.mantissa == 0);
  const bool infinite = a.infinite || b.infinite;
  Exact x;
  x.negative = a.negative != b.negative;
  x.nan = a.nan || b.nan || (zero && infinite);
  x.infinite = infinite;
  if (x.nan || x.infinite)
    return x;
  return exactOf(x.negative, static_cast<unsigned __int128>(a.mantissa) * b.mantissa, a.exponent + b.exponent);
}
inline Exact sum(const Exact &a, const Exact &b, Mode mode) {
  if (a.nan || b.nan || (a.infinite && b.infinite && a.negative != b.negative)) {
    Exact x;
    x.nan = true;
    return x;
  }
  if (a.infinite || b.infinite)
    return a.infinite ? a : b;
  Exact x;
  if (a.negative == b.negative) {
    x.negative = a.negative;
    x.magnitude = a.magnitude + b.magnitude;
  } else if (a.magnitude == b.magnitude) {
    x.negative = mode == Mode::Down;
  } else {
    const bool first = a.magnitude > b.magnitude;
    x.negative = first ? a.negative : b.negative;
    x.magnitude = first ? a.magnitude - b.magnitude : b.magnitude - a.magnitude;
  }
  return x;
}
inline Exact negated(Exact x) {
  x.negative = !x.negative;
  return x;
}

inline int bitLength(const Fixed &v) {
  for (int w = 15; w >= 0; --w)
    if (const U64 word = static_cast<U64>(v >> (64 * w)))
      return 64 * w + std::bit_width(word);
  return 0;
}
/// v / 2^shift as an integer.
inline U64 roundShift(const Fixed &v, int shift, Mode mode, bool negative) {
  if (shift <= 0)
    return static_cast<U64>(v << -shift);
  U64 n = static_cast<U64>(v >> shift);
  const Fixed rest = v & ((Fixed(1) << shift) - 1), half = Fixed(1) << (shift - 1);
  bool up = false;
  switch (mode) {
  case Mode::Near:
    up = rest > half || (rest == half && (n & 1));
    break;
  case Mode::Away:
    up = rest >= half;
    break;
  case Mode::Zero:
    break;
  case Mode::Down:
    up = negative && rest != 0;
    break;
  case Mode::Up:
    up = !negative && rest != 0;
    break;
  }
  return n + up;
}

struct RoundOptions {
  bool ftz = false, sat = false, relu = false;
  bool finite = false; ///< overflow and infinity give the greatest finite value
};

inline U64 roundTo(const Format &f, Exact x, Mode mode, RoundOptions options = {}) {
  if (options.sat) {
    if (x.nan || x.negative)
      return 0;
    const Exact one = exactOf(false, 1, 0);
    if (x.infinite || x.magnitude > one.magnitude)
      x = one;
  }
  if (x.nan)
    return f.nan;
  if (options.relu && x.negative)
    return 0;
  const U64 sign = x.negative ? f.sign() : 0;
  if (x.infinite)
    return sign | (options.finite ? f.topCode - 1 : f.topCode);
  if (x.magnitude == 0)
    return sign;
  const int length = bitLength(x.magnitude);
  const int m = static_cast<int>(f.mantissa);
  if (options.ftz) { // tiny after rounding with an unbounded exponent
    const U64 n = roundShift(x.magnitude, length - 1 - m, mode, x.negative);
    const int e = length - 1 - fixedPoint + (n >> (m + 1) ? 1 : 0);
    if (e < f.minExponent)
      return sign;
  }
  const int e = std::max(length - 1 - fixedPoint, f.minExponent);
  const U64 n = roundShift(x.magnitude, e - m + fixedPoint, mode, x.negative);
  U64 code = (static_cast<U64>(e - f.minExponent) << m) + n;
  if (code >= f.topCode) {
    const bool toInfinity = mode == Mode::Near || mode == Mode::Away || (mode == Mode::Up && !x.negative) ||
                            (mode == Mode::Down && x.negative);
    code = toInfinity && !options.finite ? f.topCode : f.topCode - 1;
  }
  return sign | code;
}

//===--- values ----------------------------------------------------------===//

/// Section 6.1: edge values of a format with both signs, from the values of f32 rounded to it, and its own limits.
inline std::vector<U64> edgesOf(const Format &f) {
  static const double values[] = {
      0.0,    1.0,     1.5,       2.5,      0.3,       0.5,       8388607.5,      8388608.5,  16777217.0,   0x1p31,
      0x1p32, 0x1p63,  0x1p64,    65504.0,  65519.996, 65520.0,   448.0,          464.0,      57344.0,      61440.0,
      0x1p-9, 0x1p-10, 0x1.8p-10, 0x1p-16,  0x1p-17,   0x1.8p-17, 0x1p-24,        0x1p-25,    0x1p-63,      0x1p-64,
      3.0,    255.0,   256.0,     127.5,    32767.5,   65535.5,   2147483647.0,   0.99999994, 1e10,         1e-30,
      7.5,    28.0,    6.0,       0x1p-127, 0x1p127,   0x1p126,   0x1.000002p126, 0x1p-126,   4294967295.0, 0x1p-62};
  std::vector<U64> out;
  auto add = [&](U64 b) {
    out.push_back(b);
    out.push_back(b | f.sign());
  };
  for (double v : values) {
    const U64 b = roundTo(f, exactOf(f64Format, std::bit_cast<U64>(v)), Mode::Near);
    add(b);
    if (b + 1 < f.topCode)
      add(b + 1);
    if (b)
      add(b - 1);
  }
  const U64 minNormal = U64(1) << f.mantissa;
  for (U64 b : {U64(1), U64(2), minNormal - 1, minNormal, minNormal + 1, f.topCode - 1, f.topCode, f.topCode + 1,
                f.topCode | minNormal >> 1, f.topCode | minNormal >> 1 | 5, f.nan & (f.sign() - 1)})
    add(b);
  return out;
}
/// Random bits; every other time near 1 in magnitude, so that sums cancel and products round.
inline U64 randomOf(const Format &f, std::mt19937_64 &rng) {
  U64 b = rng();
  if (b >> 63) {
    const U64 near = static_cast<U64>(f.bias() - 6 + static_cast<int>(rng() % 13)) << f.mantissa;
    b = (b & (f.sign() | ((U64(1) << f.mantissa) - 1))) | near;
    if (rng() & 1) // few mantissa bits: ties
      b &= ~((U64(1) << f.mantissa / 2) - 1);
  } else {
    b = rng();
  }
  return f.width == 64 ? b : b & ((f.sign() << 1) - 1);
}

//===--- running ---------------------------------------------------------===//

using Case = std::array<U64, 4>;

/// Edge values of the formats, in all pairs (one in sixteen in the sample tier; a third value random), then random values.
inline std::vector<Case> casesOf(const std::vector<Format> &formats, std::size_t random) {
  std::mt19937_64 rng(20261121);
  std::vector<std::vector<U64>> edges;
  for (const Format &f : formats)
    edges.push_back(edgesOf(f));
  std::vector<Case> out;
  if (formats.size() == 1) {
    for (U64 a : edges[0])
      out.push_back({a});
  } else {
    for (U64 a : edges[0])
      for (U64 b : edges[1])
        if (kiln::test::isFullTier() || rng() % 16 == 0)
          out.push_back({a, b, formats.size() > 2 ? edges[2][rng() % edges[2].size()] : 0});
  }
  for (std::size_t i = 0; i < random; ++i) {
    Case c{};
    for (std::size_t k = 0; k < formats.size(); ++k)
      c[k] = rng() % 16 ? randomOf(formats[k], rng) : edges[k][rng() % edges[k].size()];
    out.push_back(c);
  }
  return out;
}

using Reference = std::function<U64(const Case &)>;

/// Runs `opcode` on the cases at every level of this CPU and gives each result to `accept(case index, result)`.
template <typename Fn>
void runCases(const std::string &opcode, const std::vector<Case> &cases, Fn accept,
              std::vector<unsigned> registers = {}, std::string_view target = "sm_100a") {
  for (std::string_view level : builtLevels()) {
    if (!instructionTable(level))
      continue; // this CPU lacks it
    HandlerHarness h(opcode, level, target, registers);
    ASSERT_TRUE(h.ok()) << opcode << ": " << h.why();
    std::mt19937_64 rng(7);
    for (std::size_t begin = 0; begin < cases.size(); begin += warpSize) {
      for (unsigned s = 0; s < h.sources(); ++s) {
        LaneValues v;
        for (unsigned l = 0; l < warpSize; ++l)
          v[l] = cases[(begin + l) % cases.size()][s];
        h.setSource(s, v);
      }
      // Every fourth group with some lanes off: these keep what was there.
      const std::uint32_t exec = begin / warpSize % 4 == 3 ? static_cast<std::uint32_t>(rng()) | 1u : fullMask;
      ASSERT_EQ(h.run(exec), Next::Advance);
      const LaneValues out = h.result();
      const U64 poison = h.destinationBytes() == 8 ? HandlerHarness::poison : HandlerHarness::poison & 0xffffffffu;
      for (unsigned l = 0; l < warpSize; ++l) {
        if (!(exec >> l & 1)) {
          ASSERT_EQ(out[l], poison) << opcode << " wrote the inactive lane " << l;
          continue;
        }
        accept((begin + l) % cases.size(), out[l]);
        if (::testing::Test::HasFailure()) {
          const Case &c = cases[(begin + l) % cases.size()];
          FAIL() << opcode << " at " << level << std::hex << " of " << c[0] << " " << c[1] << " " << c[2];
        }
      }
    }
  }
}

/// The lane's whole register equals the reference.
inline void expectBits(const std::string &opcode, const std::vector<Case> &cases, const Reference &reference,
                       std::vector<unsigned> registers = {}, std::string_view target = "sm_100a") {
  std::vector<U64> wanted;
  wanted.reserve(cases.size());
  for (const Case &c : cases)
    wanted.push_back(reference(c));
  runCases(
      opcode, cases,
      [&](std::size_t i, U64 got) {
        if (got != wanted[i])
          ADD_FAILURE() << opcode << std::hex << ": " << got << ", expected " << wanted[i];
      },
      registers, target);
}

} // namespace kiln::emulator::test

#endif // KILN_TESTS_EMULATOR_FLOATREFERENCE_H
