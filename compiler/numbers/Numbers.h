//===- Numbers.h - The table of numbers ---------------------------------------===//
//
// Which operations on floats and integers exist in which types, by which code, with which error: Numbers.def, a row an
// (operation, type, grade).  The pass kiln-lower-numbers, verify-stage, the documentation and the tests read it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_NUMBERS_NUMBERS_H
#define KILN_NUMBERS_NUMBERS_H

#include "compiler/numbers/NumbersCode.h"

#include <optional>
#include <string>

namespace kiln::numbers {

enum class NumberOp {
#define KILN_NUMBER_OP(id, ...) id,
#include "compiler/numbers/NumbersOps.def"
};
enum class NumberType { F16, BF16, F32, F64 };
enum class Grade { Precise, Approx };
enum class Placement { Keep, InPlace, Helper, ViaF32 };

struct NumberRow {
  NumberOp op;
  NumberType type;
  Grade grade;
  Placement placement;
  Implementation implementation;
  llvm::StringRef helper; ///< name of the implementation
  /// |result - correctly rounded value| <= ulp * (unit in the last place of the true value) + absolute, for operands in
  /// [low, high].  0.5: correctly rounded.
  double ulp, absolute, low, high;
  llvm::StringRef note;
};

struct NumberOpInfo {
  NumberOp op;
  llvm::StringRef name; ///< "math.exp"
  unsigned operands;
  llvm::StringRef formula;
};

llvm::ArrayRef<NumberRow> numberRows();
const NumberOpInfo &infoOf(NumberOp op);
llvm::StringRef nameOf(NumberType type);

std::optional<NumberOp> numberOpOf(mlir::Operation *op);
std::optional<NumberType> numberTypeOf(mlir::Type elementType);

/// The row that serves; Approx falls back to Precise.  nullptr: not in the table.
const NumberRow *findRow(NumberOp op, NumberType type, Grade grade);

/// The table as Markdown, docs/numbers.md.
std::string numbersMarkdown();

} // namespace kiln::numbers

namespace kiln {

/// Whether kiln-lower-numbers can compile `op`, an operation of arith or math on scalars, vectors or tiles.  Others are
/// none of its business: true.
bool isInNumbersTable(mlir::Operation *op);
/// As isInNumbersTable, with an error at the operation that names the type and what exists instead.
mlir::LogicalResult verifyNumbers(mlir::Operation *op);

} // namespace kiln

#endif // KILN_NUMBERS_NUMBERS_H
