// add, sub, mul, fma, mad, div, rcp, sqrt of f32 and f64 rounded to nearest: section 1.3 of the emulator specification.
// The directed roundings are in FloatRounding.cpp.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// Clears r if `scaled`, the exact result times 2^64 rounded to 24 bits, is below the normal numbers: a product that
/// rounds up to 2^-126 is not flushed, one that is exactly below is.
inline float flushTiny(float r, float scaled) {
  return floatOf(magnitude(scaled) < 0x1p-62f ? bitsOf(r) & 0x80000000u : bitsOf(r));
}

struct Add {
  template <bool Ftz> static float apply(float a, float b) { return flushIf<Ftz>(flushIf<Ftz>(a) + flushIf<Ftz>(b)); }
  static double apply64(double a, double b) { return a + b; }
};
struct Sub {
  template <bool Ftz> static float apply(float a, float b) { return flushIf<Ftz>(flushIf<Ftz>(a) - flushIf<Ftz>(b)); }
  static double apply64(double a, double b) { return a - b; }
};
struct Mul {
  template <bool Ftz> static float apply(float a, float b) {
    if constexpr (!Ftz)
      return a * b;
    a = flushed(a), b = flushed(b);
    return flushTiny(a * b, a * 0x1p64f * b);
  }
  static double apply64(double a, double b) { return a * b; }
};
struct Div {
  template <bool Ftz> static float apply(float a, float b) {
    if constexpr (!Ftz)
      return a / b;
    a = flushed(a), b = flushed(b);
    return flushTiny(a / b, a * 0x1p64f / b);
  }
  static double apply64(double a, double b) { return a / b; }
};
struct Fma {
  template <bool Ftz> static float apply(float a, float b, float c) {
    if constexpr (!Ftz)
      return fusedFloat(a, b, c);
    a = flushed(a), b = flushed(b), c = flushed(c);
#if KILN_LEVEL_HAS_FMA
    return flushTiny(fusedFloat(a, b, c), fusedFloat(a * 0x1p64f, b, c * 0x1p64f));
#else
    return roundedFlush<Rounding::Near, true>(oddSum<Rounding::Near>(double(a) * double(b), c));
#endif
  }
  static double apply64(double a, double b, double c) { return __builtin_elementwise_fma(a, b, c); }
};
struct Rcp {
  template <bool Ftz> static float apply(float a) { return Div::apply<Ftz>(1.0f, a); }
  static double apply64(double a) { return 1.0 / a; }
};
struct Sqrt {
  template <bool Ftz> static float apply(float a) { return squareRoot(flushIf<Ftz>(a)); }
  static double apply64(double a) { return squareRoot(a); }
};

template <bool Sat> inline float finish(float r) {
  if constexpr (Sat)
    return saturated(r);
  else
    return canonical(r);
}

/// Handler of an operation with arguments A... (float, F16 or BF16: widened first).
template <typename Op, typename... A> Handler floats(bool ftz, bool sat) {
  return withFlags(
      []<bool Ftz, bool Sat>() {
        return lanes<float, A...>([](A... a) { return finish<Sat>(Op::template apply<Ftz>(toFloat(a)...)); });
      },
      ftz, sat);
}
template <typename Op, typename... A> Handler doubles() {
  return lanes<double, A...>([](A... a) { return canonical(Op::apply64(a...)); });
}

template <typename Op> Handler buildUnary(const Form &f, std::string &) {
  return f.type() == ptx::Type::F64 ? doubles<Op, double>() : floats<Op, float>(f.has("ftz"), f.has("sat"));
}
template <typename Op> Handler buildBinary(const Form &f, std::string &) {
  return f.type() == ptx::Type::F64 ? doubles<Op, double, double>()
                                    : floats<Op, float, float>(f.has("ftz"), f.has("sat"));
}
Handler buildFma(const Form &f, std::string &) {
  return f.type() == ptx::Type::F64 ? doubles<Fma, double, double, double>()
                                    : floats<Fma, float, float, float>(f.has("ftz"), f.has("sat"));
}

/// d = op(widened a, c), for example add.f32.bf16.
template <typename Op> Handler buildMixed(const Form &f, std::string &) {
  return f.type(1) == ptx::Type::F16 ? floats<Op, F16, float>(false, f.has("sat"))
                                     : floats<Op, BF16, float>(false, f.has("sat"));
}
Handler buildMixedFma(const Form &f, std::string &) {
  return f.type(1) == ptx::Type::F16 ? floats<Fma, F16, F16, float>(false, f.has("sat"))
                                     : floats<Fma, BF16, BF16, float>(false, f.has("sat"));
}

template <typename Op, typename... A> Handler floatPairs(bool ftz) {
  return withFlags(
      []<bool Ftz>() {
        return lanes<U64, A...>([](A... a) {
          const float low = canonical(Op::template apply<Ftz>(floatOf(static_cast<U32>(a))...));
          const float high = canonical(Op::template apply<Ftz>(floatOf(static_cast<U32>(a >> 32))...));
          return U64(bitsOf(high)) << 32 | bitsOf(low);
        });
      },
      ftz);
}
template <typename Op> Handler buildPair(const Form &f, std::string &) {
  return floatPairs<Op, U64, U64>(f.has("ftz"));
}
Handler buildPairFma(const Form &f, std::string &) {
  return floatPairs<Fma, U64, U64, U64>(f.has("ftz"));
}

constexpr Row rows[] = {
    {"add", "rn? ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Add>},
    {"add", "rn?", "f64", "=0 0 0", 75, buildBinary<Add>},
    {"sub", "rn? ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Sub>},
    {"sub", "rn?", "f64", "=0 0 0", 75, buildBinary<Sub>},
    {"mul", "rn? ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Mul>},
    {"mul", "rn?", "f64", "=0 0 0", 75, buildBinary<Mul>},
    {"fma", "rn ftz? sat?", "f32", "=0 0 0 0", 75, buildFma},
    {"fma", "rn", "f64", "=0 0 0 0", 75, buildFma},
    {"mad", "rn ftz? sat?", "f32", "=0 0 0 0", 75, buildFma},
    {"mad", "rn", "f64", "=0 0 0 0", 75, buildFma},
    {"div", "rn ftz?", "f32", "=0 0 0", 75, buildBinary<Div>},
    {"div", "rn", "f64", "=0 0 0", 75, buildBinary<Div>},
    {"rcp", "rn ftz?", "f32", "=0 0", 75, buildUnary<Rcp>},
    {"rcp", "rn", "f64", "=0 0", 75, buildUnary<Rcp>},
    {"sqrt", "rn ftz?", "f32", "=0 0", 75, buildUnary<Sqrt>},
    {"sqrt", "rn", "f64", "=0 0", 75, buildUnary<Sqrt>},
    {"add", "rn? sat?", "f32.f16|f32.bf16", "=0 1 0", 100, buildMixed<Add>},
    {"sub", "rn? sat?", "f32.f16|f32.bf16", "=0 1 0", 100, buildMixed<Sub>},
    {"fma", "rn sat?", "f32.f16|f32.bf16", "=0 1 1 0", 100, buildMixedFma},
    {"add", "rn? ftz?", "f32x2", "=0 0 0", 100, buildPair<Add>},
    {"sub", "rn? ftz?", "f32x2", "=0 0 0", 100, buildPair<Sub>},
    {"mul", "rn? ftz?", "f32x2", "=0 0 0", 100, buildPair<Mul>},
    {"fma", "rn ftz?", "f32x2", "=0 0 0 0", 100, buildPairFma},
};

} // namespace

std::span<const Row> floatArithmeticRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
