//===- NumbersCode.h - Arithmetic on SSA values, written as formulas ---------===//
//
// `Num` is a scalar of the LLVM dialect (float or integer) and each operator on it emits one operation:
//
//   Num r = fma(n, -ln2High, x);          // literals take the type of the Num next to them
//   Num y = select(x > 88.7, code.number(x, inf), r);
//
// Operations carry no fast-math flag, so nothing here is contracted, reassociated or flushed: error-free transforms and
// argument reductions stay as written.  Comparisons of floats are ordered (false for NaN), of integers signed.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_NUMBERS_NUMBERSCODE_H
#define KILN_NUMBERS_NUMBERSCODE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>

namespace kiln {
struct Target;
}

namespace kiln::numbers {

class Code;
class Helpers;

struct Num {
  mlir::Value value;
  Code *code = nullptr;

  mlir::Type type() const { return value.getType(); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type()); }
  unsigned bits() const { return type().getIntOrFloatBitWidth(); }
};

/// Writes one operation's code.
using Implementation = Num (*)(Code &code, llvm::ArrayRef<Num> operands);

/// Where operations go.  Code inside a helper function may branch; code in place is straight-line.
class Code {
public:
  Code(mlir::OpBuilder &builder, mlir::Location loc, Helpers &helpers) : builder(builder), loc(loc), helpers(helpers) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const Target &target() const;

  Num wrap(mlir::Value v) { return {v, this}; }
  mlir::Type i(unsigned width) { return builder.getIntegerType(width); }
  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type f64() { return builder.getF64Type(); }

  Num real(mlir::Type type, double v);
  Num integer(mlir::Type type, std::int64_t v);
  /// A literal of the type of `like`.
  Num literal(const Num &like, double v);
  Num intrinsic(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<Num> arguments);
  /// A call of the module's helper function `name`, made by `implementation` the first time.  Helpers are private and
  /// inlined always, or never (`rare` code: a slow path).
  Num call(llvm::StringRef name, Implementation implementation, mlir::Type result, llvm::ArrayRef<Num> arguments,
           bool rare = false);

  /// Blocks of a helper function; each arm yields one value.
  Num branch(const Num &condition, llvm::function_ref<Num()> yes, llvm::function_ref<Num()> no);
  /// while (test(state)) state = body(state).
  llvm::SmallVector<Num> loop(llvm::ArrayRef<Num> start, llvm::function_ref<Num(llvm::ArrayRef<Num>)> test,
                              llvm::function_ref<llvm::SmallVector<Num>(llvm::ArrayRef<Num>)> body);

private:
  Helpers &helpers;
};

/// The helper functions of one module.
class Helpers {
public:
  Helpers(mlir::ModuleOp module, const Target &target) : module(module), target(target) {}
  mlir::LLVM::LLVMFuncOp get(llvm::StringRef name, Implementation implementation, mlir::Type result,
                             llvm::ArrayRef<Num> arguments, bool rare);

  mlir::ModuleOp module;
  const Target &target;

private:
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> made;
};

Num operator+(const Num &a, const Num &b);
Num operator-(const Num &a, const Num &b);
Num operator*(const Num &a, const Num &b);
Num operator-(const Num &a);
Num operator&(const Num &a, const Num &b);
Num operator|(const Num &a, const Num &b);
Num operator^(const Num &a, const Num &b);
Num operator<<(const Num &a, const Num &b);
/// Logical, as unsigned numbers; arithmeticShift keeps the sign.
Num operator>>(const Num &a, const Num &b);
Num arithmeticShift(const Num &a, const Num &b);
Num udiv(const Num &a, const Num &b);
Num urem(const Num &a, const Num &b);
Num sdiv(const Num &a, const Num &b);
Num srem(const Num &a, const Num &b);
Num fdiv(const Num &a, const Num &b);

Num operator<(const Num &a, const Num &b);
Num operator<=(const Num &a, const Num &b);
Num operator>(const Num &a, const Num &b);
Num operator>=(const Num &a, const Num &b);
Num equal(const Num &a, const Num &b);
Num notEqual(const Num &a, const Num &b); ///< floats: true for NaN
Num below(const Num &a, const Num &b);    ///< unsigned <
Num isNan(const Num &x);

#define KILN_LITERAL_RIGHT(op)                                                                                         \
  inline Num operator op(const Num &a, double v) {                                                                     \
    return a op a.code->literal(a, v);                                                                                 \
  }
KILN_LITERAL_RIGHT(+)
KILN_LITERAL_RIGHT(-)
KILN_LITERAL_RIGHT(*)
KILN_LITERAL_RIGHT(&)
KILN_LITERAL_RIGHT(|)
KILN_LITERAL_RIGHT(^)
KILN_LITERAL_RIGHT(<<)
KILN_LITERAL_RIGHT(>>)
KILN_LITERAL_RIGHT(<)
KILN_LITERAL_RIGHT(<=)
KILN_LITERAL_RIGHT(>)
KILN_LITERAL_RIGHT(>=)
#undef KILN_LITERAL_RIGHT
inline Num operator-(double v, const Num &a) {
  return a.code->literal(a, v) - a;
}
inline Num equal(const Num &a, double v) {
  return equal(a, a.code->literal(a, v));
}
inline Num notEqual(const Num &a, double v) {
  return notEqual(a, a.code->literal(a, v));
}
inline Num below(const Num &a, double v) {
  return below(a, a.code->literal(a, v));
}

Num select(const Num &condition, const Num &a, const Num &b);
inline Num select(const Num &condition, double a, const Num &b) {
  return select(condition, b.code->literal(b, a), b);
}
inline Num select(const Num &condition, const Num &a, double b) {
  return select(condition, a, a.code->literal(a, b));
}
Num fma(const Num &a, const Num &b, const Num &c);
inline Num fma(const Num &a, double b, const Num &c) {
  return fma(a, a.code->literal(a, b), c);
}
inline Num fma(const Num &a, const Num &b, double c) {
  return fma(a, b, a.code->literal(a, c));
}
inline Num fma(const Num &a, double b, double c) {
  return fma(a, b, a.code->literal(a, c));
}
Num abs(const Num &x);
Num sqrt(const Num &x);
Num rint(const Num &x);  ///< to nearest, halves to even
Num trunc(const Num &x); ///< towards zero
Num copySign(const Num &magnitude, const Num &sign);
Num leadingZeros(const Num &x); ///< the width for zero

/// The bits of a float as an integer, and back.
Num bitsOf(const Num &x);
Num floatOf(const Num &x, mlir::Type type);
Num signExtend(const Num &x, mlir::Type type);
Num zeroExtend(const Num &x, mlir::Type type);
Num truncate(const Num &x, mlir::Type type);
Num toSigned(const Num &x, mlir::Type type); ///< x must be in range
Num fromSigned(const Num &x, mlir::Type type);
Num extendFloat(const Num &x, mlir::Type type);
Num truncateFloat(const Num &x, mlir::Type type);

/// c[0] + x (c[1] + x (c[2] + ...)).
Num polynomial(const Num &x, llvm::ArrayRef<double> coefficients);

#define KILN_POLYNOMIAL(name, ...) inline constexpr double name##Coefficients[] = {__VA_ARGS__};
#include "compiler/numbers/NumbersCoefficients.def"
#undef KILN_POLYNOMIAL

} // namespace kiln::numbers

#endif // KILN_NUMBERS_NUMBERSCODE_H
