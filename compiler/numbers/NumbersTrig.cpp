// sin and cos in fp32: x = q pi/2 + r, |r| <= pi/4, by Cody and Waite's method for moderate arguments and by Payne and
// Hanek's (exact bits of 2/pi) for large ones; polynomials for r.
#include "compiler/numbers/NumbersImplementations.h"

#include <cmath>

namespace kiln::numbers {

namespace {

/// 2/pi after the binary point, 32 bits a word.
constexpr std::uint32_t twoOverPi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                       0xdb629599, 0x3c439041, 0xfe5163ab};
/// pi/2 in three fp32 parts, 72 bits.
constexpr double piHalf1 = 0x1.921fb6p+0, piHalf2 = -0x1.777a5cp-25, piHalf3 = -0x1.ee59dap-50;

/// r in the low word, q (modulo 4) in the high one.
Num pack(const Num &r, const Num &q) {
  const mlir::Type wide = r.code->i(64);
  return zeroExtend(bitsOf(r), wide) | (zeroExtend(q, wide) << 32);
}

/// Any |x| >= 2^9; infinities and NaN give NaN.
Num reduceLarge(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const mlir::Type word = code.i(32), wide = code.i(64);
  const Num bits = bitsOf(x);
  const Num biased = (bits >> 23) & 0xff;
  const Num mantissa = zeroExtend((bits & 0x7fffff) | 0x800000, wide);
  // |x| = mantissa 2^(biased - 150).  Bits of 2/pi that weigh 4 or more with it do not matter: 96 bits after those,
  // of one zero word and twoOverPi, from bit biased - 150 - 2 + 32 on.
  const Num from = biased - 120;
  const Num index = from >> 5, shift = zeroExtend(from & 31, wide);
  auto table = [&](unsigned k) { return code.integer(word, k == 0 ? 0 : std::int64_t(twoOverPi[k - 1])); };
  llvm::SmallVector<Num> a, b, c;
  for (unsigned k = 0; k < 7; ++k)
    a.push_back(k < 4 ? select(notEqual(index & 4, 0), table(k + 4), table(k)) : table(k));
  for (unsigned k = 0; k < 5; ++k)
    b.push_back(select(notEqual(index & 2, 0), a[k + 2], a[k]));
  for (unsigned k = 0; k < 4; ++k)
    c.push_back(zeroExtend(select(notEqual(index & 1, 0), b[k + 1], b[k]), wide));
  const Num low = code.integer(wide, 0xffffffff);
  auto window = [&](unsigned k) { return ((((c[k] << 32) | c[k + 1]) << shift) >> 32) & low; };
  // The low 96 bits of mantissa * window are the fraction of x / (2 pi); the top 64 of them are enough: no fp32 number
  // is nearer to a multiple of pi/2 than 2^-32 or so.
  const Num p2 = mantissa * window(2);
  const Num p1 = mantissa * window(1) + (p2 >> 32);
  const Num p0 = mantissa * window(0) + (p1 >> 32);
  const Num turn = (p0 << 32) | (p1 & low);
  const Num fraction = turn << 2;
  const Num q = truncate(turn >> 62, word) + zeroExtend(fraction < 0, word);
  const Num r = truncateFloat(fromSigned(fraction, code.f64()) * 0x1.921fb54442d18p-64, code.f32());
  const Num negative = bits < 0;
  const Num regular = select(negative, -r, r);
  return pack(select(equal(biased, 255), std::nan(""), regular), select(negative, -q, q));
}

Num sineAt(Code &code, const Num &x, double quarterTurns) {
  const Num fast = abs(x) < 71476.0;
  const Num packed = code.branch(
      fast | isNan(x),
      [&] {
        const Num shifted = fma(x, 0x1.45f306p-1, roundingShift);
        const Num n = shifted - roundingShift;
        return pack(fma(n, -piHalf3, fma(n, -piHalf2, fma(n, -piHalf1, x))), bitsOf(shifted));
      },
      [&] { return code.call("__kiln_trig_reduce_f32", reduceLarge, code.i(64), x, /*rare=*/true); });
  const Num r = floatOf(truncate(packed, code.i(32)), code.f32());
  Num q = truncate(packed >> 32, code.i(32));
  if (quarterTurns != 0)
    q = q + quarterTurns;
  const Num z = r * r;
  const Num sine = fma(polynomial(z, sin32Coefficients) * z, r, r);
  const Num cosine = fma(polynomial(z, cos32Coefficients), z * z, fma(z, -0.5, code.literal(z, 1.0)));
  const Num value = select(notEqual(q & 1, 0), cosine, sine);
  // Bit 1 of q is the sign.
  return floatOf(bitsOf(value) ^ ((q & 2) << 30), code.f32());
}

} // namespace

Num sinF32(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  return select(equal(x, 0.0), x, sineAt(code, x, 0));
}
Num cosF32(Code &code, llvm::ArrayRef<Num> operands) {
  return sineAt(code, operands[0], 1);
}
Num sinApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.sin.approx.ftz.f", code.f32(), operands[0]);
}
Num cosApproxF32(Code &code, llvm::ArrayRef<Num> operands) {
  return code.intrinsic("llvm.nvvm.cos.approx.ftz.f", code.f32(), operands[0]);
}

} // namespace kiln::numbers
