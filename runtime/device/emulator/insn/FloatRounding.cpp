// add, sub, mul, fma, mad, div, rcp, sqrt of f32 with .rz .rm .rp: section 1.3 of the emulator specification.
//
// The exact result is formed in f64, to odd where 53 bits do not hold it, and rounded once.  Quotients and roots are
// rounded to a neighbour of the exact result and then corrected by the sign of an exact residual.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

struct Add {
  template <Rounding R, bool Ftz> static float apply(float a, float b) {
    return roundedFlush<R, Ftz>(oddSum<R>(flushIf<Ftz>(a), flushIf<Ftz>(b)));
  }
};
struct Sub {
  template <Rounding R, bool Ftz> static float apply(float a, float b) { return Add::apply<R, Ftz>(a, -b); }
};
struct Mul {
  template <Rounding R, bool Ftz> static float apply(float a, float b) {
    return roundedFlush<R, Ftz>(double(flushIf<Ftz>(a)) * double(flushIf<Ftz>(b))); // 48 bits: exact
  }
};
struct Fma {
  template <Rounding R, bool Ftz> static float apply(float a, float b, float c) {
    return roundedFlush<R, Ftz>(oddSum<R>(double(flushIf<Ftz>(a)) * double(flushIf<Ftz>(b)), flushIf<Ftz>(c)));
  }
};
struct Div {
  template <Rounding R, bool Ftz> static float apply(float x, float y) {
    const double a = flushIf<Ftz>(x), b = flushIf<Ftz>(y);
    const double quotient = a / b;
    const float f = static_cast<float>(quotient);
    const double product = double(f) * b; // exact; NaN if the quotient is exactly 0 or infinite for that reason
    const bool less = product<a, more = product> a;
    const U32 r = steer<R>(bitsOf(f), b > 0 ? more : less, b > 0 ? less : more);
    // Two quotients of f32 values differ from the bounds of isTiny by more than f64 rounding, or are equal to them.
    if constexpr (Ftz)
      return floatOf(isTiny<R>(quotient) ? r & 0x80000000u : r);
    return floatOf(r);
  }
};
struct Rcp {
  template <Rounding R, bool Ftz> static float apply(float a) { return Div::apply<R, Ftz>(1.0f, a); }
};
struct Sqrt {
  template <Rounding R, bool Ftz> static float apply(float x) {
    const double a = flushIf<Ftz>(x);
    const float f = static_cast<float>(squareRoot(a));
    const double square = double(f) * double(f);
    return floatOf(steer<R>(bitsOf(f), square > a, square < a));
  }
};

template <bool Sat> inline float finish(float r) {
  if constexpr (Sat)
    return saturated(r);
  else
    return canonical(r);
}

template <typename Op, typename... A> Handler floats(const Form &f) {
  return withDirected(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        []<bool Ftz, bool Sat>() {
          return lanes<float, A...>([](A... a) { return finish<Sat>(Op::template apply<R, Ftz>(toFloat(a)...)); });
        },
        f.has("ftz"), f.has("sat"));
  });
}
/// Forms without .sat: fewer handlers.
template <typename Op, typename... A> Handler unsaturated(const Form &f) {
  return withDirected(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        []<bool Ftz>() {
          return lanes<float, A...>([](A... a) { return canonical(Op::template apply<R, Ftz>(toFloat(a)...)); });
        },
        f.has("ftz"));
  });
}
/// Widened sources: no .ftz.
template <typename Op, typename... A> Handler widened(const Form &f) {
  return withDirected(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        []<bool Sat>() {
          return lanes<float, A...>([](A... a) { return finish<Sat>(Op::template apply<R, false>(toFloat(a)...)); });
        },
        f.has("sat"));
  });
}
template <typename Op, typename... A> Handler floatPairs(const Form &f) {
  return withDirected(roundingOf(f), [&]<Rounding R>() {
    return withFlags(
        []<bool Ftz>() {
          return lanes<U64, A...>([](A... a) {
            const float low = canonical(Op::template apply<R, Ftz>(floatOf(static_cast<U32>(a))...));
            const float high = canonical(Op::template apply<R, Ftz>(floatOf(static_cast<U32>(a >> 32))...));
            return U64(bitsOf(high)) << 32 | bitsOf(low);
          });
        },
        f.has("ftz"));
  });
}

template <typename Op> Handler buildBinary(const Form &f, std::string &) {
  return floats<Op, float, float>(f);
}
Handler buildFma(const Form &f, std::string &) {
  return floats<Fma, float, float, float>(f);
}
Handler buildDiv(const Form &f, std::string &) {
  return unsaturated<Div, float, float>(f);
}
template <typename Op> Handler buildUnary(const Form &f, std::string &) {
  return unsaturated<Op, float>(f);
}
template <typename Op> Handler buildMixed(const Form &f, std::string &) {
  return f.type(1) == ptx::Type::F16 ? widened<Op, F16, float>(f) : widened<Op, BF16, float>(f);
}
Handler buildMixedFma(const Form &f, std::string &) {
  return f.type(1) == ptx::Type::F16 ? widened<Fma, F16, F16, float>(f) : widened<Fma, BF16, BF16, float>(f);
}
template <typename Op> Handler buildPair(const Form &f, std::string &) {
  return floatPairs<Op, U64, U64>(f);
}
Handler buildPairFma(const Form &f, std::string &) {
  return floatPairs<Fma, U64, U64, U64>(f);
}

constexpr Row rows[] = {
    {"add", "rz|rm|rp ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Add>},
    {"sub", "rz|rm|rp ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Sub>},
    {"mul", "rz|rm|rp ftz? sat?", "f32", "=0 0 0", 75, buildBinary<Mul>},
    {"fma", "rz|rm|rp ftz? sat?", "f32", "=0 0 0 0", 75, buildFma},
    {"mad", "rz|rm|rp ftz? sat?", "f32", "=0 0 0 0", 75, buildFma},
    {"div", "rz|rm|rp ftz?", "f32", "=0 0 0", 75, buildDiv},
    {"rcp", "rz|rm|rp ftz?", "f32", "=0 0", 75, buildUnary<Rcp>},
    {"sqrt", "rz|rm|rp ftz?", "f32", "=0 0", 75, buildUnary<Sqrt>},
    {"add", "rz|rm|rp sat?", "f32.f16|f32.bf16", "=0 1 0", 100, buildMixed<Add>},
    {"sub", "rz|rm|rp sat?", "f32.f16|f32.bf16", "=0 1 0", 100, buildMixed<Sub>},
    {"fma", "rz|rm|rp sat?", "f32.f16|f32.bf16", "=0 1 1 0", 100, buildMixedFma},
    {"add", "rz|rm|rp ftz?", "f32x2", "=0 0 0", 100, buildPair<Add>},
    {"sub", "rz|rm|rp ftz?", "f32x2", "=0 0 0", 100, buildPair<Sub>},
    {"mul", "rz|rm|rp ftz?", "f32x2", "=0 0 0", 100, buildPair<Mul>},
    {"fma", "rz|rm|rp ftz?", "f32x2", "=0 0 0 0", 100, buildPairFma},
};

} // namespace

std::span<const Row> floatRoundingRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
