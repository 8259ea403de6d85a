// add, sub, mul, fma, neg, abs, min, max of f16, bf16 and their packed pairs: section 1.3 of the emulator
// specification.
//
// Each result is rounded once.  Sums of two halves and products of f16 may be rounded to f32 first: 24 bits are at
// least twice as many as the format has plus two, and what falls among the subnormal numbers is exact.  bf16 products
// and every fma go through round to odd.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// An f32 that rounds to the format as the exact result does.
struct Add {
  template <typename H> static float wide(float a, float b) { return a + b; }
};
struct Sub {
  template <typename H> static float wide(float a, float b) { return a - b; }
};
/// a * b of bf16 values as an odd f32: 16 bits are exact unless the product is subnormal.
[[gnu::always_inline]] inline float oddProduct(float a, float b) {
  // Times 2^128 both are exact and normal; where that overflows, p is large and stays as it is.
  const float p = a * b, scaled = p * 0x1p64f * 0x1p64f, exact = a * 0x1p64f * (b * 0x1p64f);
  // A huge a times zero makes `exact` NaN: nothing was lost there.
  const bool inexact = magnitude(p) < 0x1p-126f && (scaled < exact || scaled > exact);
  const U32 towardZero = bitsOf(p) - (magnitude(scaled) > magnitude(exact) ? 1u : 0u);
  return floatOf(inexact ? towardZero | 1u : bitsOf(p));
}
struct Mul {
  template <typename H> static float wide(float a, float b) {
    if constexpr (std::is_same_v<H, F16>)
      return a * b;
    else
      return oddProduct(a, b);
  }
};
struct Fma {
  template <typename H> [[gnu::always_inline]] static float wide(float a, float b, float c) {
    if constexpr (std::is_same_v<H, F16>)
      return toOdd(twoSum(a * b, c)); // the product of f16 values is exact in f32
    // A product just beyond f32 may come back into range with c: a quarter of everything, exactly.
    const float scale = magnitude(a * b) >= 0x1p126f ? 0.25f : 1.0f;
    const float r = toOdd(twoSum(oddProduct(a * scale, b), c * scale)) * (1.0f / scale);
    // Farther beyond, only an infinite c matters.
    const float infinity = __builtin_inff();
    return magnitude(c) == infinity && magnitude(a) < infinity && magnitude(b) < infinity ? c : r;
  }
};

template <typename Op, typename H, bool Ftz, bool Sat, bool Relu, typename... A>
[[gnu::always_inline]] inline H arithmetic(A... a) {
  float r;
  if constexpr (Ftz)
    r = flushedHalfResult<H>(Op::template wide<H>(flushedHalf<H>(toFloat(a))...));
  else
    r = Op::template wide<H>(toFloat(a)...);
  if constexpr (Sat)
    r = saturated(r);
  if constexpr (Relu)
    r = clampedBelow(r);
  return toHalf<H>(r);
}

inline bool isPacked(const Form &f) {
  return f.type() == ptx::Type::F16x2 || f.type() == ptx::Type::BF16x2;
}
inline bool isF16(const Form &f) {
  return f.type() == ptx::Type::F16 || f.type() == ptx::Type::F16x2;
}

template <typename Op> Handler buildBinary(const Form &f, std::string &) {
  if (!isF16(f))
    return onHalves<BF16, BF16, BF16>(isPacked(f),
                                      [](BF16 a, BF16 b) { return arithmetic<Op, BF16, false, false, false>(a, b); });
  return withFlags(
      [&]<bool Ftz, bool Sat>() {
        return onHalves<F16, F16, F16>(isPacked(f),
                                       [](F16 a, F16 b) { return arithmetic<Op, F16, Ftz, Sat, false>(a, b); });
      },
      f.has("ftz"), f.has("sat"));
}

Handler buildFma(const Form &f, std::string &) {
  if (!isF16(f))
    return withFlags(
        [&]<bool Relu>() {
          return onHalves<BF16, BF16, BF16, BF16>(
              isPacked(f), [](BF16 a, BF16 b, BF16 c) { return arithmetic<Fma, BF16, false, false, Relu>(a, b, c); });
        },
        f.has("relu"));
  return withFlags(
      [&]<bool Ftz, bool Sat, bool Relu>() {
        return onHalves<F16, F16, F16, F16>(
            isPacked(f), [](F16 a, F16 b, F16 c) { return arithmetic<Fma, F16, Ftz, Sat, Relu>(a, b, c); });
      },
      f.has("ftz"), f.has("sat"), f.has("relu"));
}

/// fma.oob: zero if a multiplicand is the NaN that marks an element outside a tensor.
template <typename H> Handler fmaOutOfBounds(const Form &f) {
  return withFlags(
      [&]<bool Relu>() {
        return onHalves<H, H, H, H>(isPacked(f), [](H a, H b, H c) {
          const bool outside = (a.bits & 0x7fff) == 0x7ff7 || (b.bits & 0x7fff) == 0x7ff7;
          const H r = arithmetic<Fma, H, false, false, Relu>(a, b, c);
          return H{static_cast<U16>(outside ? 0 : r.bits)};
        });
      },
      f.has("relu"));
}
Handler buildFmaOutOfBounds(const Form &f, std::string &) {
  return isF16(f) ? fmaOutOfBounds<F16>(f) : fmaOutOfBounds<BF16>(f);
}

