// cvt between integers and floating-point numbers: section 1.4 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/ConvertLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

//===--- floating point to integer ---------------------------------------===//

/// NaN to integer: the most significant bit alone for 64-bit results and from f64, else zero (seen on an H200).
template <typename D, typename T>
constexpr D integerOfNan = static_cast<D>(sizeof(D) == 8 || sizeof(T) == 8 ? U64(1) << (sizeof(D) * 8 - 1) : 0);

/// An integral x, or NaN or infinity, clamped to the range of D.
template <typename D, typename T> inline D saturatedInteger(T x) {
  using Wide = std::conditional_t<sizeof(D) == 8, D, std::conditional_t<std::is_same_v<D, U32>, U32, std::int32_t>>;
  constexpr D low = std::is_signed_v<D> ? static_cast<D>(D(1) << (sizeof(D) * 8 - 1)) : D(0);
  constexpr D high = static_cast<D>(~low);
  constexpr T lowest = static_cast<T>(low),
              end = static_cast<T>(U64(1) << (sizeof(D) * 8 - 1)) * T(std::is_signed_v<D> ? 1 : 2);
  const bool fits = x >= lowest && x < end;
  const D inside = static_cast<D>(static_cast<Wide>(fits ? x : T(0)));
  const D outside = x >= end ? high : x < lowest ? low : integerOfNan<D, T>;
  return fits ? inside : outside;
}

template <typename Source, bool Ftz> Handler fromFloat(const Form &f) {
  return withRounding(integralRoundingOf(f), [&]<Rounding R>() {
    return onInteger8(f.type(0), [&]<typename D>() {
      return converts<D, Source>(f, [](Source s) {
        if constexpr (std::is_same_v<Source, double>)
          return saturatedInteger<D>(integral<R>(s));
        else
          return saturatedInteger<D>(integral<R>(flushIf<Ftz>(toFloat(s))));
      });
    });
  });
}
Handler buildToInteger(const Form &f, std::string &) {
  switch (f.type(1)) {
  case ptx::Type::F16:
    return fromFloat<F16, false>(f);
  case ptx::Type::BF16:
    return fromFloat<BF16, false>(f);
  case ptx::Type::F64:
    return fromFloat<double, false>(f);
  default:
    return f.has("ftz") ? fromFloat<float, true>(f) : fromFloat<float, false>(f);
  }
}

//===--- integer to floating point ---------------------------------------===//

/// s as an f64, rounded to odd: exact up to 32 bits.
template <typename S> inline double oddDouble(S s) {
  if constexpr (sizeof(S) < 8)
    return static_cast<double>(s);
  const bool negative = std::is_signed_v<S> && s < 0;
  const U64 m = negative ? U64(0) - static_cast<U64>(s) : static_cast<U64>(s);
  const bool large = m >> 53 != 0;
  const double d = static_cast<double>(large ? m >> 11 | U64((m & 0x7ff) != 0) : m) * (large ? 0x1p11 : 1.0);
  return negative ? -d : d;
}

template <Rounding R, typename S> inline double toDouble(S s) {
  const double d = static_cast<double>(s);
  if constexpr (R == Rounding::Near || sizeof(S) < 8)
    return d;
  const bool negative = std::is_signed_v<S> && s < 0;
  const U64 m = negative ? U64(0) - static_cast<U64>(s) : static_cast<U64>(s);
  const double md = magnitude(d);
  const bool whole = md >= 0x1p64; // beyond every integer
  const U64 back = static_cast<U64>(whole ? 0.0 : md);
  const bool larger = whole || back > m, smaller = !whole && back < m; // in magnitude
  return doubleOf(steer<R>(bitsOf(d), negative ? smaller : larger, negative ? larger : smaller));
}

template <Rounding R, typename S> inline float toSingle(S s) {
  if constexpr (R == Rounding::Near)
    return static_cast<float>(s);
  else
    return rounded<R>(oddDouble(s));
}

template <typename H, Rounding R, bool Sat, typename S> inline H toShort(S s) {
  float x;
  if constexpr (sizeof(S) < 4)
    x = static_cast<float>(s);
  else
    x = oddFloat(oddDouble(s));
  if constexpr (Sat)
    x = saturated(x);
  return toHalf<H, R>(x);
}

template <typename T, Rounding R, bool Sat, typename S> Handler convertsTo(const Form &f) {
  return converts<T, S>(f, [](S s) {
    T r;
    if constexpr (std::is_same_v<T, float>)
      r = toSingle<R>(s);
    else
      r = toDouble<R>(s);
    return Sat ? saturated(r) : r;
  });
}

Handler buildFromInteger(const Form &f, std::string &) {
  return onInteger8(f.type(1), [&]<typename S>() {
    return withRounding(roundingOf(f), [&]<Rounding R>() {
      if (f.type(0) == ptx::Type::BF16)
        return converts<BF16, S>(f, [](S s) { return toShort<BF16, R, false>(s); });
      return withFlags(
          [&]<bool Sat>() {
            // Exact conversions need no handler of their own for each rounding.
            constexpr Rounding R32 = sizeof(S) < 4 ? Rounding::Near : R, R64 = sizeof(S) < 8 ? Rounding::Near : R;
            switch (f.type(0)) {
            case ptx::Type::F16:
              return converts<F16, S>(f, [](S s) { return toShort<F16, R, Sat>(s); });
            case ptx::Type::F32:
              return convertsTo<float, R32, Sat, S>(f);
            default:
              return convertsTo<double, R64, Sat, S>(f);
            }
          },
          f.has("sat"));
    });
  });
}

#define KILN_TO_ALL(s) "u8." s "|s8." s "|u16." s "|s16." s "|u32." s "|s32." s "|u64." s "|s64." s
#define KILN_FROM_ALL(d) d ".u8|" d ".s8|" d ".u16|" d ".s16|" d ".u32|" d ".s32|" d ".u64|" d ".s64"
constexpr const char *bf16ToInteger = "u16.bf16|s16.bf16|u32.bf16|s32.bf16|u64.bf16|s64.bf16";
constexpr const char *integerToBf16 = "bf16.u16|bf16.s16|bf16.u32|bf16.s32|bf16.u64|bf16.s64";

constexpr Row rows[] = {
    {"cvt", "rni|rzi|rmi|rpi ftz? sat?", KILN_TO_ALL("f32"), "=0 1", 75, buildToInteger},
    {"cvt", "rni|rzi|rmi|rpi sat?", KILN_TO_ALL("f16") "|" KILN_TO_ALL("f64"), "=0 1", 75, buildToInteger},
    {"cvt", "rni|rzi|rmi|rpi", bf16ToInteger, "=0 1", 90, buildToInteger},
    {"cvt", "rn|rz|rm|rp ftz? sat?", KILN_FROM_ALL("f32"), "=0 1", 75, buildFromInteger},
    {"cvt", "rn|rz|rm|rp sat?", KILN_FROM_ALL("f16") "|" KILN_FROM_ALL("f64"), "=0 1", 75, buildFromInteger},
    {"cvt", "rn|rz|rm|rp", integerToBf16, "=0 1", 90, buildFromInteger},
};

} // namespace

std::span<const Row> convertNumberRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
