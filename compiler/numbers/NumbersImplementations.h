//===- NumbersImplementations.h - The code of the rows of Numbers.def --------===//
//
// One function a row, one file a family.  Accuracy, domain and cost stand in Numbers.def.  Coefficients come from
// scripts/fit_numbers.py.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_NUMBERS_NUMBERSIMPLEMENTATIONS_H
#define KILN_NUMBERS_NUMBERSIMPLEMENTATIONS_H

#include "compiler/numbers/NumbersCode.h"

namespace kiln::numbers {

#define KILN_NUMBER(op, type, grade, placement, implementation, ...)                                                   \
  Num implementation(Code &code, llvm::ArrayRef<Num> operands);
#include "compiler/numbers/Numbers.def"
#undef KILN_NUMBER

/// 1.5 * 2^23: adding it to |x| < 2^22 rounds x to an integer, which then stands in the low bits.
inline constexpr double roundingShift = 0x1.8p23;
inline constexpr std::uint32_t roundingShiftBits = 0x4b400000;

/// x within [low, high]; NaN stays NaN.
Num clampKeepingNan(const Num &x, double low, double high);
/// 2^n for n in [-126, 127].
Num powerOfTwo32(const Num &n);
/// p 2^n, rounded once, for p in [1/2, 2] and n in [-252, 254].
Num scale32(const Num &p, const Num &n);
/// 1/x within 1 ulp, subnormals flushed.
Num reciprocalApprox(const Num &x);

/// x = 2^e (1 + f), 1 + f in [2/3, 4/3), for 0 < x < inf, subnormals too.
struct Split32 {
  Num e, f;
};
Split32 splitLog32(Code &code, const Num &x);

/// x rounded to fp32 such that a later rounding to fewer bits is as if from x: inexact results are odd.
Num roundToOdd32(const Num &x);

/// Conversions (NumbersConvert.cpp).  fp8 values are their bits, i8.
enum class Fp8 { E4M3, E5M2 };
Num fp8ToHalf(const Num &bits, Fp8 format);
Num fp8FromFloat(const Num &x, Fp8 format); ///< of fp32, saturating to finite
Num saturatingToInteger(const Num &x, mlir::Type type, bool isSigned);
Num integerToBf16(const Num &x, bool isSigned);

/// Integer operations (NumbersInteger.cpp): defined for all operands.
enum class IntegerOp { DivS, DivU, RemS, RemU, CeilDivS, CeilDivU, FloorDivS, Shl, ShrS, ShrU };
Num totalInteger(IntegerOp op, const Num &a, const Num &b);

} // namespace kiln::numbers

#endif // KILN_NUMBERS_NUMBERSIMPLEMENTATIONS_H
