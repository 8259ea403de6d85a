// fp64 functions: the same methods as in fp32 with longer polynomials.
#include "compiler/numbers/NumbersImplementations.h"

#include <cmath>
#include <limits>

namespace kiln::numbers {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double shift64 = 0x1.8p52;
constexpr double ln2High = 0x1.62e42fefa39efp-1, ln2Low = 0x1.abc9e3b39803fp-56;

/// p 2^n rounded once, n in the low 32 bits of `shifted`.
Num scale64(const Num &p, const Num &shifted) {
  Code &code = *p.code;
  const Num n = truncate(bitsOf(shifted), code.i(32));
  const Num half = arithmeticShift(n, code.literal(n, 1));
  auto power = [&](const Num &k) { return floatOf(zeroExtend(k + 1023, code.i(64)) << 52, code.f64()); };
  return p * power(half) * power(n - half);
}

Num expOfReduced(const Num &r) {
  return fma(fma(polynomial(r, exp64Coefficients), r, 1.0), r, 1.0);
}

/// x = 2^e (1 + f); tail = log(1 + f) - f.
struct Logarithm {
  Num e, f, tail;
};
Logarithm splitLog(Code &code, const Num &x) {
  const Num tiny = x < 0x1p-1022;
  const Num bits = bitsOf(select(tiny, x * 0x1p52, x));
  const Num exponent = (bits - code.integer(code.i(64), 0x3fe5555555555555)) & -0x1p52;
  const Num field = truncate(arithmeticShift(exponent, code.integer(code.i(64), 52)), code.i(32));
  const Num e = fromSigned(field + select(tiny, code.integer(code.i(32), -52), 0.0), code.f64());
  const Num f = floatOf(bits - exponent, code.f64()) - 1.0;
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f), R = s^2 P(s^2).
  const Num s = fdiv(f, f + 2.0);
  const Num z = s * s;
  const Num halfSquare = f * f * 0.5;
  const Num tail = fma(s, fma(polynomial(z, atanh64Coefficients), z, halfSquare), -halfSquare);
  return {e, f, tail};
}

Num withSpecials(const Num &x, const Num &regular) {
  const Num negative = select(x < 0.0, std::nan(""), x);
  const Num special = select(equal(x, 0.0), -infinity, negative);
  return select((x > 0.0) & (x < infinity), regular, special);
}

/// (f + tail) factor + e unit.
Num combine(const Num &x, double factor, double factorLow, double unit, double unitLow) {
  const Logarithm l = splitLog(*x.code, x);
  const Num t = l.f * factor;
  const Num rest = fma(l.tail, factor, fma(l.f, factorLow, fma(l.f, factor, -t)));
  const Num whole = l.e * unit;
  const Num sum = whole + t;
  const Num error = ((whole - sum) + t) + fma(l.e, unitLow, fma(l.e, unit, -whole));
  return withSpecials(x, sum + (error + rest));
}

} // namespace

Num expF64(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = clampKeepingNan(operands[0], -747.0, 711.0);
  const Num shifted = fma(x, 1.4426950408889634, shift64);
  const Num n = shifted - shift64;
  return scale64(expOfReduced(fma(n, -ln2Low, fma(n, -ln2High, x))), shifted);
}

Num exp2F64(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = clampKeepingNan(operands[0], -1077.0, 1025.0);
  const Num shifted = x + shift64;
  const Num f = x - (shifted - shift64);
  return scale64(expOfReduced(fma(f, ln2High, f * ln2Low)), shifted);
}

Num logF64(Code &, llvm::ArrayRef<Num> operands) {
  return combine(operands[0], 1.0, 0.0, ln2High, ln2Low);
}
Num log2F64(Code &, llvm::ArrayRef<Num> operands) {
  return combine(operands[0], 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0);
}
Num log10F64(Code &, llvm::ArrayRef<Num> operands) {
  return combine(operands[0], 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f79ffp-2,
                 -0x1.9dc1da994fd21p-59);
}

Num rsqrtF64(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num y = fdiv(code.real(code.f64(), 1.0), sqrt(x));
  // One Newton step with x y as a sum of two, so that the error of the root goes.
  const Num product = x * y;
  const Num productLow = fma(x, y, -product);
  const Num residue = fma(-productLow, y, fma(-product, y, 1.0));
  const Num better = fma(y * 0.5, residue, y);
  return select((x > 0.0) & (x < infinity), better, y);
}

} // namespace kiln::numbers
