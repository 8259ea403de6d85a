// Look-up in the table of numbers, what is refused and why, and the table as a page.
#include "compiler/numbers/Numbers.h"

#include "compiler/numbers/NumbersImplementations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

namespace kiln::numbers {

using namespace mlir;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

const NumberRow rows[] = {
#define KILN_NUMBER(op, type, grade, placement, implementation, ...)                                                   \
  {NumberOp::op, NumberType::type, Grade::grade, Placement::placement, implementation, #implementation, __VA_ARGS__},
#include "compiler/numbers/Numbers.def"
#undef KILN_NUMBER
};

const NumberOpInfo operations[] = {
#define KILN_NUMBER_OP(id, name, operands, formula) {NumberOp::id, name, operands, formula},
#include "compiler/numbers/NumbersOps.def"
};

constexpr NumberType allTypes[] = {NumberType::F16, NumberType::BF16, NumberType::F32, NumberType::F64};

bool isFp8(Type t) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(t);
}
bool isNumberOrFp8(Type t) {
  return isFp8(t) || numberTypeOf(t).has_value();
}
bool isSmallInteger(Type t) {
  auto integer = dyn_cast<IntegerType>(t);
  return isa<IndexType>(t) || (integer && integer.getWidth() <= 64);
}

std::string textOf(Type t) {
  std::string s;
  llvm::raw_string_ostream(s) << t;
  return s;
}

/// Why `op` is not in the table; empty if it is.
std::string problemOf(Operation *op) {
  const llvm::StringRef name = op->getName().getStringRef();
  const bool isMath = isa_and_present<math::MathDialect>(op->getDialect());
  if ((!isMath && !isa_and_present<arith::ArithDialect>(op->getDialect())) || op->getNumOperands() == 0)
    return {};
  const Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  const Type to = op->getNumResults() ? getElementTypeOrSelf(op->getResult(0).getType()) : from;
  if (const std::optional<NumberOp> number = numberOpOf(op)) {
    llvm::SmallVector<llvm::StringRef> types;
    for (const NumberType t : allTypes)
      if (findRow(*number, t, Grade::Precise))
        types.push_back(nameOf(t));
    const std::optional<NumberType> type = numberTypeOf(from);
    if (!type || !findRow(*number, *type, Grade::Precise))
      return llvm::formatv("{0} of {1} is not in the table of numbers: it exists for {2}; convert the operands with "
                           "arith.extf or arith.truncf",
                           name, textOf(from), llvm::join(types, ", "));
    if (*number == NumberOp::PowI && !isSmallInteger(getElementTypeOrSelf(op->getOperand(1).getType())))
      return llvm::formatv(
          "{0} with an exponent of type {1} is not in the table of numbers: integers have at most 64 bits", name,
          textOf(op->getOperand(1).getType()));
    return {};
  }
  if (isMath && !isa<math::AbsIOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::CtPopOp>(op))
    return llvm::formatv("{0} is not in the table of numbers (docs/numbers.md lists what is); write it with operations "
                         "that are",
                         name);
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return llvm::formatv("{0} is not in the table of numbers; convert and multiply by the scale instead", name);
  if (auto truncation = dyn_cast<arith::TruncFOp>(op))
    if (truncation.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) !=
        arith::RoundingMode::to_nearest_even)
      return llvm::formatv("{0} {1} is not in the table of numbers: it rounds to nearest even only", name,
                           arith::stringifyRoundingMode(*truncation.getRoundingmode()));
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    if (!isNumberOrFp8(from) || !isNumberOrFp8(to) || (isFp8(from) && isFp8(to)))
      return llvm::formatv("{0} from {1} to {2} is not in the table of numbers: it converts between f8E4M3FN, f8E5M2, "
                           "f16, bf16, f32 and f64, fp8 to wider types and back",
                           name, textOf(from), textOf(to));
    return {};
  }
  if (isa<arith::BitcastOp, arith::SelectOp, arith::ConstantOp>(op))
    return {};
  for (const Type t : {from, to}) {
    if (isa<FloatType>(t) && !numberTypeOf(t))
      return llvm::formatv("{0} of {1} is not in the table of numbers: it exists for f16, bf16, f32, f64{2}", name,
                           textOf(t), isFp8(t) ? "; fp8 is converted only, with arith.extf and arith.truncf" : "");
    if (isa<IntegerType>(t) && !isSmallInteger(t))
      return llvm::formatv("{0} of {1} is not in the table of numbers: integers have at most 64 bits", name, textOf(t));
  }
  return {};
}

} // namespace

llvm::ArrayRef<NumberRow> numberRows() {
  return rows;
}

const NumberOpInfo &infoOf(NumberOp op) {
  return operations[static_cast<unsigned>(op)];
}

llvm::StringRef nameOf(NumberType type) {
  switch (type) {
  case NumberType::F16:
    return "f16";
  case NumberType::BF16:
    return "bf16";
  case NumberType::F32:
    return "f32";
  case NumberType::F64:
    return "f64";
  }
  return "";
}

