// cvt to and from packed pairs: f16x2, bf16x2, and the 8-, 6- and 4-bit formats: section 1.4 of the emulator
// specification.
//
// Two f32 sources: the first goes to the high part.  6-bit values lie in a byte each, 4-bit ones in a nibble.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/ConvertLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using ptx::Type;

/// A format with a sign bit and less than 16 bits.  `highest` is the code of the greatest finite value; `nan` that of
/// NaN, written without a sign.
template <unsigned Exponent, unsigned Mantissa, U32 Highest, U32 Nan> struct Small {
  static constexpr unsigned mantissa = Mantissa, width = 1 + Exponent + Mantissa;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr U32 highest = Highest, nan = Nan, sign = 1u << (width - 1);
};
using E4M3 = Small<4, 3, 0x7e, 0x7f>;
using E5M2 = Small<5, 2, 0x7b, 0x7f>;
using E2M3 = Small<2, 3, 0x1f, 0x1f>;
using E3M2 = Small<3, 2, 0x1f, 0x1f>;
using E2M1 = Small<2, 1, 0x7, 0x7>;

constexpr float powerOfTwo(int e) {
  return __builtin_bit_cast(float, static_cast<U32>(e + 127) << 23);
}

/// x rounded to nearest even; everything beyond the greatest value becomes it.
template <typename F, bool Relu> inline U32 encoded(float value) {
  constexpr unsigned cut = 23 - F::mantissa;
  constexpr float minNormal = powerOfTwo(1 - F::bias);
  constexpr float aligner = powerOfTwo(1 - F::bias + static_cast<int>(cut)); // its ulp is the smallest subnormal
  const float x = Relu ? clampedBelow(value) : value;
  const U32 b = bitsOf(x) & 0x7fffffffu;
  const float m = floatOf(b);
  const U32 normal =
      ((b + ((1u << (cut - 1)) - 1) + (b >> cut & 1)) >> cut) - (static_cast<U32>(127 - F::bias) << F::mantissa);
  const U32 subnormal = bitsOf(m + aligner) - bitsOf(aligner);
  const U32 code = m < minNormal ? subnormal : normal;
  const U32 limited = code > F::highest ? F::highest : code;
  return isNan(x) ? F::nan : limited | (bitsOf(x) >> 31 ? F::sign : 0);
}

template <typename F> inline float decoded(U32 code) {
  constexpr unsigned cut = 23 - F::mantissa;
  const U32 m = code & (F::sign - 1);
  // The code's exponent field read as an f32's, then rebiased; exact for subnormals too.
  const float value = floatOf(m << cut) * powerOfTwo(127 - F::bias);
  U32 r = bitsOf(value);
  if constexpr (std::is_same_v<F, E4M3>)
    r = m == 0x7f ? 0x7fc00000u : r;
  if constexpr (std::is_same_v<F, E5M2>)
    r = m > 0x7c ? 0x7fc00000u : m == 0x7c ? 0x7f800000u : r;
  return floatOf(r | (code & F::sign ? 0x80000000u : 0));
}

template <typename F> constexpr unsigned pitch = F::width == 4 ? 4 : 8; ///< bits from one value of a pair to the next

template <typename Fn> Handler withFormat(Type t, Fn f) {
  switch (t) {
  case Type::E4M3x2:
    return f.template operator()<E4M3>();
  case Type::E5M2x2:
    return f.template operator()<E5M2>();
  case Type::E2M3x2:
    return f.template operator()<E2M3>();
  case Type::E3M2x2:
    return f.template operator()<E3M2>();
  default:
    return f.template operator()<E2M1>();
  }
}

Handler buildEncode(const Form &f, std::string &) {
  return withFormat(f.type(0), [&]<typename F>() {
    return withFlags(
        [&]<bool Relu>() {
          if (f.type(1) == Type::F16x2)
            return converts<U32, Pair>(f, [](Pair p) {
              const float high = toFloat(F16{static_cast<U16>(p.bits >> 16)});
              const float low = toFloat(F16{static_cast<U16>(p.bits)});
              return encoded<F, Relu>(high) << pitch<F> | encoded<F, Relu>(low);
            });
          return converts<U32, float, float>(
              f, [](float high, float low) { return encoded<F, Relu>(high) << pitch<F> | encoded<F, Relu>(low); });
        },
        f.has("relu"));
  });
}

/// Exact: every value of these formats is one of f16.
Handler buildDecode(const Form &f, std::string &) {
  return withFormat(f.type(1), [&]<typename F>() {
    return withFlags(
        [&]<bool Relu>() {
          return converts<U32, U16>(f, [](U16 codes) {
            constexpr U32 mask = (1u << pitch<F>)-1;
            const float low = decoded<F>(codes & mask), high = decoded<F>(U32(codes) >> pitch<F> & mask);
            const U32 lowBits = toHalf<F16>(Relu ? clampedBelow(low) : low).bits;
            const U32 highBits = toHalf<F16>(Relu ? clampedBelow(high) : high).bits;
            return highBits << 16 | lowBits;
          });
        },
        f.has("relu"));
  });
}

