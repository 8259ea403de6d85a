// Conversions: softfloat rounds once, whatever the operation does on its way.
#include "tests/numbers/FloatValues.h"

namespace kiln::test {

namespace {

using namespace kiln::softfloat;

void add(std::vector<NumbersCase> &cases, const std::string &op, const std::string &from, const std::string &to,
         std::function<Bits(Bits)> reference) {
  const DType source{from}, result{to};
  NumbersCase c{op + "_" + from + "_" + to,
                "conversions",
                "%r = arith." + op + " %a : " + from + " to " + to,
                {source},
                result,
                {}};
  c.check = [result, reference](std::span<const Bits> o, Bits got) { return expectBits(result, reference(o[0]), got); };
  cases.push_back(std::move(c));
}

bool isFp8(const std::string &t) {
  return t.starts_with("f8");
}

} // namespace

void addConversionCases(std::vector<NumbersCase> &cases) {
  const std::string floats[] = {"f8E4M3FN", "f8E5M2", "f16", "bf16", "f32", "f64"};
  for (const std::string &from : floats)
    for (const std::string &to : floats) {
      const DType a{from}, b{to};
      if (a.bits() == b.bits())
        continue;
      add(cases, a.bits() < b.bits() ? "extf" : "truncf", from, to,
          [a, b](Bits x) { return pack(formatOf(b), unpack(formatOf(a), x), Rounding::NearestEven, isFp8(b.name)); });
    }
  for (const std::string &type : {std::string("f16"), std::string("bf16"), std::string("f32"), std::string("f64")})
    for (const unsigned width : {1u, 8u, 16u, 32u, 64u}) {
      const DType f{type};
      const std::string integer = "i" + std::to_string(width);
      for (const bool isSigned : {true, false}) {
        const std::string letter = isSigned ? "s" : "u";
        add(cases, letter + "itofp", integer, type, [=](Bits x) {
          const std::int64_t v = signedOf(x, width);
          const bool negative = isSigned && v < 0;
          const Value value = fromUnsigned(negative ? Bits(0) - Bits(v) : isSigned ? Bits(v) : x, negative);
          return pack(formatOf(f), value, Rounding::NearestEven);
        });
        const std::int64_t low = isSigned ? -1 - static_cast<std::int64_t>((Bits(1) << (width - 1)) - 1) : 0;
        const Bits high = isSigned ? (Bits(1) << (width - 1)) - 1 : width == 64 ? ~Bits(0) : (Bits(1) << width) - 1;
        add(cases, "fpto" + letter + "i", type, integer, [=](Bits x) {
          const Value value = unpack(formatOf(f), x);
          const Bits mask = width == 64 ? ~Bits(0) : (Bits(1) << width) - 1;
          return value.kind == Value::Nan ? 0
                                          : toInteger(roundToInteger(value, Rounding::TowardZero), low, high) & mask;
        });
      }
    }
}

} // namespace kiln::test
