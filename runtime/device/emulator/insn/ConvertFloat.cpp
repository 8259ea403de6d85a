// cvt between floating-point formats, one value each: section 1.4 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/ConvertLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using ptx::Type;

//===--- narrowing to 16 bits --------------------------------------------===//

/// An f32 that rounds to a 16-bit format as the source does.
inline float narrowable(double x) {
  return oddFloat(x);
}
inline float narrowable(F16 x) {
  return toFloat(x);
}
inline float narrowable(BF16 x) {
  return toFloat(x);
}
inline float narrowable(float x) {
  return x;
}

/// .ftz is accepted and changes nothing: an f32 source is not flushed on the way to f16 (seen on an H200: a subnormal
/// rounds up to 2^-24 in cvt.rp.ftz.f16.f32).
template <typename H, Rounding R, typename Source, bool Sat> Handler toShort(const Form &f) {
  return converts<H, Source>(f, [](Source s) {
    float x = narrowable(s);
    if constexpr (Sat)
      x = saturated(x);
    return toHalf<H, R>(x);
  });
}
template <typename H> Handler toShortFrom(const Form &f) {
  return withRounding(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        [&]<bool Sat>() {
          switch (f.type(1)) {
          case Type::F16:
            return toShort<H, R, F16, false>(f);
          case Type::BF16:
            return toShort<H, R, BF16, false>(f);
          case Type::F64:
            return toShort<H, R, double, Sat>(f);
          default:
            return toShort<H, R, float, Sat>(f);
          }
        },
        f.has("sat"));
  });
}
Handler buildToShort(const Form &f, std::string &) {
  return f.type() == Type::F16 ? toShortFrom<F16>(f) : toShortFrom<BF16>(f);
}

/// cvt.{rn,rz}{.relu}{.satfinite} from f32.
template <typename H> Handler toShortLimited(const Form &f) {
  return withFlags(
      [&]<bool TowardZero, bool Relu, bool Finite>() {
        return converts<H, float>(
            f, [](float x) { return narrowLimited<H, TowardZero ? Rounding::Zero : Rounding::Near, Relu, Finite>(x); });
      },
      f.has("rz"), f.has("relu"), f.has("satfinite"));
}
Handler buildToShortLimited(const Form &f, std::string &) {
  return f.type() == Type::F16 ? toShortLimited<F16>(f) : toShortLimited<BF16>(f);
}

//===--- tf32 ------------------------------------------------------------===//

enum class TfRounding { Away, Near, Zero };

/// .rna only drops the low bits of a NaN, which may leave an infinity (seen on an H200); rn and rz make it canonical.
template <TfRounding R, bool Relu, bool Finite> inline U32 toTf32(float x) {
  constexpr U32 dropped = 0x1fff;
  const U32 b = bitsOf(x);
  U32 r = b;
  if constexpr (R == TfRounding::Away)
    r += isNan(x) ? 0 : 0x1000;
  if constexpr (R == TfRounding::Near)
    r += 0xfff + (b >> 13 & 1);
  r &= ~dropped;
  if constexpr (Finite)
    r = (r & 0x7fffffffu) == 0x7f800000u ? (r & 0x80000000u) | 0x7f7fe000u : r;
  if constexpr (Relu)
    r = b >> 31 ? 0 : r;
  if constexpr (R == TfRounding::Away)
    return r;
  return isNan(x) ? canonicalNan32 & ~dropped : r;
}
template <TfRounding R> Handler tf32(const Form &f) {
  return withFlags(
      [&]<bool Relu, bool Finite>() {
        return converts<U32, float>(f, [](float x) { return toTf32<R, Relu, Finite>(x); });
      },
      f.has("relu"), f.has("satfinite"));
}
Handler buildTf32(const Form &f, std::string &) {
  return f.has("rna") ? tf32<TfRounding::Away>(f) : f.has("rn") ? tf32<TfRounding::Near>(f) : tf32<TfRounding::Zero>(f);
}

//===--- to f32 and f64 --------------------------------------------------===//

inline float canonicalFloat(F16 h) {
  return canonical(toFloat(h));
}
inline float canonicalFloat(BF16 h) {
  return canonical(toFloat(h));
}
/// f32 keeps its NaN: only moved or widened.
inline float canonicalFloat(float x) {
  return x;
}

template <typename Source> Handler toSingle(const Form &f) {
  return withFlags(
      [&]<bool Ftz, bool Sat>() {
        return converts<float, Source>(f, [](Source s) {
          const float x = flushIf<Ftz>(canonicalFloat(s));
          return Sat ? saturated(x) : x;
        });
      },
      f.has("ftz"), f.has("sat"));
}
template <typename Source> Handler toDouble(const Form &f) {
  return withFlags(
      [&]<bool Ftz, bool Sat>() {
        return converts<double, Source>(f, [](Source s) {
          const double x = flushIf<Ftz>(canonicalFloat(s));
          return Sat ? saturated(x) : x;
        });
      },
      f.has("ftz"), f.has("sat"));
}
/// Widening, or the same type: exact, so a rounding that bf16 forms may carry says nothing.
Handler buildExact(const Form &f, std::string &) {
  if (f.type(0) == Type::F32)
    return f.type(1) == Type::F16 ? toSingle<F16>(f) : f.type(1) == Type::BF16 ? toSingle<BF16>(f) : toSingle<float>(f);
  if (f.type(0) == Type::F64 && f.type(1) != Type::F64)
    return f.type(1) == Type::F16 ? toDouble<F16>(f) : f.type(1) == Type::BF16 ? toDouble<BF16>(f) : toDouble<float>(f);
  if (f.type(0) == Type::F64)
    return f.has("sat") ? converts<double, double>(f, [](double x) { return saturated(x); })
                        : converts<double, double>(f, [](double x) { return x; });
  return f.has("sat") ? converts<F16, F16>(f, [](F16 h) { return toHalf<F16>(saturated(toFloat(h))); })
                      : converts<U16, U16>(f, [](U16 h) { return h; });
}

