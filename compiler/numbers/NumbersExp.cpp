// The exponential family in fp32: e^x = 2^n e^r with n = rint(x log2 e), |r| <= ln 2 / 2, e^r by a polynomial.
#include "compiler/numbers/NumbersImplementations.h"

namespace kiln::numbers {

namespace {

constexpr double log2e = 1.4426950408889634;
/// ln 2 = high + low; high is exact in fp32, so n * high + x is exact in one fma.
constexpr double ln2High = 0x1.62e430p-1, ln2Low = -0x1.05c610p-29;

/// n = rint(x log2 e) as float and integer, r = x - n ln 2.  |x| < 2^21.
struct Reduced {
  Num r, n;
};
Reduced reduce(const Num &x, const Num *keepZero = nullptr) {
  // Adding 1.5 * 2^23 leaves the integer in the low bits.
  Num shifted = fma(x, log2e, roundingShift);
  if (keepZero)
    shifted = select(*keepZero, roundingShift, shifted);
  const Num n = bitsOf(shifted) - static_cast<double>(roundingShiftBits);
  const Num whole = shifted - roundingShift;
  const Num r = fma(whole, -ln2Low, fma(whole, -ln2High, x));
  return {r, n};
}

Num expOfReduced(const Num &r) {
  const Num p = polynomial(r, exp32Coefficients);
  return fma(fma(p, r, 1.0), r, 1.0);
}

} // namespace

Num powerOfTwo32(const Num &n) {
  return floatOf((n + 127) << 23, n.code->f32());
}

Num scale32(const Num &p, const Num &n) {
  const Num half = arithmeticShift(n, n.code->literal(n, 1));
  return p * powerOfTwo32(half) * powerOfTwo32(n - half);
}

Num clampKeepingNan(const Num &x, double low, double high) {
  const Num below = select(x > high, high, x);
  return select(below < low, low, below);
}

Num expF32(Code &, llvm::ArrayRef<Num> operands) {
  // Beyond the clamp the result is infinite or rounds to zero.
  const Num x = clampKeepingNan(operands[0], -105.0, 89.5);
  const Reduced reduced = reduce(x);
  return scale32(expOfReduced(reduced.r), reduced.n);
}

Num expm1F32(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = clampKeepingNan(operands[0], -30.0, 88.8); // n is at most 128
  // n = 0 up to 0.41 keeps e^x - 1 away from cancellation when n = 1.
  const Num small = abs(x) < 0.41;
  const Reduced reduced = reduce(x, &small);
  const Num &r = reduced.r;
  const Num p = fma(polynomial(r, expm1_32Coefficients) * r, r, r);
  // 2^n p + 2^n - 1, halved so that n = 128 is representable.  2^(n-1) - 1/2 has too many bits for n > 24.
  const Num half = powerOfTwo32(reduced.n - 1);
  const Num wide = select(reduced.n > 24, fma(p, half, -0.5) + half, fma(p, half, half - 0.5)) * 2.0;
  return copySign(select(small, p, wide), x);
}

Num tanhF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num a = abs(x);
  const Num z = a * a;
  const Num small = fma(polynomial(z, tanh32Coefficients) * z, a, a);
  // 1 - 2 / (e^2a + 1); it rounds to 1 from 9.02 on.
  const Reduced reduced = reduce(clampKeepingNan(a + a, 0.0, 18.2));
  const Num e = expOfReduced(reduced.r) * powerOfTwo32(reduced.n);
  const Num large = fma(reciprocalApprox(e + 1.0), -2.0, code.literal(e, 1.0));
  return copySign(select(a < 0.55, small, large), x);
}

Num erfF32(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num a = abs(x);
  const Num small = fma(polynomial(a * a, erf32Coefficients), a, a);
  // 1 - e^(-a Q(a)); it rounds to 1 from 3.92 on.
  const Num b = clampKeepingNan(a, 0.0, 3.95);
  const Num exponent = -(polynomial(b, erfTail32Coefficients) * b);
  const Reduced reduced = reduce(exponent);
  const Num large = fma(expOfReduced(reduced.r), -powerOfTwo32(reduced.n), 1.0);
  return copySign(select(a < 0.92, small, large), x);
}

Num exp2F32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.ex2.approx.f32", code.f32(), operands[0]);
}
Num exp2ApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", code.f32(), operands[0]);
}
Num expApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return exp2ApproxF32(code, operands[0] * log2e);
}
Num tanhApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  // afn makes it the instruction; without, LLVM looks for a library function.
  auto op = mlir::LLVM::TanhOp::create(code.builder, code.loc, operands[0].value);
  op.setFastmathFlags(mlir::LLVM::FastmathFlags::afn);
  return code.wrap(op);
}

} // namespace kiln::numbers
