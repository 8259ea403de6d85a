// Operations that the hardware has, in every type, and the remainder.
//
// Rounding twice is innocuous for + - * / and sqrt of p-bit operands computed in q bits when q >= 2p + 2 (Figueroa,
// "When is double rounding innocuous?", 1995): fp32 has 24 bits, 2 * 11 + 2 = 24 for fp16 and 2 * 8 + 2 = 18 for bf16.
// Subnormal results of fp16 keep fewer bits, so it holds for them too; bf16 has fp32's exponents, and where its results
// are subnormal fp32's keep 16 bits more.  It does not hold for fma.
#include "compiler/numbers/NumbersImplementations.h"

#include "compiler/target/Target.h"

#include <cmath>
#include <limits>

namespace kiln::numbers {

using namespace mlir;

Num keepAsIs(Code &, llvm::ArrayRef<Num> operands) {
  return operands[0];
}
Num viaF32(Code &, llvm::ArrayRef<Num> operands) {
  return operands[0];
}

namespace {

/// bf16 has few instructions of its own: exact operations go through fp32.
Num inWiderType(Code &code, llvm::ArrayRef<Num> operands, llvm::function_ref<Num(llvm::ArrayRef<Num>)> operation) {
  const Type type = operands[0].type();
  if (!type.isBF16())
    return operation(operands);
  llvm::SmallVector<Num> wide;
  for (const Num &n : operands)
    wide.push_back(extendFloat(n, code.f32()));
  const Num result = operation(wide);
  return result.type().isF32() ? truncateFloat(result, type) : result;
}

template <typename Op> Num exact(Code &code, llvm::ArrayRef<Num> operands) {
  return inWiderType(code, operands, [&](llvm::ArrayRef<Num> o) {
    llvm::SmallVector<Value> values;
    for (const Num &n : o)
      values.push_back(n.value);
    return code.wrap(Op::create(code.builder, code.loc, o[0].type(), ValueRange(values)));
  });
}

} // namespace

Num divHalf(Code &code, llvm::ArrayRef<Num> operands) {
  return truncateFloat(fdiv(extendFloat(operands[0], code.f32()), extendFloat(operands[1], code.f32())),
                       operands[0].type());
}
Num sqrtHalf(Code &code, llvm::ArrayRef<Num> operands) {
  return truncateFloat(sqrt(extendFloat(operands[0], code.f32())), operands[0].type());
}
Num sqrtExact(Code &, llvm::ArrayRef<Num> operands) {
  return sqrt(operands[0]);
}
Num fusedMultiplyAdd(Code &, llvm::ArrayRef<Num> operands) {
  return fma(operands[0], operands[1], operands[2]);
}

Num roundToOdd32(const Num &x) {
  Code &code = *x.code;
  const Num nearest = truncateFloat(x, code.f32());
  const Num back = extendFloat(nearest, x.type());
  const Num bits = bitsOf(nearest);
  const Num odd = select(abs(back) > abs(x), bits - 1, bits + 1);
  const Num inexact = (back < x) | (back > x);
  return floatOf(select(inexact & equal(bits & 1, 0), odd, bits), code.f32());
}

Num fmaBf16(Code &code, llvm::ArrayRef<Num> operands) {
  if (code.target().has(Capability::Bf16Mma)) // those targets have fma.rn.bf16
    return fma(operands[0], operands[1], operands[2]);
  // The product is exact in fp64; the sum with its error (Knuth's two-sum) is rounded to odd, then once to bf16.
  const Num a = extendFloat(operands[0], code.f64()), b = extendFloat(operands[1], code.f64());
  const Num c = extendFloat(operands[2], code.f64());
  const Num p = a * b;
  const Num s = p + c;
  const Num cPart = s - p;
  const Num error = (p - (s - cPart)) + (c - cPart);
  const Num bits = bitsOf(s);
  const Num away = (error > 0.0) ^ (s < 0.0);
  const Num odd = select(away, bits + 1, bits - 1);
  const Num inexact = ((error < 0.0) | (error > 0.0)) & equal(bits & 1, 0);
  const Num sum = floatOf(select(inexact, odd, bits), code.f64());
  return truncateFloat(roundToOdd32(sum), operands[0].type());
}

Num absExact(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  if (x.bits() == 16)
    return floatOf(bitsOf(x) & 0x7fff, x.type());
  return abs(x);
}
Num copySignExact(Code &, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0], y = operands[1];
  if (x.bits() == 16)
    return floatOf((bitsOf(x) & 0x7fff) | (bitsOf(y) & 0x8000), x.type());
  return copySign(x, y);
}
Num floorExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::FFloorOp>(code, operands);
}
Num ceilExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::FCeilOp>(code, operands);
}
Num truncExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::FTruncOp>(code, operands);
}
Num roundEvenExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::RoundEvenOp>(code, operands);
}
Num maximumExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::MaximumOp>(code, operands);
}
Num minimumExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::MinimumOp>(code, operands);
}
Num maxNumExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::MaxNumOp>(code, operands);
}
Num minNumExact(Code &code, llvm::ArrayRef<Num> operands) {
  return exact<LLVM::MinNumOp>(code, operands);
}

