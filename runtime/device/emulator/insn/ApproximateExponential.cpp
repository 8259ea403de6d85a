// ex2, lg2 and tanh with .approx: section 1.3 of the emulator specification.
//
// Computed in f64 with minimax polynomials, relative error below 2^-43, and rounded once to the result's format.  No
// fused multiply-adds: every CPU level gives the same bits.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr double integerShift = 0x1.8p52; ///< x + integerShift has round(x) in its low mantissa bits, for |x| < 2^51

/// 2^x = scale * (1 + fraction), |fraction| < 0.42, for |x| <= 1000.
struct Power {
  double scale, fraction;
};
inline Power powerOf(double x) {
  const double shifted = x + integerShift;
  const double f = x - (shifted - integerShift);
  const double f2 = f * f, f4 = f2 * f2;
  const double low =
      (0x1.62e42fefa39f0p-1 + 0x1.ebfbdff823a9cp-3 * f) + (0x1.c6b08d704794fp-5 + 0x1.3b2ab71877f35p-7 * f) * f2;
  const double high = (0x1.5d87fe8800c77p-10 + 0x1.4308aba824161p-13 * f) +
                      (0x1.ffcb91239add9p-17 + 0x1.63d25cf81249ap-20 * f) * f2 + 0x1.b63d291e497cdp-24 * f4;
  return {doubleOf((bitsOf(shifted) << 52) + 0x3ff0000000000000ull), f * (low + high * f4)};
}

/// 2^x; beyond every 16- and 32-bit format's range x is clamped to where the rounding overflows or gives zero.
[[gnu::always_inline]] inline double exp2(float x) {
  const float low = x < 130.0f ? x : 130.0f; // NaN too
  const Power p = powerOf(low > -160.0f ? low : -160.0f);
  const double r = p.scale + p.scale * p.fraction;
  return isNan(x) ? double(x) : r;
}

[[gnu::always_inline]] inline double tanh(float x) {
  // E = e^(2|x|) - 1 without cancellation: fraction is small where E is.  f32 results are 1 from 9.1 on.
  const float m = magnitude(x) < 16.0f ? magnitude(x) : 16.0f;
  const Power p = powerOf(double(m) * 0x1.71547652b82fep+1);
  const double e = (p.scale - 1.0) + p.scale * p.fraction;
  const double r = e / (e + 2.0);
  return isNan(x) ? double(x) : doubleOf(bitsOf(r) | (bitsOf(double(x)) & 0x8000000000000000ull));
}

[[gnu::always_inline]] inline double log2(float x) {
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log2 m = s P(s^2), s = (m - 1) / (m + 1).
  constexpr U64 rootHalf = 0x3fe6a09e667f3bcdull;
  const U64 u = bitsOf(double(x)) + (0x3ff0000000000000ull - rootHalf);
  const double e = doubleOf(0x4330000000000000ull | u >> 52) - (0x1p52 + 1023.0);
  const double m = doubleOf((u & 0xfffffffffffffull) + rootHalf);
  const double s = (m - 1.0) / (m + 1.0), z = s * s, z2 = z * z, z4 = z2 * z2;
  const double low =
      (0x1.71547652b82fep+1 + 0x1.ec709dc3a047dp-1 * z) + (0x1.2776c50ee38ecp-1 + 0x1.a61762d6ae235p-2 * z) * z2;
  const double high =
      (0x1.484afb6f51a25p-2 + 0x1.0ca162bd4a289p-2 * z) + (0x1.c46d962875e48p-3 + 0x1.b597fa24f2a0ap-3 * z) * z2;
  const double r = e + s * (low + high * z4);
  const double special = x == 0.0f  ? -__builtin_inf()
                         : x > 0.0f ? double(x)
                                    : __builtin_nan(""); // 0, inf, negative, NaN
  return x > 0.0f && x < __builtin_inff() ? r : special;
}

struct Exp2 {
  [[gnu::always_inline]] static double apply(float x) { return exp2(x); }
};
struct Log2 {
  [[gnu::always_inline]] static double apply(float x) { return log2(x); }
};
struct Tanh {
  [[gnu::always_inline]] static double apply(float x) { return tanh(x); }
};

template <typename Op> Handler buildFloat(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz>() {
        return lanes<float, float>(
            [](float x) { return canonical(flushIf<Ftz>(static_cast<float>(Op::apply(flushIf<Ftz>(x))))); });
      },
      f.has("ftz"));
}

/// f16 and bf16; `Ftz` only bf16.
template <typename Op, typename H, bool Ftz> Handler halfHandler(bool packed) {
  return onHalves<H, H>(packed, [](H h) {
    const float x = toFloat(h);
    if constexpr (Ftz)
      return toHalf<H>(flushedHalfResult<H>(oddFloat(Op::apply(flushedHalf<H>(x)))));
    else
      return toHalf<H>(oddFloat(Op::apply(x)));
  });
}
template <typename Op> Handler buildHalf(const Form &f, std::string &) {
  switch (f.type()) {
  case ptx::Type::F16:
    return halfHandler<Op, F16, false>(false);
  case ptx::Type::F16x2:
    return halfHandler<Op, F16, false>(true);
  default:
    break;
  }
  const bool packed = f.type() == ptx::Type::BF16x2;
  return f.has("ftz") ? halfHandler<Op, BF16, true>(packed) : halfHandler<Op, BF16, false>(packed);
}

constexpr Row rows[] = {
    {"ex2", "approx ftz?", "f32", "=0 0", 75, buildFloat<Exp2>},
    {"lg2", "approx ftz?", "f32", "=0 0", 75, buildFloat<Log2>},
    {"tanh", "approx", "f32", "=0 0", 75, buildFloat<Tanh>},
    {"ex2", "approx", "f16|f16x2", "=0 0", 75, buildHalf<Exp2>},
    {"ex2", "approx ftz", "bf16|bf16x2", "=0 0", 90, buildHalf<Exp2>},
    {"tanh", "approx", "f16|f16x2", "=0 0", 75, buildHalf<Tanh>},
    {"tanh", "approx", "bf16|bf16x2", "=0 0", 90, buildHalf<Tanh>},
};

} // namespace

std::span<const Row> approximateExponentialRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
