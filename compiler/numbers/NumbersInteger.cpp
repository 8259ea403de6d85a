// Total integer operations.  LLVM's division, remainder and shifts are undefined for some operands, and O3 uses that:
// where(d == 0, 7, n / d) becomes n / d.  Here every operand is defined:
//
//   n / 0            all bits set (-1), signed or not, ceil and floor too: what NVIDIA's division gives
//   n % 0            n, so that (n / d) d + n % d = n always holds
//   smallest / -1    smallest (it wraps), remainder 0
//   x << s, s >= w   0 (s as an unsigned number, w the width); logical >> too
//   x >> s, s >= w   arithmetic: the sign in every bit
//
// Literal divisors and amounts need no guard and get none.
#include "compiler/numbers/NumbersImplementations.h"

#include "mlir/IR/Matchers.h"

#include <optional>

namespace kiln::numbers {

using namespace mlir;

namespace {

std::optional<llvm::APInt> literalOf(const Num &x) {
  llvm::APInt v;
  if (matchPattern(x.value, m_ConstantInt(&v)))
    return v;
  return std::nullopt;
}

struct Division {
  Num quotient, remainder; ///< for d == 0: of n / 1
  std::optional<Num> byZero;
};

/// Both results for operands of 32 or 64 bits; LLVM drops what is not used.  `mayOverflow`: they were not extended.
Division divide(const Num &n, const Num &d, bool isSigned, bool mayOverflow) {
  Code &code = *n.code;
  const std::optional<llvm::APInt> divisor = literalOf(d), dividend = literalOf(n);
  if (isSigned && divisor && divisor->isAllOnes())
    return {-n, code.integer(n.type(), 0), std::nullopt};
  Num safe = d;
  std::optional<Num> byZero;
  if (!divisor || divisor->isZero())
    byZero = equal(d, 0);
  std::optional<Num> unsafe = byZero;
  const bool overflows = isSigned && mayOverflow && !divisor && (!dividend || dividend->isMinSignedValue());
  if (overflows) {
    const Num smallest = code.integer(n.type(), llvm::APInt::getSignedMinValue(n.bits()).getSExtValue());
    const Num both = equal(d, -1) & equal(n, smallest);
    unsafe = unsafe ? *unsafe | both : both;
  }
  if (unsafe)
    safe = select(*unsafe, 1, d); // n / 1 is the wrapped result of smallest / -1
  return {isSigned ? sdiv(n, safe) : udiv(n, safe), isSigned ? srem(n, safe) : urem(n, safe), byZero};
}

Num divisionOf(IntegerOp op, const Num &narrowN, const Num &narrowD) {
  Code &code = *narrowN.code;
  const unsigned width = narrowN.bits();
  const bool isSigned =
      op == IntegerOp::DivS || op == IntegerOp::RemS || op == IntegerOp::CeilDivS || op == IntegerOp::FloorDivS;
  // Hardware divides 32 and 64 bits; narrow operands do not overflow there.
  const unsigned wide = width <= 32 ? 32 : 64;
  const Type type = code.i(wide);
  auto extend = [&](const Num &x) {
    if (const std::optional<llvm::APInt> v = literalOf(x))
      return code.integer(type, isSigned ? v->getSExtValue() : static_cast<std::int64_t>(v->getZExtValue()));
    return isSigned ? signExtend(x, type) : zeroExtend(x, type);
  };
  const Num n = extend(narrowN), d = extend(narrowD);
  const Division division = divide(n, d, isSigned, width == wide);
  Num result = division.quotient;
  double byZero = -1;
  switch (op) {
  case IntegerOp::RemS:
  case IntegerOp::RemU: {
    const Num r = division.remainder;
    return truncate(division.byZero ? select(*division.byZero, n, r) : r, narrowN.type());
  }
  case IntegerOp::CeilDivU:
    result = result + zeroExtend(notEqual(division.remainder, 0), type);
    break;
  case IntegerOp::CeilDivS: // one more where the exact quotient is positive and not whole
    result = result + zeroExtend(notEqual(division.remainder, 0) & ((division.remainder ^ d) >= 0), type);
    break;
  case IntegerOp::FloorDivS: // one less where it is negative and not whole
    result = result - zeroExtend(notEqual(division.remainder, 0) & ((division.remainder ^ d) < 0), type);
    break;
  default:
    break;
  }
  if (division.byZero)
    result = select(*division.byZero, byZero, result);
  return truncate(result, narrowN.type());
}

Num shiftOf(IntegerOp op, const Num &x, const Num &amount) {
  Code &code = *x.code;
  const unsigned width = x.bits();
  auto shift = [&](const Num &by) {
    return op == IntegerOp::Shl ? x << by : op == IntegerOp::ShrU ? x >> by : arithmeticShift(x, by);
  };
  const Num last = code.integer(x.type(), width - 1);
  if (const std::optional<llvm::APInt> by = literalOf(amount)) {
    if (by->ult(width))
      return shift(amount);
    return op == IntegerOp::ShrS ? shift(last) : code.integer(x.type(), 0);
  }
  // width - 1 is representable in the width, the width itself is not for i1.
  const Num inside = notEqual(below(last, amount), 1);
  if (op == IntegerOp::ShrS)
    return shift(select(inside, amount, last));
  // LLVM makes one instruction of this, with the low 32 bits as its amount: the others must not matter.
  return select(inside, shift(width > 32 ? amount & 63 : amount), code.integer(x.type(), 0));
}

} // namespace

Num totalInteger(IntegerOp op, const Num &a, const Num &b) {
  switch (op) {
  case IntegerOp::Shl:
  case IntegerOp::ShrS:
  case IntegerOp::ShrU:
    return shiftOf(op, a, b);
  default:
    return divisionOf(op, a, b);
  }
}

} // namespace kiln::numbers
