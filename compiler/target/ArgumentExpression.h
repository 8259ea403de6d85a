//===- ArgumentExpression.h - Numbers made of a kernel's arguments --------===//
//
// How the compiler's metadata writes what the launcher computes: an integer, {"argument": N}, or a list of an operator
// and two of the like, ["*", {"argument": 3}, 2], nested at most maxExpressionDepth deep.  Values are signed, of 64
// bits; a quotient is rounded down (or up), a divisor is positive.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_ARGUMENTEXPRESSION_H
#define KILN_TARGET_ARGUMENTEXPRESSION_H

#include <cstdint>
#include <string_view>

namespace kiln {

enum class ExpressionOperator : std::uint8_t { Add, Multiply, FloorDivide, CeilDivide, Modulo };
constexpr std::string_view expressionOperators[] = {"+", "*", "floordiv", "ceildiv", "mod"};

constexpr unsigned maxExpressionDepth = 16;

} // namespace kiln

#endif // KILN_TARGET_ARGUMENTEXPRESSION_H
