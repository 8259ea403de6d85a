//===- Form.h - One instruction form under test ----------------------------===//
//
// A form is one spelling of an opcode with fixed types and modifiers, e.g. "add.rz.ftz.f32".  Its kernel loads one case
// a thread, runs `body` and stores the outputs; a case's values travel as 64-bit words that hold the type's bits.
// Opcodes.cpp lists the forms in rows that `allForms` expands.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_FORM_H
#define KILN_TESTS_PARITY_FORM_H

#include "tests/parity/SoftFloat.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::parity {

/// Types of operands.  From `Amount` on: 32-bit inputs that differ from u32 only in the values that are tried.
enum class Type : unsigned char {
  Pred, ///< travels as 0 or 1 in 32 bits
  U8,
  S8,
  U16,
  S16,
  B16,
  U32,
  S32,
  B32,
  U64,
  S64,
  B64,
  F16,
  BF16,
  F32,
  F64,
  TF32,
  F16x2,
  BF16x2,
  U16x2,
  S16x2,
  E4M3x2,
  E5M2x2,
  Amount,   ///< shift amounts
  Position, ///< bit positions and lengths
  Selector, ///< prmt selectors
  Lane,     ///< shfl's second operand
  Segment,  ///< shfl's third operand; one value a warp
  Few,      ///< small numbers, so that lanes agree often
  Base,     ///< 0..31
  Offset,   ///< -33..33
  Angle,    ///< f32 within the range that sin.approx documents, and a few values outside
};

struct TypeInfo {
  Type type;
  const char *name;
  unsigned bits; ///< in memory
  bool isSigned;
  unsigned elements;               ///< 2 for packed types
  const softfloat::Format *format; ///< of one element; nullptr for integers
};

const TypeInfo &info(Type type);
/// nullptr if `name` is no type.
const TypeInfo *findType(std::string_view name);

/// The documented distance between an approximate instruction and the true value.
enum class Bound : unsigned char {
  Exact,
  Ulp,
  Relative, ///< value = exponent of 2
  Absolute, ///< value = exponent of 2
  Log2,     ///< 2^-22 absolute for arguments in (0.5, 2), else relative
  SinCos,   ///< 2^-20.5 within 2 pi, 2^-14.7 within 100 pi
};

struct Tolerance {
  Bound bound = Bound::Exact;
  double value = 0;
};

struct Form {
  std::string name;               ///< unique: the spelling, and " text" where one spelling has several bodies
  std::string spelling;           ///< "add.rz.ftz.f32"
  std::vector<std::string> parts; ///< "add", "rz", "ftz", "f32"
  std::string body;               ///< PTX; inputs %a %b %c %f %x4 %x5 .., outputs %d %e %g %h
  std::vector<Type> inputs, outputs;
  Tolerance tolerance;
  unsigned group = 1;   ///< neighbouring threads whose results depend on each other: 1, 32 (a warp) or 128 (a block)
  unsigned sharing = 0; ///< atomics: threads that use one cell; 0: no atomic

  const std::string &opcode() const { return parts.front(); }
  bool has(std::string_view modifier) const;
  /// The last type named in the spelling, and the one before it (the last again if there is only one).
  const TypeInfo &lastType() const;
  const TypeInfo &previousType() const;
  bool approximate() const { return tolerance.bound != Bound::Exact; }
};

/// A row of the opcode table; `expandRow` makes its forms.
struct Row {
  const char *pattern;        ///< "{add,sub}{.rn,.rz}.f32": every choice; a text after a space only names the variant
  const char *signature;      ///< "T T -> T"; T, S: last and previous type of the spelling, X: T doubled,
                              ///< D: S, or u32 where S has 8 or 16 integer bits; else names of Type in lower case
  const char *body = nullptr; ///< default "OP d|e, a, b;"; OP stands for the spelling
  Tolerance tolerance = {};
  unsigned group = 1;
  unsigned sharing = 0;
};

std::vector<std::string> expandBraces(std::string_view pattern);
std::vector<Form> expandRow(const Row &row);

/// Every form of the table, in its order.
const std::vector<Form> &allForms();
/// The opcodes of the table, in its order, once each.
std::vector<std::string> allOpcodes();

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_FORM_H