std::optional<NumberOp> numberOpOf(Operation *op) {
  return llvm::StringSwitch<std::optional<NumberOp>>(op->getName().getStringRef())
#define KILN_NUMBER_OP(id, name, ...) .Case(name, NumberOp::id)
#include "compiler/numbers/NumbersOps.def"
      .Default(std::nullopt);
}

std::optional<NumberType> numberTypeOf(Type elementType) {
  if (elementType.isF32())
    return NumberType::F32;
  if (elementType.isF16())
    return NumberType::F16;
  if (elementType.isBF16())
    return NumberType::BF16;
  if (elementType.isF64())
    return NumberType::F64;
  return std::nullopt;
}

const NumberRow *findRow(NumberOp op, NumberType type, Grade grade) {
  const NumberRow *precise = nullptr;
  for (const NumberRow &row : rows) {
    if (row.op != op || row.type != type)
      continue;
    if (row.grade == grade)
      return &row;
    if (row.grade == Grade::Precise)
      precise = &row;
  }
  return precise;
}

std::string numbersMarkdown() {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto number = [](double v) {
    std::string digits;
    llvm::raw_string_ostream(digits) << llvm::format("%.3g", v);
    return digits;
  };
  out << R"(# Numbers

What each operation on numbers computes, in which types, with which error. `kiln-opt --kiln-lower-numbers=print-table`
prints this page; it is made from `compiler/numbers/Numbers.def`, and a test compares the two. An operation that is not
here is refused, with an error at its line.

## Operations on floats

The **precise** grade is the default. The **approx** grade serves operations that carry `fastmath<afn>`; where an operation
has none, approx is precise.

Error: how far a result may be from the correctly rounded one, in units of the last place (ulp) of the type, as CUDA's
documentation counts. *exact*: the true value has the type and is the result. *rounded*: the value of the type that is
nearest to the true one, halves to even. Both fp32 and fp64 keep subnormal numbers; approximate instructions named .ftz take
and give zeros for them.

| operation | meaning | type | grade | error | how |
|---|---|---|---|---|---|
)";
  for (const NumberRow &row : rows) {
    std::string error, how = row.note.str();
    if (row.placement == Placement::ViaF32) {
      error = row.ulp == 0 ? "exact" : "0.5 ulp + that of f32";
      how = "in f32, then rounded";
    } else if (row.ulp == 0 && row.absolute == 0) {
      error = "exact";
    } else if (row.ulp == 0.5 && row.absolute == 0) {
      error = "rounded";
    } else {
      if (row.ulp != 0)
        error = number(row.ulp) + " ulp";
      if (row.absolute != 0)
        error += (row.ulp != 0 ? " + " : "") + number(row.absolute);
      if (std::isfinite(row.low) || std::isfinite(row.high))
        error += " in [" + number(row.low) + ", " + number(row.high) + "]";
    }
    const NumberOpInfo &info = infoOf(row.op);
    out << "| `" << info.name << "` | " << info.formula << " | " << nameOf(row.type) << " | "
        << (row.grade == Grade::Precise ? "precise" : "approx") << " | " << error << " | " << how << " |\n";
  }
  out << R"(
16-bit arithmetic (`arith`) rounds every operation. 16-bit functions (`math`) compute in f32 and round once. Comparisons
(`arith.cmpf`) exist for all four types.

`arith.mulf` and `arith.addf` that both carry `fastmath<contract>` may become one fma, with one rounding.

## Conversions

| from | to | result |
|---|---|---|
| f16, bf16, f32, f64 | a wider one of them | exact |
| f16, bf16, f32, f64 | a narrower one | rounded |
| f8E4M3FN, f8E5M2 | f16, bf16, f32, f64 | exact |
| f16, bf16, f32, f64 | f8E4M3FN, f8E5M2 | rounded; beyond the largest number, infinities included: the largest number; NaN stays |
| integers up to 64 bits | f16, bf16, f32, f64 | rounded |
| f16, bf16, f32, f64 | integers up to 64 bits | towards zero; beyond the range: the nearest end of it; NaN: 0 |

## Integers

Integer operations have a result for all operands; none is undefined. With w the width:

| operation | operands | result |
|---|---|---|
| `arith.divsi`, `divui`, `ceildivsi`, `ceildivui`, `floordivsi` | n / 0 | -1, that is all bits set |
| `arith.remsi`, `remui` | n % 0 | n |
| `arith.divsi`, `ceildivsi`, `floordivsi` | smallest / -1 | smallest |
| `arith.remsi` | smallest % -1 | 0 |
| `arith.shli`, `shrui` | shift by w or more, as an unsigned number | 0 |
| `arith.shrsi` | shift by w or more | 0 or -1, by the sign |
| `math.absi` | smallest | smallest |
| `math.ctlz`, `math.cttz` | 0 | w |

Addition, subtraction, multiplication wrap. Literal divisors and shift amounts cost no guard.
)";
  return text;
}

} // namespace kiln::numbers

bool kiln::isInNumbersTable(mlir::Operation *op) {
  return numbers::problemOf(op).empty();
}

mlir::LogicalResult kiln::verifyNumbers(mlir::Operation *op) {
  const std::string problem = numbers::problemOf(op);
  if (problem.empty())
    return mlir::success();
  return op->emitError(problem);
}
