// Integer operations: the results of the table in docs/numbers.md for every operand, computed with 128-bit integers.
#include "tests/numbers/FloatValues.h"

namespace kiln::test {

namespace {

using Int = __int128;
using Reference = Int (*)(Int a, Int b, unsigned width);

Int floorOf(Int a, Int b) {
  return a / b - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}
Int ceilOf(Int a, Int b) {
  return a / b + ((a % b != 0) && ((a % b < 0) == (b < 0)));
}
bool past(Int s, unsigned width) {
  return s < 0 || s >= Int(width);
}

/// Operands are signed for signed operations, else unsigned; results are cut to the width.
struct Operation {
  const char *name;
  bool isSigned;
  Reference reference;
};
const Operation operations[] = {
    {"divsi", true, [](Int a, Int b, unsigned) { return b == 0 ? Int(-1) : a / b; }},
    {"divui", false, [](Int a, Int b, unsigned) { return b == 0 ? Int(-1) : a / b; }},
    {"remsi", true, [](Int a, Int b, unsigned) { return b == 0 ? a : a % b; }},
    {"remui", false, [](Int a, Int b, unsigned) { return b == 0 ? a : a % b; }},
    {"ceildivsi", true, [](Int a, Int b, unsigned) { return b == 0 ? Int(-1) : ceilOf(a, b); }},
    {"ceildivui", false, [](Int a, Int b, unsigned) { return b == 0 ? Int(-1) : ceilOf(a, b); }},
    {"floordivsi", true, [](Int a, Int b, unsigned) { return b == 0 ? Int(-1) : floorOf(a, b); }},
    {"shli", false, [](Int a, Int s, unsigned w) { return past(s, w) ? Int(0) : a << int(s); }},
    {"shrui", false, [](Int a, Int s, unsigned w) { return past(s, w) ? Int(0) : a >> int(s); }},
    {"addi", true, [](Int a, Int b, unsigned) { return a + b; }},
    {"muli", true, [](Int a, Int b, unsigned) { return a * b; }},
};

Bits cut(Int v, unsigned width) {
  const Bits b = static_cast<Bits>(v);
  return width == 64 ? b : b & ((Bits(1) << width) - 1);
}

Int operand(Bits b, unsigned width, bool isSigned) {
  return isSigned ? Int(signedOf(b, width)) : Int(b);
}

NumbersCase binary(const std::string &name, const DType &type, const std::string &body,
                   std::function<Bits(Bits, Bits)> reference) {
  NumbersCase c{name + "_" + type.name, "integers", body, {type, type}, type, {}};
  c.check = [type, reference](std::span<const Bits> o, Bits result) {
    return expectBits(type, reference(o[0], o[1]), result);
  };
  return c;
}

NumbersCase unary(const std::string &name, const DType &type, const std::string &body,
                  std::function<Bits(Bits)> reference) {
  const bool isLiteral = name.find("_by_") != std::string::npos;
  NumbersCase c{name + "_" + type.name, isLiteral ? "literals" : "integers", body, {type}, type, {}};
  c.check = [type, reference](std::span<const Bits> o, Bits result) {
    return expectBits(type, reference(o[0]), result);
  };
  return c;
}

void addWidth(std::vector<NumbersCase> &cases, unsigned width) {
  const DType type{"i" + std::to_string(width)};
  const std::string t = " : " + type.name;
  for (const Operation &op : operations)
    cases.push_back(
        binary(op.name, type, std::string("%r = arith.") + op.name + " %a, %b" + t, [&op, width](Bits a, Bits b) {
          return cut(op.reference(operand(a, width, op.isSigned), operand(b, width, op.isSigned), width), width);
        }));
  auto arithmetic = [width](Bits a, Bits s) {
    const Int v = signedOf(a, width);
    return cut(s >= width ? (v < 0 ? Int(-1) : Int(0)) : v >> int(s), width);
  };
  cases.push_back(binary("shrsi", type, "%r = arith.shrsi %a, %b" + t, arithmetic));
  // LLVM O3 makes n / d of this where the division is undefined for zero.
  const std::string seven = width == 1 ? "true" : "7" + t, zero = width == 1 ? "false" : "0" + t;
  const Bits sevenBits = cut(width == 1 ? 1 : 7, width);
  cases.push_back(binary("where_zero_divisor_then_seven", type,
                         "%zero = arith.constant " + zero + "\n    %seven = arith.constant " + seven +
                             "\n    %no = arith.cmpi eq, %b, %zero" + t + "\n    %q = arith.divsi %a, %b" + t +
                             "\n    %r = arith.select %no, %seven, %q" + t,
                         [width, sevenBits](Bits a, Bits b) {
                           return b == 0 ? sevenBits : cut(Int(signedOf(a, width)) / signedOf(b, width), width);
                         }));
  // The reverse: what stands next to an undefined operation must survive it.
  cases.push_back(binary("where_remainder_of_zero", type,
                         "%zero = arith.constant " + zero + "\n    %q = arith.remui %a, %b" + t +
                             "\n    %no = arith.cmpi eq, %b, %zero" + t + "\n    %r = arith.select %no, %b, %q" + t,
                         [](Bits a, Bits b) { return b == 0 ? 0 : a % b; }));
  // Literal operands.
  std::vector<std::int64_t> literals = {0, 1, -1, 3, 7, 8, -5, 31, 32, 63, 64, 100, 127, 1000, 65536};
  for (const std::int64_t v : literals) {
    if (width < 64 && (v >= std::int64_t(1) << (width - 1) || v < -(std::int64_t(1) << (width - 1))))
      continue;
    if (width == 1 && v != 0)
      continue;
    const std::string text = width == 1 ? "false" : std::to_string(v) + t;
    const std::string name = v < 0 ? "m" + std::to_string(-v) : std::to_string(v);
    for (const Operation &op : operations) {
      const Bits b = cut(v, width);
      cases.push_back(unary(
          std::string(op.name) + "_by_" + name, type,
          "%b = arith.constant " + text + "\n    %r = arith." + op.name + " %a, %b" + t, [&op, b, width](Bits a) {
            return cut(op.reference(operand(a, width, op.isSigned), operand(b, width, op.isSigned), width), width);
          }));
    }
    cases.push_back(unary("shrsi_by_" + name, type, "%b = arith.constant " + text + "\n    %r = arith.shrsi %a, %b" + t,
                          [arithmetic, b = cut(v, width)](Bits a) { return arithmetic(a, b); }));
  }
  cases.push_back(unary("absi", type, "%r = math.absi %a" + t, [width](Bits a) {
    const Int v = signedOf(a, width);
    return cut(v < 0 ? -v : v, width);
  }));
  cases.push_back(unary("ctlz", type, "%r = math.ctlz %a" + t,
                        [width](Bits a) { return cut(Int(std::countl_zero(a)) - (64 - Int(width)), width); }));
  cases.push_back(unary("cttz", type, "%r = math.cttz %a" + t,
                        [width](Bits a) { return cut(a == 0 ? Int(width) : Int(std::countr_zero(a)), width); }));
  cases.push_back(
      unary("ctpop", type, "%r = math.ctpop %a" + t, [width](Bits a) { return cut(std::popcount(a), width); }));
}

} // namespace

void addIntegerCases(std::vector<NumbersCase> &cases) {
  for (const unsigned width : {1u, 8u, 16u, 24u, 32u, 64u})
    addWidth(cases, width);
}

} // namespace kiln::test