//===--- ue8m0: 2^(code - 127), 255 is NaN -------------------------------===//

/// The exponent of |x|, rounded toward zero or up; the sign is ignored.
template <bool Up, bool Finite> inline U32 exponentCode(float x) {
  const U32 b = bitsOf(x) & 0x7fffffffu;
  U32 code = b >> 23;
  if constexpr (Up)
    code += (b & 0x7fffffu) != 0 && b > 0x00400000u && b < 0x7f800000u; // 0x00400000: 2^-127, which code 0 holds
  if constexpr (Finite)
    code = code == 255 && !isNan(x) ? 254 : code;
  return code;
}
Handler buildExponent(const Form &f, std::string &) {
  return withFlags(
      [&]<bool Up, bool Finite>() {
        if (f.type(1) == Type::BF16x2)
          return converts<U32, Pair>(f, [](Pair p) {
            const U32 high = exponentCode<Up, Finite>(floatOf(p.bits & 0xffff0000u));
            return high << 8 | exponentCode<Up, Finite>(floatOf(p.bits << 16));
          });
        return converts<U32, float, float>(f, [](float high, float low) {
          return exponentCode<Up, Finite>(high) << 8 | exponentCode<Up, Finite>(low);
        });
      },
      f.has("rp"), f.has("satfinite"));
}

inline U32 bf16OfExponent(U32 code) {
  return code == 0 ? 0x0040u : code == 255 ? canonicalNan16 : code << 7;
}
Handler buildFromExponent(const Form &f, std::string &) {
  return converts<U32, U16>(f,
                            [](U16 codes) { return bf16OfExponent(codes >> 8) << 16 | bf16OfExponent(codes & 0xff); });
}

//===--- f16x2 and bf16x2 ------------------------------------------------===//

template <typename H> Handler pairs(const Form &f) {
  return withFlags(
      [&]<bool TowardZero, bool Relu, bool Finite>() {
        return converts<U32, float, float>(f, [](float high, float low) {
          constexpr Rounding R = TowardZero ? Rounding::Zero : Rounding::Near;
          return U32(narrowLimited<H, R, Relu, Finite>(high).bits) << 16 | narrowLimited<H, R, Relu, Finite>(low).bits;
        });
      },
      f.has("rz"), f.has("relu"), f.has("satfinite"));
}
Handler buildPair(const Form &f, std::string &) {
  return f.type() == Type::F16x2 ? pairs<F16>(f) : pairs<BF16>(f);
}

Handler buildStochastic(const Form &, std::string &why) {
  why = "cvt.rs: stochastic rounding is not emulated; use cvt.rn";
  return nullptr;
}

constexpr Row rows[] = {
    {"cvt", "rn|rz relu? satfinite?", "f16x2.f32|bf16x2.f32", "=0 1 1", 80, buildPair},
    {"cvt", "rn satfinite relu?", "e4m3x2.f32|e5m2x2.f32", "=0 1 1", 89, buildEncode},
    {"cvt", "rn satfinite relu?", "e4m3x2.f16x2|e5m2x2.f16x2", "=0 1", 89, buildEncode},
    {"cvt", "rn relu?", "f16x2.e4m3x2|f16x2.e5m2x2", "=0 1", 89, buildDecode},
    {"cvt", "rn satfinite relu?", "e2m3x2.f32|e3m2x2.f32|e2m1x2.f32", "=0 1 1", 100, buildEncode, Plain, nullptr, true},
    {"cvt", "rn satfinite relu?", "e2m1x2.f16x2", "=0 1", 100, buildEncode, Plain, nullptr, true},
    {"cvt", "rn relu?", "f16x2.e2m3x2|f16x2.e3m2x2|f16x2.e2m1x2", "=0 1", 100, buildDecode, Plain, nullptr, true},
    {"cvt", "rz|rp satfinite?", "ue8m0x2.f32", "=0 1 1", 100, buildExponent, Plain, nullptr, true},
    {"cvt", "rz|rp satfinite?", "ue8m0x2.bf16x2", "=0 1", 100, buildExponent, Plain, nullptr, true},
    {"cvt", "rn", "bf16x2.ue8m0x2", "=0 1", 100, buildFromExponent, Plain, nullptr, true},
    {"cvt", "rs relu? satfinite?", "f16x2.f32|bf16x2.f32", "=0 1 1 b32", 100, buildStochastic, Plain, nullptr, true},
};

} // namespace

std::span<const Row> convertPackedRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
