//===- FloatLanes.h - Roundings and formats for lane functions ------------===//
//
// What the floating-point families share: canonical NaNs, .ftz .sat .relu, exact residuals, round to odd, the four
// roundings, and the 16-bit formats.  Sections 1.3 and 1.4 of the emulator specification.  Invariants:
//  - no function reads or changes the host's rounding mode; all host operations round to nearest even;
//  - nothing here contracts a multiply and an add: every CPU level gives the same bits;
//  - "odd" values are rounded to odd: the lowest bit is set whenever the exact value lies strictly between two values.
//    A second rounding to a format at least two bits shorter is then the same as one rounding of the exact value.
//
// Included between LevelBegin.h and LevelEnd.h, in place of LaneOps.h.  No include guard.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/emulator/insn/LaneOps.h"

// The level has a fused multiply-add instruction, or converts f16 in hardware.
#if KILN_LEVEL_NUMBER == 2 || KILN_LEVEL_NUMBER == 3 || (KILN_LEVEL_NUMBER == 4 && defined(__aarch64__))
#define KILN_LEVEL_HAS_FMA 1
#define KILN_LEVEL_HAS_F16C 1
#else
#define KILN_LEVEL_HAS_FMA 0
#define KILN_LEVEL_HAS_F16C 0
#endif

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

enum class Rounding { Near, Zero, Down, Up };

inline U32 bitsOf(float x) {
  return __builtin_bit_cast(U32, x);
}
inline U64 bitsOf(double x) {
  return __builtin_bit_cast(U64, x);
}
inline float floatOf(U32 b) {
  return __builtin_bit_cast(float, b);
}
inline double doubleOf(U64 b) {
  return __builtin_bit_cast(double, b);
}
inline bool isNan(float x) {
  return x != x;
}
inline bool isNan(double x) {
  return x != x;
}
inline float magnitude(float x) {
  return floatOf(bitsOf(x) & 0x7fffffffu);
}
inline double magnitude(double x) {
  return doubleOf(bitsOf(x) & 0x7fffffffffffffffull);
}

constexpr U32 canonicalNan32 = 0x7fffffffu;
constexpr U64 canonicalNan64 = 0xfff8000000000000ull;
constexpr U16 canonicalNan16 = 0x7fff;

/// The result of arithmetic: any NaN becomes the canonical one.
inline float canonical(float x) {
  return floatOf(isNan(x) ? canonicalNan32 : bitsOf(x));
}
inline double canonical(double x) {
  return doubleOf(isNan(x) ? canonicalNan64 : bitsOf(x));
}

/// The root, canonical.  Not canonical(sqrt(x)): the compiler takes all NaNs for equal and drops the choice of one.
inline float squareRoot(float x) {
  const U32 r = bitsOf(__builtin_elementwise_sqrt(magnitude(x))) | (bitsOf(x) & 0x80000000u); // sqrt(-0) = -0
  return floatOf(x < 0.0f || isNan(x) ? canonicalNan32 : r);
}
inline double squareRoot(double x) {
  const U64 r = bitsOf(__builtin_elementwise_sqrt(magnitude(x))) | (bitsOf(x) & 0x8000000000000000ull);
  return doubleOf(x < 0.0 || isNan(x) ? canonicalNan64 : r);
}

/// .ftz of an input: a subnormal becomes zero of its sign.
inline float flushed(float x) {
  return floatOf((bitsOf(x) & 0x7f800000u) == 0 ? bitsOf(x) & 0x80000000u : bitsOf(x));
}
template <bool Ftz> inline float flushIf(float x) {
  if constexpr (Ftz)
    return flushed(x);
  else
    return x;
}

/// .sat: clamps to [0, 1]; NaN and -0 become +0.
template <typename T> inline T saturated(T x) {
  const T low = x > T(0) ? x : T(0);
  return low < T(1) ? low : T(1);
}
/// .relu: negatives and -0 become +0; NaN stays.
inline float clampedBelow(float x) {
  return x > 0.0f || isNan(x) ? x : 0.0f;
}

//===--- exact residuals -------------------------------------------------===//

