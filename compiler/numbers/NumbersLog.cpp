// The logarithms in fp32: x = 2^e (1 + f) with 1 + f in [2/3, 4/3), log(1 + f) = f + f^2 P(f).
#include "compiler/numbers/NumbersImplementations.h"

#include <cmath>
#include <limits>

namespace kiln::numbers {

namespace {

constexpr double ln2 = 0.69314718055994531;
/// ln 2 = high + low; high has 15 bits, so its product with an exponent is exact.
constexpr double ln2High = 0x1.62e4p-1, ln2Low = ln2 - ln2High;
/// Bits of 2/3 in fp32: subtracting them makes the exponent field that of x / (2/3).
constexpr double twoThirdsBits = 0x3f2aaaab;
constexpr double exponentField = static_cast<double>(0xff800000 - 0x100000000ll);

/// f^2 P(f).
Num tail(const Num &f) {
  return polynomial(f, log32Coefficients) * (f * f);
}

/// `regular` where 0 < x < inf; -inf at zero, NaN below.
Num withSpecials(const Num &x, const Num &regular) {
  Code &code = *x.code;
  const double infinity = std::numeric_limits<double>::infinity();
  const Num negative = select(x < 0.0, std::nan(""), x);
  const Num special = select(equal(x, 0.0), -infinity, negative);
  return select((x > 0.0) & (x < code.literal(x, infinity)), regular, special);
}

/// e ln 2 + f + f^2 P(f) + extra: the large parts with their rounding error.
Num naturalLog(const Num &e, const Num &f, const Num *extra = nullptr) {
  const Num whole = e * ln2High;
  const Num sum = whole + f;
  const Num error = (whole - sum) + f;
  const Num rest = fma(e, ln2Low, tail(f));
  return sum + (error + (extra ? rest + *extra : rest));
}

/// log(x) * high, with `high` and `low` the parts of log_b(e), `unit` and `unitLow` those of log_b(2).
Num scaledLog(Code &code, const Num &x, double factor, double unit) {
  const double high = static_cast<float>(factor), low = factor - high;
  const double unitHigh = static_cast<float>(unit), unitLow = unit - unitHigh;
  const Split32 s = splitLog32(code, x);
  // (f + tail) * factor + e * unit, the large parts exactly.
  const Num t = s.f * high;
  const Num rest = fma(tail(s.f), high, fma(s.f, low, fma(s.f, high, -t)));
  const Num whole = unitLow == 0 ? s.e : s.e * unitHigh;
  const Num sum = whole + t;
  Num error = (whole - sum) + t;
  if (unitLow != 0)
    error = error + fma(s.e, unitLow, fma(s.e, unitHigh, -whole));
  return withSpecials(x, sum + (error + rest));
}

} // namespace

Split32 splitLog32(Code &code, const Num &x) {
  const Num tiny = x < 0x1p-126;
  const Num scaled = select(tiny, x * 0x1p23, x);
  const Num bits = bitsOf(scaled);
  const Num exponent = (bits - twoThirdsBits) & exponentField;
  const Num e = fma(fromSigned(exponent, code.f32()), 0x1p-23, select(tiny, code.real(code.f32(), -23.0), 0.0));
  return {e, floatOf(bits - exponent, code.f32()) - 1.0};
}

Num logF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Split32 s = splitLog32(code, x);
  return withSpecials(x, naturalLog(s.e, s.f));
}

Num log2F32(Code &code, llvm::ArrayRef<Num> operands) {
  return scaledLog(code, operands[0], 1 / ln2, 1.0);
}

Num log10F32(Code &code, llvm::ArrayRef<Num> operands) {
  return scaledLog(code, operands[0], 0.43429448190325183, 0.30102999566398120);
}

Num log1pF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Num u = x + 1.0;
  const Num exponent = (bitsOf(u) - twoThirdsBits) & exponentField;
  // 2^-e; of 2^-127 and 2^-128, which are subnormal, the bits differ.
  const Num scaleBits = code.integer(code.i(32), 0x3f800000) - exponent;
  const Num subnormal = select(equal(scaleBits, 0), 0x400000, code.integer(code.i(32), 0x200000));
  const Num scale = floatOf(select(scaleBits > 0, scaleBits, subnormal), code.f32());
  const Num f = fma(x, scale, scale - 1.0);
  const Num e = fromSigned(exponent, code.f32()) * 0x1p-23;
  // What f lost by rounding, times 1 / (1 + f), about 1 - f.
  const Num lost = fma(x, scale, (scale - 1.0) - f);
  const Num extra = fma(-lost, f, lost);
  const Num regular = naturalLog(e, f, &extra);
  // log1p has its argument's sign, zeros included; u decides about -inf, NaN and inf.
  const Num inside = (u > 0.0) & (u < std::numeric_limits<double>::infinity());
  return select(inside, copySign(regular, x), withSpecials(u, u));
}

namespace {
Num lg2(Code &code, const Num &x) {
  return code.intrinsic("llvm.nvvm.lg2.approx.ftz.f", code.f32(), x);
}
} // namespace

Num log2ApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return lg2(code, operands[0]);
}
Num logApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return lg2(code, operands[0]) * ln2;
}
Num log10ApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return lg2(code, operands[0]) * 0.30102999566398120;
}

} // namespace kiln::numbers
