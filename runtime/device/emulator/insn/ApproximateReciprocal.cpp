// rcp, rsqrt, sqrt and div with .approx or .full: section 1.3 of the emulator specification.
//
// The f32 forms give the correctly rounded value (rsqrt: rounded from f64), which lies within the documented bounds.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <bool Ftz> inline float finish(float r) {
  return canonical(flushIf<Ftz>(r));
}

Handler buildRcp(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz>() { return lanes<float, float>([](float a) { return finish<Ftz>(1.0f / flushIf<Ftz>(a)); }); },
      f.has("ftz"));
}
Handler buildSqrt(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz>() { return lanes<float, float>([](float a) { return finish<Ftz>(squareRoot(flushIf<Ftz>(a))); }); },
      f.has("ftz"));
}
Handler buildRsqrt(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz>() {
        return lanes<float, float>([](float a) {
          // -0 goes to -infinity: the square root keeps the sign of zero.
          return finish<Ftz>(static_cast<float>(1.0 / squareRoot(double(flushIf<Ftz>(a)))));
        });
      },
      f.has("ftz"));
}

/// div.approx multiplies by an approximate reciprocal, which is zero for |b| above 2^126; div.full has no such limit.
template <bool Full> Handler buildDiv(const Form &f, std::string &) {
  return withFlags(
      []<bool Ftz>() {
        return lanes<float, float, float>([](float x, float y) {
          const float a = flushIf<Ftz>(x), b = flushIf<Ftz>(y);
          const float quotient = finish<Ftz>(a / b);
          if constexpr (Full)
            return quotient;
          const float zero = floatOf((bitsOf(a) ^ bitsOf(b)) & 0x80000000u);
          const float huge = magnitude(a) < __builtin_inff() ? zero : canonical(a * 0.0f);
          return magnitude(b) > 0x1p126f ? huge : quotient;
        });
      },
      f.has("ftz"));
}

/// The f64 forms read the high word of the source and write the high word of the result, here rounded to its 20 bits.
inline double highWord(double r) {
  const U64 b = bitsOf(r) + 0x80000000ull;
  const double cut = doubleOf(b & 0xffffffff00000000ull);
  const U64 flushedBits = magnitude(r) < 0x1p-1022 ? bitsOf(r) & 0x8000000000000000ull : bitsOf(cut);
  return doubleOf(isNan(r) ? canonicalNan64 : flushedBits);
}
inline double highInput(double x) {
  const U64 b = bitsOf(x) & 0xffffffff00000000ull;
  const bool subnormal = (b & 0x7ff0000000000000ull) == 0;
  return doubleOf(isNan(x) ? bitsOf(x) : subnormal ? b & 0x8000000000000000ull : b);
}
Handler buildRcp64(const Form &, std::string &) {
  return lanes<double, double>([](double a) { return highWord(1.0 / highInput(a)); });
}
Handler buildRsqrt64(const Form &, std::string &) {
  return lanes<double, double>([](double a) { return highWord(1.0 / squareRoot(highInput(a))); });
}
/// Without .ftz the assembler expands rsqrt to full precision.
Handler buildRsqrt64Full(const Form &, std::string &) {
  return lanes<double, double>([](double a) { return canonical(1.0 / squareRoot(a)); });
}

constexpr Row rows[] = {
    {"rcp", "approx ftz?", "f32", "=0 0", 75, buildRcp},
    {"sqrt", "approx ftz?", "f32", "=0 0", 75, buildSqrt},
    {"rsqrt", "approx ftz?", "f32", "=0 0", 75, buildRsqrt},
    {"div", "approx ftz?", "f32", "=0 0 0", 75, buildDiv<false>},
    {"div", "full ftz?", "f32", "=0 0 0", 75, buildDiv<true>},
    {"rcp", "approx ftz", "f64", "=0 0", 75, buildRcp64},
    {"rsqrt", "approx ftz", "f64", "=0 0", 75, buildRsqrt64},
    {"rsqrt", "approx", "f64", "=0 0", 75, buildRsqrt64Full},
};

} // namespace

std::span<const Row> approximateReciprocalRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