Num roundExact(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0];
  const Type type = x.type();
  if (x.bits() == 16)
    return truncateFloat(roundExact(code, extendFloat(x, code.f32())), type);
  // trunc(x) and one more away from zero where the rest, exact, is a half or more.
  const Num whole = trunc(x);
  const Num rest = abs(x - whole);
  const Num more = copySign(code.real(type, 1.0), x);
  return select(rest >= 0.5, whole + more, whole);
}

Num clampExact(Code &code, llvm::ArrayRef<Num> operands) {
  return inWiderType(code, operands, [&](llvm::ArrayRef<Num> o) {
    const Num above = select(o[0] < o[1], o[1], o[0]);
    return select(above > o[2], o[2], above);
  });
}

namespace {
Num wide(Code &code, const Num &x) {
  return x.bits() == 16 ? extendFloat(x, code.f32()) : x;
}
} // namespace

Num isNanExact(Code &code, llvm::ArrayRef<Num> operands) {
  return isNan(wide(code, operands[0]));
}
Num isInfExact(Code &code, llvm::ArrayRef<Num> operands) {
  return equal(abs(wide(code, operands[0])), std::numeric_limits<double>::infinity());
}
Num isFiniteExact(Code &code, llvm::ArrayRef<Num> operands) {
  return abs(wide(code, operands[0])) < std::numeric_limits<double>::infinity();
}

namespace {

/// fmod of finite |x| >= |y| > 0 by long division on the significands, as many bits a step as the words hold.
Num remainderLoop(Code &code, llvm::ArrayRef<Num> operands) {
  const Num x = operands[0], y = operands[1];
  const bool isDouble = x.bits() == 64;
  const Type word = code.i(isDouble ? 64 : 32);
  const int mantissaBits = isDouble ? 52 : 23;
  const int spare = isDouble ? 11 : 8; // word bits above a significand
  const Num zero = code.integer(word, 0), one = code.integer(word, 1);
  const Num hidden = code.integer(word, std::int64_t(1) << mantissaBits);
  const Num fieldMask = hidden - one;
  // |v| = significand * 2^exponent, in units of the smallest subnormal.
  auto significand = [&](const Num &bits) {
    return (bits & fieldMask) | select(equal(bits >> mantissaBits, 0), zero, hidden);
  };
  auto exponent = [&](const Num &bits) {
    const Num field = bits >> mantissaBits;
    return select(equal(field, 0), zero, field - 1);
  };
  const Num xBits = bitsOf(abs(x)), yBits = bitsOf(abs(y));
  const Num divisor = significand(yBits);
  const Num start[] = {urem(significand(xBits), divisor), exponent(xBits) - exponent(yBits)};
  const llvm::SmallVector<Num> end = code.loop(
      start, [&](llvm::ArrayRef<Num> s) { return (s[1] > 0) & notEqual(s[0], 0); },
      [&](llvm::ArrayRef<Num> s) {
        const Num step = select(s[1] > spare, double(spare), s[1]);
        return llvm::SmallVector<Num>{urem(s[0] << step, divisor), s[1] - step};
      });
  // remainder * 2^(exponent of y), exact: as an integer conversion and two multiplications by powers of two.
  const Num e = exponent(yBits);
  const Num first = select(e > mantissaBits, double(mantissaBits), e);
  const Num second = e - first;
  const int bias = isDouble ? 1023 : 127;
  auto power = [&](const Num &n) { return floatOf((n + bias) << mantissaBits, x.type()); };
  // The unit is 2^(1 - bias - mantissaBits).
  const Num scaled =
      fromSigned(end[0], x.type()) * power(second + (1 - bias)) * (power(first) * std::ldexp(1.0, -mantissaBits));
  return copySign(scaled, x);
}

Num remainder(Code &code, const Num &x, const Num &y, llvm::StringRef loopName, double limit) {
  const Num a = abs(x), b = abs(y);
  const double infinity = std::numeric_limits<double>::infinity();
  const Num quotient = trunc(fdiv(a, b));
  // x and y with NaN, infinite x, zero y: NaN, which 0 / 0, inf - inf and others give on the fast path.
  const Num regular = (a < infinity) & (b > 0.0) & (b < infinity);
  const Num slow = regular & notEqual(quotient < limit, 1);
  const Num result = code.branch(
      slow, [&] { return code.call(loopName, remainderLoop, x.type(), {x, y}, /*rare=*/true); },
      [&] {
        // The rounded quotient is at most one too large; the remainder of it is exact.
        const Num r = fma(-quotient, b, a);
        const Num fixed = select(r < 0.0, r + b, r);
        const Num small = select(a < b, a, fixed);
        return copySign(select(isNan(x) | isNan(y) | equal(a, infinity) | equal(b, 0.0), std::nan(""), small), x);
      });
  return result;
}

} // namespace

Num remF32(Code &code, llvm::ArrayRef<Num> operands) {
  return remainder(code, operands[0], operands[1], "__kiln_rem_loop_f32", 0x1p23);
}
Num remF64(Code &code, llvm::ArrayRef<Num> operands) {
  return remainder(code, operands[0], operands[1], "__kiln_rem_loop_f64", 0x1p52);
}

} // namespace kiln::numbers
