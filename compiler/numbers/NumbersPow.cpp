// Powers and roots in fp32.  x^y = 2^(y log2 x) with log2 x and the product as unevaluated sums of two floats.
#include "compiler/numbers/NumbersImplementations.h"

#include <cmath>
#include <limits>

namespace kiln::numbers {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A number of about 45 bits as high + low.
struct Pair {
  Num high, low;
};

/// log2 of a > 0: e + 2/ln 2 atanh(s), s = f / (2 + f).
Pair log2Pair(Code &code, const Num &a) {
  constexpr double factor = 2.8853900817779268;
  constexpr double factorHigh = 0x1.715476p+1, factorLow = factor - factorHigh;
  const Split32 split = splitLog32(code, a);
  const Num &f = split.f;
  const Num m = f + 1.0;
  const Num u = m + 1.0;
  const Num uLow = (1.0 - u) + m;
  const Num reciprocal = reciprocalApprox(u);
  const Num s = f * reciprocal;
  const Num sLow = fma(-s, uLow, fma(-s, u, f)) * reciprocal;
  // The cubic term, too, as high + low; the coefficients after it are fitted to the first one as rounded.
  const double cubic = atanh32Coefficients[0];
  const Num z = s * s;
  const Num zLow = fma(s + s, sLow, fma(s, s, -z));
  const Num w = s * z;
  const Num wLow = fma(sLow, z, fma(s, zLow, fma(s, z, -w)));
  const Num v = w * cubic;
  const Num vLow = fma(wLow, cubic, fma(w, cubic, -v));
  const Num higher = w * z * polynomial(z, llvm::ArrayRef<double>(atanh32Coefficients).drop_front());
  const Num t = s * factorHigh;
  const Num tLow = fma(sLow, factorHigh, fma(s, factorLow, fma(s, factorHigh, -t)));
  // e + t + v with both rounding errors; |e + t| > |v|.
  const Num first = split.e + t;
  const Num firstLow = (split.e - first) + t;
  const Num sum = first + v;
  const Num sumLow = (first - sum) + v;
  const Num low = (firstLow + sumLow) + ((tLow + vLow) + higher);
  const Num high = sum + low;
  return {high, (sum - high) + low};
}

/// a^y for a > 0 finite.
Num powerOf(Code &code, const Num &a, const Num &y, const Num *yLow) {
  const Pair l = log2Pair(code, a);
  const Num product = y * l.high;
  Num low = fma(y, l.low, fma(y, l.high, -product));
  if (yLow)
    low = fma(*yLow, l.high, low);
  // Beyond 200 the result overflows or vanishes; the low part may be anything there.
  const Num p = clampKeepingNan(product, -200.0, 200.0);
  const Num pLow = select(abs(product) < 200.0, low, 0.0);
  const Num shifted = p + roundingShift;
  const Num f = (p - (shifted - roundingShift)) + pLow;
  const Num mantissa = fma(polynomial(f, exp2_32Coefficients), f, 1.0);
  return scale32(mantissa, bitsOf(shifted) - static_cast<double>(roundingShiftBits));
}

/// Zeros, infinities and the sign, as C's pow has them, for a base that is no NaN.
Num withBase(const Num &x, const Num &regular, const Num &exponentNegative, const Num &exponentOdd) {
  const Num a = abs(x);
  const Num isInfinite = equal(a, infinity);
  const Num edge = select(isInfinite ^ exponentNegative, infinity, regular.code->real(regular.type(), 0.0));
  const Num magnitude = select(isInfinite | equal(a, 0.0), edge, select(equal(a, 1.0), 1.0, regular));
  return select((bitsOf(x) < 0) & exponentOdd, -magnitude, magnitude);
}

} // namespace

Num powF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0], y = operands[1];
  const Num a = abs(x);
  const Num half = y * 0.5;
  const Num whole = equal(trunc(y), y);
  const Num odd = whole & notEqual(trunc(half), half);
  Num result = withBase(x, powerOf(code, a, y, nullptr), y < 0.0, odd);
  const Num invalid = (x < 0.0) & (a < infinity) & (abs(y) < infinity) & notEqual(trunc(y), y);
  result = select(invalid, std::nan(""), result);
  result = select(isNan(x) | isNan(y), x + y, result);
  return select(equal(x, 1.0) | equal(y, 0.0), 1.0, result);
}

Num powiF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num n = signExtend(operands[1], code.i(64));
  const Num y = fromSigned(n, code.f32());
  const Num yLow = fromSigned(n - toSigned(y, code.i(64)), code.f32());
  const Num odd = notEqual(n & 1, 0);
  const Num result = withBase(x, powerOf(code, abs(x), y, &yLow), n < 0, odd);
  return select(equal(n, 0), 1.0, select(isNan(x), x, result));
}

Num powApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num log = code.intrinsic("llvm.nvvm.lg2.approx.ftz.f", code.f32(), operands[0]);
  return code.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", code.f32(), operands[1] * log);
}

Num cbrtF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num magnitude = abs(x);
  const Num tiny = magnitude < 0x1p-100;
  const Num a = select(tiny, magnitude * 0x1p48, magnitude);
  const Num third = code.intrinsic("llvm.nvvm.lg2.approx.ftz.f", code.f32(), a) * (1.0 / 3.0);
  const Num t = code.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", code.f32(), third);
  // One Newton step, t^3 - a with the error of t^2.
  const Num square = t * t;
  const Num difference = fma(fma(t, t, -square), t, fma(square, t, -a));
  const Num root = fma(difference, -reciprocalApprox(square * 3.0), t);
  const Num regular = select(tiny, root * 0x1p-16, root);
  return copySign(select((magnitude > 0.0) & (magnitude < infinity), regular, magnitude), x);
}

Num rsqrtF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.rsqrt.approx.f", code.f32(), operands[0]);
}
Num rsqrtApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", code.f32(), operands[0]);
}
Num sqrtApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.sqrt.approx.ftz.f", code.f32(), operands[0]);
}
Num divApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.div.full", code.f32(), operands);
}
Num reciprocalApprox(const Num &x) {
  return x.code->intrinsic("llvm.nvvm.rcp.approx.ftz.f", x.code->f32(), x);
}

} // namespace kiln::numbers