template <typename H> inline bool isNan(H h) {
  return (h.bits & 0x7fff) > infinityOf<H>;
}
template <typename H, bool Ftz> inline H flushIf(H h) {
  constexpr U16 minNormal = std::is_same_v<H, F16> ? 0x0400 : 0x0080;
  return H{static_cast<U16>(Ftz && (h.bits & 0x7fff) < minNormal ? h.bits & 0x8000 : h.bits)};
}
/// Integers in the order of the values, -0 below +0.
template <typename H> inline std::int16_t orderOf(H h) {
  const std::int16_t b = static_cast<std::int16_t>(h.bits);
  return static_cast<std::int16_t>(b ^ ((b >> 15) & 0x7fff));
}

template <bool Max, bool Nan, typename H> inline H extreme(H a, H b) {
  const U16 pick = (orderOf(a) < orderOf(b)) != Max ? a.bits : b.bits;
  const bool nanA = isNan(a), nanB = isNan(b);
  if constexpr (Nan)
    return H{nanA || nanB ? canonicalNan16 : pick};
  const U16 number = nanA ? b.bits : nanB ? a.bits : pick;
  return H{nanA && nanB ? canonicalNan16 : number};
}

template <bool Max, typename H> Handler extremes(const Form &f) {
  return withFlags(
      [&]<bool Ftz, bool Nan, bool XorSign>() {
        return onHalves<H, H, H>(isPacked(f), [](H x, H y) {
          const H a = flushIf<H, Ftz>(x), b = flushIf<H, Ftz>(y);
          if constexpr (!XorSign)
            return extreme<Max, Nan>(a, b);
          const H r = extreme<Max, Nan>(H{static_cast<U16>(a.bits & 0x7fff)}, H{static_cast<U16>(b.bits & 0x7fff)});
          return H{static_cast<U16>(isNan(r) ? r.bits : r.bits | ((a.bits ^ b.bits) & 0x8000))};
        });
      },
      f.has("ftz"), f.has("NaN"), f.has("xorsign"));
}
template <bool Max> Handler buildExtreme(const Form &f, std::string &) {
  return isF16(f) ? extremes<Max, F16>(f) : extremes<Max, BF16>(f);
}

/// neg and abs of a NaN give the canonical NaN: they are additions in the hardware, and the assembler's folder agrees.
template <typename H, bool Absolute> Handler signs(const Form &f) {
  return withFlags(
      [&]<bool Ftz>() {
        return onHalves<H, H>(isPacked(f), [](H h) {
          const U16 b = flushIf<H, Ftz>(h).bits;
          return H{static_cast<U16>(isNan(h) ? canonicalNan16 : Absolute ? b & 0x7fff : b ^ 0x8000)};
        });
      },
      f.has("ftz"));
}
template <bool Absolute> Handler buildSign(const Form &f, std::string &) {
  return isF16(f) ? signs<F16, Absolute>(f) : signs<BF16, Absolute>(f);
}

constexpr Row rows[] = {
    {"add", "rn? ftz? sat?", "f16|f16x2", "=0 0 0", 75, buildBinary<Add>},
    {"add", "rn?", "bf16|bf16x2", "=0 0 0", 90, buildBinary<Add>},
    {"sub", "rn? ftz? sat?", "f16|f16x2", "=0 0 0", 75, buildBinary<Sub>},
    {"sub", "rn?", "bf16|bf16x2", "=0 0 0", 90, buildBinary<Sub>},
    {"mul", "rn? ftz? sat?", "f16|f16x2", "=0 0 0", 75, buildBinary<Mul>},
    {"mul", "rn?", "bf16|bf16x2", "=0 0 0", 90, buildBinary<Mul>},
    {"fma", "rn ftz? sat?", "f16|f16x2", "=0 0 0 0", 75, buildFma},
    {"fma", "rn ftz? relu", "f16|f16x2", "=0 0 0 0", 80, buildFma},
    {"fma", "rn relu?", "bf16|bf16x2", "=0 0 0 0", 80, buildFma},
    {"fma", "rn oob relu?", "f16|f16x2|bf16|bf16x2", "=0 0 0 0", 90, buildFmaOutOfBounds},
    {"min", "ftz? NaN?", "f16|f16x2", "=0 0 0", 80, buildExtreme<false>},
    {"max", "ftz? NaN?", "f16|f16x2", "=0 0 0", 80, buildExtreme<true>},
    {"min", "ftz? NaN? xorsign abs", "f16|f16x2", "=0 0 0", 86, buildExtreme<false>},
    {"max", "ftz? NaN? xorsign abs", "f16|f16x2", "=0 0 0", 86, buildExtreme<true>},
    {"min", "NaN?", "bf16|bf16x2", "=0 0 0", 80, buildExtreme<false>},
    {"max", "NaN?", "bf16|bf16x2", "=0 0 0", 80, buildExtreme<true>},
    {"min", "NaN? xorsign abs", "bf16|bf16x2", "=0 0 0", 86, buildExtreme<false>},
    {"max", "NaN? xorsign abs", "bf16|bf16x2", "=0 0 0", 86, buildExtreme<true>},
    {"neg", "ftz?", "f16|f16x2", "=0 0", 75, buildSign<false>},
    {"abs", "ftz?", "f16|f16x2", "=0 0", 75, buildSign<true>},
    {"neg", "", "bf16|bf16x2", "=0 0", 80, buildSign<false>},
    {"abs", "", "bf16|bf16x2", "=0 0", 80, buildSign<true>},
};

} // namespace

std::span<const Row> halfArithmeticRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
