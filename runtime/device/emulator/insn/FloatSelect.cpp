// min, max, abs, neg, copysign, testp of f32 and f64: section 1.3 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

inline float canonicalNanOf(float) {
  return floatOf(canonicalNan32);
}
inline double canonicalNanOf(double) {
  return doubleOf(canonicalNan64);
}

inline float floatingOf(U32 b) {
  return floatOf(b);
}
inline double floatingOf(U64 b) {
  return doubleOf(b);
}

template <bool Max, bool Nan, typename T> inline T extreme(T a, T b) {
  const T nan = canonicalNanOf(a);
  T r = Max ? (a > b ? a : b) : (a < b ? a : b); // b if either is NaN
  // Equal values differ in the sign of zero at most.
  r = a == b ? floatingOf(Max ? bitsOf(a) & bitsOf(b) : bitsOf(a) | bitsOf(b)) : r;
  if constexpr (Nan)
    return isNan(a) || isNan(b) ? nan : r;
  r = isNan(b) ? a : r;
  return canonical(r);
}

/// .xorsign.abs: the extreme of the magnitudes with the product's sign; a NaN result stays canonical.
template <bool Max, bool Nan> inline float extremeXorSign(float a, float b) {
  const float r = extreme<Max, Nan>(magnitude(a), magnitude(b));
  const U32 sign = (bitsOf(a) ^ bitsOf(b)) & 0x80000000u;
  return floatOf(isNan(r) ? canonicalNan32 : bitsOf(r) | sign);
}

template <bool Max> Handler buildExtreme64(const Form &, std::string &) {
  return lanes<double, double, double>([](double a, double b) { return extreme<Max, false>(a, b); });
}
template <bool Max> Handler buildXorSign(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz, bool Nan>() {
        return lanes<float, float, float>(
            [](float a, float b) { return extremeXorSign<Max, Nan>(flushIf<Ftz>(a), flushIf<Ftz>(b)); });
      },
      f.has("ftz"), f.has("NaN"));
}
/// Two or three operands; .abs only with three.
template <bool Max> Handler buildExtreme(const Form &f, std::string &why) {
  if (f.numOperands < 4)
    return withFlags(
        []<bool Ftz, bool Nan>() {
          return lanes<float, float, float>(
              [](float a, float b) { return extreme<Max, Nan>(flushIf<Ftz>(a), flushIf<Ftz>(b)); });
        },
        f.has("ftz"), f.has("NaN"));
  if (f.target && f.target->sm < 100) {
    why = "min and max of three operands need sm_100 or newer";
    return nullptr;
  }
  return withFlags(
      []<bool Ftz, bool Nan, bool Abs>() {
        return lanes<float, float, float, float>([](float a, float b, float c) {
          a = flushIf<Ftz>(a), b = flushIf<Ftz>(b), c = flushIf<Ftz>(c);
          if constexpr (Abs)
            a = magnitude(a), b = magnitude(b), c = magnitude(c);
          return extreme<Max, Nan>(extreme<Max, Nan>(a, b), c);
        });
      },
      f.has("ftz"), f.has("NaN"), f.has("abs"));
}

/// abs and neg touch the sign bit only, of a NaN as well.
Handler buildAbs(const Form &f, std::string &) {
  if (f.type() == ptx::Type::F64)
    return lanes<double, double>([](double a) { return magnitude(a); });
  return withFlags([]<bool Ftz>() { return lanes<float, float>([](float a) { return magnitude(flushIf<Ftz>(a)); }); },
                   f.has("ftz"));
}
Handler buildNeg(const Form &f, std::string &) {
  if (f.type() == ptx::Type::F64)
    return lanes<double, double>([](double a) { return doubleOf(bitsOf(a) ^ 0x8000000000000000ull); });
  return withFlags(
      []<bool Ftz>() {
        return lanes<float, float>([](float a) { return floatOf(bitsOf(flushIf<Ftz>(a)) ^ 0x80000000u); });
      },
      f.has("ftz"));
}