template <typename T> struct Sum {
  T value; ///< rounded to nearest
  T error; ///< exact sum - value; NaN if value is not finite
};
/// Knuth's two-sum; exact unless an intermediate overflows.
template <typename T> inline Sum<T> twoSum(T a, T b) {
  const T s = a + b;
  const T bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

/// Rounds value + error to odd; |error| is at most half an ulp of value.
inline double toOdd(Sum<double> s) {
  const U64 b = bitsOf(s.value);
  const bool inexact = s.error < 0.0 || s.error > 0.0;
  const bool outward = (bitsOf(s.error) ^ b) >> 63 == 0;
  return doubleOf(inexact && (b & 1) == 0 ? (outward ? b + 1 : b - 1) : b);
}
inline float toOdd(Sum<float> s) {
  const U32 b = bitsOf(s.value);
  const bool inexact = s.error < 0.0f || s.error > 0.0f;
  const bool outward = (bitsOf(s.error) ^ b) >> 31 == 0;
  return floatOf(inexact && (b & 1) == 0 ? (outward ? b + 1 : b - 1) : b);
}

/// f64 (exact or odd) to f32, to odd.
inline float oddFloat(double x) {
  const float f = static_cast<float>(x);
  const double back = f;
  const U32 towardZero = bitsOf(f) - (magnitude(back) > magnitude(x) ? 1u : 0u);
  return floatOf(back != x && !isNan(x) ? towardZero | 1u : bitsOf(f));
}

/// Moves f, which is next to the exact value, to the side that the rounding asks for.  `above`: f > exact, `below`: f <
/// exact; both false if f is exact.
template <Rounding R, typename Bits> inline Bits steer(Bits f, bool above, bool below) {
  constexpr Bits sign = Bits(1) << (sizeof(Bits) * 8 - 1);
  const bool negative = (f & sign) != 0;
  if constexpr (R == Rounding::Zero)
    return static_cast<Bits>(f - ((negative ? below : above) ? 1 : 0));
  if constexpr (R == Rounding::Down)
    return static_cast<Bits>(above ? (negative ? f + 1 : f - 1) : f);
  if constexpr (R == Rounding::Up)
    return static_cast<Bits>(below ? (negative ? f - 1 : f + 1) : f);
  return f;
}

/// f64 (exact or odd) to f32.  NaN keeps its payload.
template <Rounding R> inline float rounded(double x) {
  const float f = static_cast<float>(x);
  if constexpr (R == Rounding::Near)
    return f;
  const double back = f;
  return floatOf(steer<R>(bitsOf(f), back > x, back < x));
}

/// True if x (exact or odd) is below the normal numbers after rounding with an unbounded exponent: .ftz makes it zero.
/// The assembler's folder rounds so: 0x00800001 * 0x3f7ffffe, just below 2^-126, gives 2^-126.
template <Rounding R> inline bool isTiny(double x) {
  const double ax = magnitude(x);
  if constexpr (R == Rounding::Near)
    return ax < 0x1p-126 - 0x1p-151;
  if constexpr (R == Rounding::Zero)
    return ax < 0x1p-126;
  const bool away = (R == Rounding::Up) == (x > 0);
  return away ? ax <= 0x1p-126 - 0x1p-150 : ax < 0x1p-126;
}
template <Rounding R, bool Ftz> inline float roundedFlush(double x) {
  const float f = rounded<R>(x);
  if constexpr (Ftz)
    return floatOf(isTiny<R>(x) ? bitsOf(f) & 0x80000000u : bitsOf(f));
  return f;
}

/// The sum of a and b as an odd f64, with the sign of an exact zero as rounding R wants it.
template <Rounding R> inline double oddSum(double a, double b) {
  const Sum<double> s = twoSum(a, b);
  const double r = toOdd(s);
  if constexpr (R == Rounding::Down)
    return s.value == 0.0 ? doubleOf((bitsOf(a) | bitsOf(b)) & 0x8000000000000000ull) : r;
  return r;
}

/// a * b + c in f32, rounded once.
inline float fusedFloat(float a, float b, float c) {
#if KILN_LEVEL_HAS_FMA
  return __builtin_elementwise_fma(a, b, c);
#else
  return static_cast<float>(oddSum<Rounding::Near>(double(a) * double(b), c));
#endif
}

//===--- 16-bit formats --------------------------------------------------===//

inline float toFloat(F16 h) {
#if KILN_LEVEL_HAS_F16C
  return static_cast<float>(__builtin_bit_cast(_Float16, h.bits));
#else
  const U32 u = h.bits & 0x7fffu;
  const U32 finite = bitsOf(floatOf(u << 13) * 0x1p112f);
  return floatOf((u >= 0x7c00 ? u << 13 | 0x7f800000u : finite) | U32(h.bits & 0x8000u) << 16);
#endif
}
inline float toFloat(BF16 h) {
  return floatOf(U32(h.bits) << 16);
}
inline float toFloat(float x) {
  return x;
}

template <typename H> constexpr U32 minNormalOf = 0; ///< bits of the smallest normal value as an f32
template <> constexpr U32 minNormalOf<F16> = 0x38800000u;
template <> constexpr U32 minNormalOf<BF16> = 0x00800000u;
template <typename H> constexpr U16 infinityOf = 0;
template <> constexpr U16 infinityOf<F16> = 0x7c00;
template <> constexpr U16 infinityOf<BF16> = 0x7f80;

inline U16 nearestHalfBits(F16, float x) {
#if KILN_LEVEL_HAS_F16C
  const U16 r = __builtin_bit_cast(U16, static_cast<_Float16>(x));
  return isNan(x) ? canonicalNan16 : r;
#else
  const U32 ax = bitsOf(x) & 0x7fffffffu;
  const U32 sign = bitsOf(x) >> 16 & 0x8000u;
  const U32 normal = (ax + 0xfff + (ax >> 13 & 1) - 0x38000000u) >> 13;
  const U32 subnormal = bitsOf(floatOf(ax) + 0.5f) - 0x3f000000u; // an ulp of 0.5 is the smallest f16 subnormal
  U32 r = ax < 0x38800000u ? subnormal : normal;
  r = ax >= 0x47800000u ? 0x7c00u : r;
  return static_cast<U16>(ax > 0x7f800000u ? canonicalNan16 : r | sign);
#endif
}
inline U16 nearestHalfBits(BF16, float x) {
  const U32 b = bitsOf(x);
  return static_cast<U16>(isNan(x) ? canonicalNan16 : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/// f32 (exact or odd) to a 16-bit format; NaN becomes canonical.
template <typename H, Rounding R = Rounding::Near> inline H toHalf(float x) {
  const U16 h = nearestHalfBits(H{}, x);
  if constexpr (R == Rounding::Near)
    return H{h};
  const float back = toFloat(H{h});
  return H{steer<R, U16>(h, back > x, back < x)};
}

/// .ftz of a 16-bit input, and of a result (exact or odd) before it is rounded to nearest.
template <typename H> inline float flushedHalf(float x) {
  return floatOf((bitsOf(x) & 0x7fffffffu) < minNormalOf<H> ? bitsOf(x) & 0x80000000u : bitsOf(x));
}
template <typename H> inline float flushedHalfResult(float x) {
  // An f32 that rounds to the smallest normal value from below lies at most half a ulp of the lower binade away.
  constexpr U32 halfUlp = std::is_same_v<H, F16> ? 1u << 12 : 1u << 14; // in f32 steps below the smallest normal
  return floatOf((bitsOf(x) & 0x7fffffffu) < minNormalOf<H> - halfUlp ? bitsOf(x) & 0x80000000u : bitsOf(x));
}

/// cvt to a 16-bit format with .relu and .satfinite.
template <typename H, Rounding R, bool Relu, bool Finite> inline H narrowLimited(float x) {
  const U16 h = toHalf<H, R>(Relu ? clampedBelow(x) : x).bits;
  const bool infinite = Finite && (h & 0x7fff) == infinityOf<H>;
  return H{static_cast<U16>(infinite ? h - 1 : h)};
}

/// Applies f to the halves of packed values and packs what it returns.  Inlined without regard to size: a call would
/// keep the lane loop from being vectorised.
template <typename H, typename Fn, typename... A> [[gnu::always_inline]] inline Pair halves(Fn f, A... a) {
  H low, high;
  [[clang::always_inline]] low = f(H{static_cast<U16>(a.bits)}...);
  [[clang::always_inline]] high = f(H{static_cast<U16>(a.bits >> 16)}...);
  return Pair{U32(high.bits) << 16 | low.bits};
}

/// Handler of d = f(s0, s1, ...) on values of format H, one for each A; packed: on both halves of a register.
template <typename H, typename... A, typename Fn> Handler onHalves(bool packed, Fn) {
  if (packed)
    return lanes<Pair, std::conditional_t<true, Pair, A>...>(
        [](std::conditional_t<true, Pair, A>... a) __attribute__((always_inline)) { return halves<H>(Fn{}, a...); });
  return lanes<H, A...>([](A... a) __attribute__((always_inline)) {
    H r;
    [[clang::always_inline]] r = Fn{}(a...);
    return r;
  });
}

//===--- choosing handlers -----------------------------------------------===//

/// Calls f.operator()<b...>() with run-time booleans as template arguments.
template <bool... Done, typename Fn> inline Handler withFlags(Fn f) {
  return f.template operator()<Done...>();
}
template <bool... Done, typename Fn, typename... B> inline Handler withFlags(Fn f, bool first, B... rest) {
  return first ? withFlags<Done..., true>(f, rest...) : withFlags<Done..., false>(f, rest...);
}

inline Rounding roundingOf(const Form &f) {
  return f.has("rz") ? Rounding::Zero : f.has("rm") ? Rounding::Down : f.has("rp") ? Rounding::Up : Rounding::Near;
}
/// Calls f.operator()<R>() for each rounding but Near, or for all four.
template <typename Fn> inline Handler withDirected(Rounding r, Fn f) {
  switch (r) {
  case Rounding::Down:
    return f.template operator()<Rounding::Down>();
  case Rounding::Up:
    return f.template operator()<Rounding::Up>();
  default:
    return f.template operator()<Rounding::Zero>();
  }
}
template <typename Fn> inline Handler withRounding(Rounding r, Fn f) {
  return r == Rounding::Near ? f.template operator()<Rounding::Near>() : withDirected(r, f);
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
