// Conversions that LLVM or the hardware lacks or gets wrong: fp8, integers to bf16, floats to integers.
#include "compiler/numbers/NumbersImplementations.h"

#include "compiler/target/Target.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::numbers {

using namespace mlir;

namespace {

struct Fp8Format {
  int mantissaBits, bias;
  double largest;
  int nan;
};
Fp8Format formatOf(Fp8 format) {
  return format == Fp8::E4M3 ? Fp8Format{3, 7, 448.0, 0x7f} : Fp8Format{2, 15, 57344.0, 0x7f};
}
Type typeOf(Code &code, Fp8 format) {
  MLIRContext *context = code.builder.getContext();
  return format == Fp8::E4M3 ? Type(Float8E4M3FNType::get(context)) : Type(Float8E5M2Type::get(context));
}

} // namespace

Num fp8ToHalf(const Num &bits, Fp8 format) {
  Code &code = *bits.code;
  const Type half = code.builder.getF16Type();
  const Num wide = zeroExtend(bits, code.i(16));
  // e5m2 is the upper byte of fp16.
  if (format == Fp8::E5M2)
    return floatOf(wide << 8, half);
  if (code.target().has(Capability::Fp8Mma)) {
    const Type pair = VectorType::get(2, code.i(8)), halves = VectorType::get(2, half);
    const Value packed = LLVM::BitcastOp::create(code.builder, code.loc, pair, wide.value);
    const Value both = NVVM::ConvertF8x2ToF16x2Op::create(code.builder, code.loc, halves, packed, /*relu=*/false,
                                                          typeOf(code, format));
    const Num zero = code.integer(code.i(32), 0);
    return code.wrap(LLVM::ExtractElementOp::create(code.builder, code.loc, both, zero.value));
  }
  // Exponent and significand in place with fp16's bias, then times 2^(15 - 7), exact for subnormals too.
  const Num magnitude = wide & 0x7f;
  const Num value = bitsOf(floatOf(magnitude << 7, half) * 256.0);
  const Num number = select(equal(magnitude, 0x7f), 0x7fff, value);
  return floatOf(number | ((wide & 0x80) << 8), half);
}

Num fp8FromFloat(const Num &x, Fp8 format) {
  Code &code = *x.code;
  if (code.target().has(Capability::Fp8Mma)) {
    const Num zero = code.real(code.f32(), 0.0);
    const Value pair = NVVM::ConvertF32x2ToF8x2Op::create(code.builder, code.loc, code.i(16), zero.value, x.value,
                                                          NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
                                                          /*relu=*/false, typeOf(code, format));
    return truncate(code.wrap(pair), code.i(8));
  }
  const Fp8Format f = formatOf(format);
  const int dropped = 23 - f.mantissaBits;
  const Num a = abs(x);
  const Num clamped = select(a > f.largest, f.largest, a); // infinities too; NaN stays
  const Num bits = bitsOf(clamped);
  // Normal results: nearest even on the bits, the exponent's bias exchanged.
  const Num odd = (bits >> dropped) & 1;
  const Num normal =
      ((bits + odd + double((1 << (dropped - 1)) - 1)) >> dropped) - double((127 - f.bias) << f.mantissaBits);
  // Subnormal ones: a large number whose last place is the format's smallest step does the rounding.
  const int step = 1 - f.bias - f.mantissaBits;
  const double large = static_cast<double>(1ull << (23 + step));
  const Num subnormal = bitsOf(clamped + large) - bitsOf(code.real(code.f32(), large));
  const double smallestNormal = 1.0 / static_cast<double>(1 << (f.bias - 1));
  Num code8 = select(clamped < smallestNormal, subnormal, normal);
  code8 = select(isNan(x), double(f.nan), code8);
  const Num sign = (bitsOf(x) >> 24) & 0x80;
  return truncate(code8 | sign, code.i(8));
}

Num saturatingToInteger(const Num &x, Type type, bool isSigned) {
  Code &code = *x.code;
  const Num wide = x.bits() == 16 ? extendFloat(x, code.f32()) : x;
  if (type.isInteger(1)) // LLVM gets this width wrong
    return isSigned ? wide <= -1.0 : wide >= 1.0;
  return code.intrinsic(isSigned ? "llvm.fptosi.sat" : "llvm.fptoui.sat", type, wide);
}

Num integerToBf16(const Num &x, bool isSigned) {
  Code &code = *x.code;
  const Type bf16 = code.builder.getBF16Type();
  if (x.bits() == 1) // LLVM has 1 for both where the target converts to bf16
    return select(x, isSigned ? -1.0 : 1.0, code.real(bf16, 0.0));
  auto rounded = [&](const Num &v, bool asSigned) {
    const Value f = asSigned ? LLVM::SIToFPOp::create(code.builder, code.loc, code.f32(), v.value).getResult()
                             : LLVM::UIToFPOp::create(code.builder, code.loc, code.f32(), v.value).getResult();
    return truncateFloat(code.wrap(f), bf16);
  };
  if (x.bits() <= 24)
    return rounded(x, isSigned);
  // More than 24 bits would be rounded twice: keep the leading ones and make the last odd if anything was lost.
  const Num magnitude = isSigned ? abs(x) : x;
  const Num zeros = leadingZeros(magnitude);
  const double keep = x.bits() - 24;
  const Num drop = select(zeros < keep, code.literal(x, keep) - zeros, code.literal(x, 0));
  const Num kept = magnitude >> drop;
  const Num lost = notEqual(kept << drop, magnitude);
  const Num odd = (kept | zeroExtend(lost, x.type())) << drop;
  const Num result = bitsOf(rounded(odd, false));
  if (!isSigned)
    return floatOf(result, bf16);
  const Num sign = select(x < 0, code.integer(code.i(16), 0x8000), 0);
  return floatOf(result | sign, bf16);
}

} // namespace kiln::numbers