Handler buildCopysign(const Form &f, std::string &) {
  if (f.type() == ptx::Type::F64)
    return lanes<U64, U64, U64>(
        [](U64 sign, U64 value) { return (sign & 0x8000000000000000ull) | (value & 0x7fffffffffffffffull); });
  return lanes<U32, U32, U32>([](U32 sign, U32 value) { return (sign & 0x80000000u) | (value & 0x7fffffffu); });
}

enum class Property { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

template <Property P, typename Bits> inline bool hasProperty(Bits b) {
  constexpr unsigned mantissa = sizeof(Bits) == 8 ? 52 : 23;
  constexpr Bits infinity = static_cast<Bits>(sizeof(Bits) == 8 ? 0x7ffull : 0xffull) << mantissa;
  constexpr Bits normal = Bits(1) << mantissa;
  const Bits m = b & static_cast<Bits>(~(Bits(1) << (sizeof(Bits) * 8 - 1)));
  switch (P) {
  case Property::Finite:
    return m < infinity;
  case Property::Infinite:
    return m == infinity;
  case Property::Number:
    return m <= infinity;
  case Property::NotANumber:
    return m > infinity;
  case Property::Normal:
    return m == 0 || (m >= normal && m < infinity); // zero counts as normal
  case Property::Subnormal:
    return m != 0 && m < normal;
  }
}

template <Property P> Handler buildTest(const Form &f, std::string &) {
  if (f.type() == ptx::Type::F64)
    return lanes<bool, U64>([](U64 b) { return hasProperty<P>(b); });
  return lanes<bool, U32>([](U32 b) { return hasProperty<P>(b); });
}

constexpr Row rows[] = {
    {"min", "ftz?", "f32", "=0 0 0 0?", 75, buildExtreme<false>},
    {"max", "ftz?", "f32", "=0 0 0 0?", 75, buildExtreme<true>},
    {"min", "ftz? NaN", "f32", "=0 0 0 0?", 80, buildExtreme<false>},
    {"max", "ftz? NaN", "f32", "=0 0 0 0?", 80, buildExtreme<true>},
    {"min", "ftz? NaN? abs", "f32", "=0 0 0 0", 100, buildExtreme<false>},
    {"max", "ftz? NaN? abs", "f32", "=0 0 0 0", 100, buildExtreme<true>},
    {"min", "ftz? NaN? xorsign abs", "f32", "=0 0 0", 86, buildXorSign<false>},
    {"max", "ftz? NaN? xorsign abs", "f32", "=0 0 0", 86, buildXorSign<true>},
    {"min", "", "f64", "=0 0 0", 75, buildExtreme64<false>},
    {"max", "", "f64", "=0 0 0", 75, buildExtreme64<true>},
    {"abs", "ftz?", "f32", "=0 0", 75, buildAbs},
    {"abs", "", "f64", "=0 0", 75, buildAbs},
    {"neg", "ftz?", "f32", "=0 0", 75, buildNeg},
    {"neg", "", "f64", "=0 0", 75, buildNeg},
    {"copysign", "", "f32|f64", "=0 0 0", 75, buildCopysign},
    {"testp", "finite", "f32|f64", "=p 0", 75, buildTest<Property::Finite>},
    {"testp", "infinite", "f32|f64", "=p 0", 75, buildTest<Property::Infinite>},
    {"testp", "number", "f32|f64", "=p 0", 75, buildTest<Property::Number>},
    {"testp", "notanumber", "f32|f64", "=p 0", 75, buildTest<Property::NotANumber>},
    {"testp", "normal", "f32|f64", "=p 0", 75, buildTest<Property::Normal>},
    {"testp", "subnormal", "f32|f64", "=p 0", 75, buildTest<Property::Subnormal>},
};

} // namespace

std::span<const Row> floatSelectRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