Handler buildNarrowDouble(const Form &f, std::string &) {
  return withRounding(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        [&]<bool Ftz, bool Sat>() {
          return converts<float, double>(f, [](double x) {
            const float r = roundedFlush<R, Ftz>(x);
            return Sat ? saturated(r) : r;
          });
        },
        f.has("ftz"), f.has("sat"));
  });
}

//===--- to an integral value of the same type ---------------------------===//

inline double wideOf(double x) {
  return x;
}
inline float wideOf(float x) {
  return x;
}
inline float wideOf(F16 x) {
  return toFloat(x);
}
inline float wideOf(BF16 x) {
  return toFloat(x);
}
inline double narrowTo(double, double x) {
  return canonical(x);
}
inline float narrowTo(float, float x) {
  return canonical(x);
}
template <typename H> inline H narrowTo(H, float x) {
  return toHalf<H>(x);
}

template <typename T, bool Ftz> Handler integrals(const Form &f) {
  return withRounding(integralRoundingOf(f), [&]<Rounding R>() {
    return withFlags(
        [&]<bool Sat>() {
          return converts<T, T>(f, [](T s) {
            auto x = wideOf(s);
            if constexpr (Ftz)
              x = flushed(x);
            x = integral<R>(x);
            return narrowTo(s, Sat ? saturated(x) : x);
          });
        },
        f.has("sat"));
  });
}
Handler buildIntegral(const Form &f, std::string &) {
  switch (f.type()) {
  case Type::F16:
    return integrals<F16, false>(f);
  case Type::BF16:
    return integrals<BF16, false>(f);
  case Type::F64:
    return integrals<double, false>(f);
  default:
    return f.has("ftz") ? integrals<float, true>(f) : integrals<float, false>(f);
  }
}

constexpr Row rows[] = {
    {"cvt", "rn|rz|rm|rp ftz? sat?", "f16.f32", "=0 1", 75, buildToShort},
    {"cvt", "rn|rz|rm|rp sat?", "f16.f64", "=0 1", 75, buildToShort},
    {"cvt", "rn|rz|rm|rp?", "f16.bf16|bf16.f16", "=0 1", 90, buildToShort},
    {"cvt", "rn|rz|rm|rp ftz?", "bf16.f32", "=0 1", 80, buildToShort},
    {"cvt", "rn|rz|rm|rp", "bf16.f64", "=0 1", 90, buildToShort},
    {"cvt", "rn|rz satfinite", "f16.f32", "=0 1", 75, buildToShortLimited},
    {"cvt", "rn|rz relu satfinite?", "f16.f32", "=0 1", 80, buildToShortLimited},
    {"cvt", "rn|rz satfinite", "bf16.f32", "=0 1", 80, buildToShortLimited},
    {"cvt", "rn|rz relu satfinite?", "bf16.f32", "=0 1", 80, buildToShortLimited},
    {"cvt", "rna satfinite?", "tf32.f32", "=0 1", 80, buildTf32},
    {"cvt", "rn|rz relu?", "tf32.f32", "=0 1", 90, buildTf32},
    {"cvt", "rn|rz relu? satfinite", "tf32.f32", "=0 1", 100, buildTf32},
    {"cvt", "ftz? sat?", "f32.f16|f32.f32|f64.f32", "=0 1", 75, buildExact},
    {"cvt", "sat?", "f64.f16|f64.f64|f16.f16", "=0 1", 75, buildExact},
    {"cvt", "rn|rz|rm|rp?", "f32.bf16", "=0 1", 80, buildExact},
    {"cvt", "rn|rz|rm|rp? ftz", "f32.bf16", "=0 1", 90, buildExact},
    {"cvt", "rn|rz|rm|rp?", "f64.bf16", "=0 1", 90, buildExact},
    {"cvt", "", "bf16.bf16", "=0 1", 90, buildExact},
    {"cvt", "rn|rz|rm|rp ftz? sat?", "f32.f64", "=0 1", 75, buildNarrowDouble},
    {"cvt", "rni|rzi|rmi|rpi ftz? sat?", "f32.f32", "=0 1", 75, buildIntegral},
    {"cvt", "rni|rzi|rmi|rpi sat?", "f16.f16|f64.f64", "=0 1", 75, buildIntegral},
    {"cvt", "rni|rzi|rmi|rpi", "bf16.bf16", "=0 1", 90, buildIntegral},
};

} // namespace

std::span<const Row> convertFloatRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
