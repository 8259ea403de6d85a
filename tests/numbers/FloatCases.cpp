// The rows of the table of numbers.  Exact and rounded results are softfloat's, to the bit; the others lie within the
// row's bound of the host's libm in a wider format (double for up to 32 bits, long double for 64).
#include "tests/numbers/FloatValues.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace kiln::test {

namespace {

using namespace kiln::softfloat;

enum class Op {
#define KILN_NUMBER_OP(id, ...) id,
#include "compiler/numbers/NumbersOps.def"
};
struct OpText {
  const char *name;
  unsigned operands;
};
const OpText opTexts[] = {
#define KILN_NUMBER_OP(id, name, operands, formula) {name, operands},
#include "compiler/numbers/NumbersOps.def"
};

constexpr double inf = std::numeric_limits<double>::infinity();

struct Row {
  Op op;
  std::string type, grade, placement;
  double ulp, absolute, low, high;
  const char *note;
};
std::vector<Row> tableRows() {
  return {
#define KILN_NUMBER(op, type, grade, placement, implementation, ...) {Op::op, #type, #grade, #placement, __VA_ARGS__},
#include "compiler/numbers/Numbers.def"
#undef KILN_NUMBER
  };
}

template <typename T> T function(Op op, T x, T y) {
  switch (op) {
  case Op::Exp:
    return std::exp(x);
  case Op::Exp2:
    return std::exp2(x);
  case Op::ExpM1:
    return std::expm1(x);
  case Op::Log:
    return std::log(x);
  case Op::Log2:
    return std::log2(x);
  case Op::Log10:
    return std::log10(x);
  case Op::Log1p:
    return std::log1p(x);
  case Op::Tanh:
    return std::tanh(x);
  case Op::Erf:
    return std::erf(x);
  case Op::Sin:
    return std::sin(x);
  case Op::Cos:
    return std::cos(x);
  case Op::Pow:
  case Op::PowI:
    return std::pow(x, y);
  case Op::Cbrt:
    return std::cbrt(x);
  case Op::Rsqrt:
    return T(1) / std::sqrt(x);
  case Op::Sqrt:
    return std::sqrt(x);
  case Op::Div:
    return x / y;
  default:
    return std::numeric_limits<T>::signaling_NaN(); // has an exact reference
  }
}

/// The host's IEEE arithmetic, for its own types.
template <typename T, typename U> std::optional<Bits> hostResult(Op op, std::span<const Bits> o) {
  auto value = [&](unsigned k) { return std::bit_cast<T>(static_cast<U>(o[k])); };
  auto bits = [](T v) { return Bits(std::bit_cast<U>(v)); };
  switch (op) {
  case Op::Add:
    return bits(value(0) + value(1));
  case Op::Sub:
    return bits(value(0) - value(1));
  case Op::Mul:
    return bits(value(0) * value(1));
  case Op::Div:
    return bits(value(0) / value(1));
  case Op::Sqrt:
    return bits(std::sqrt(value(0)));
  case Op::Fma:
    return bits(std::fma(value(0), value(1), value(2)));
  case Op::Rem:
    return bits(std::fmod(value(0), value(1)));
  case Op::Floor:
    return bits(std::floor(value(0)));
  case Op::Ceil:
    return bits(std::ceil(value(0)));
  case Op::Trunc:
    return bits(std::trunc(value(0)));
  case Op::Round:
    return bits(std::round(value(0)));
  case Op::RoundEven:
    return bits(std::nearbyint(value(0)));
  default:
    return std::nullopt;
  }
}

/// The result where it is exact or rounded once; nothing for functions.
std::optional<Bits> exactResult(Op op, const Format &f, std::span<const Bits> o) {
  auto value = [&](unsigned k) { return unpack(f, o[k]); };
  auto nearest = [&](const Value &v) { return pack(f, v, Rounding::NearestEven); };
  const Bits magnitude = ~f.signBit() & (f.bits == 64 ? ~Bits(0) : (Bits(1) << f.bits) - 1);
  auto isNanAt = [&](unsigned k) { return isNan(f, o[k]); };
  auto ordered = [&](bool larger, bool keepNan) -> Bits {
    if (isNanAt(0) || isNanAt(1))
      return keepNan || (isNanAt(0) && isNanAt(1)) ? f.canonicalNan : isNanAt(0) ? o[1] : o[0];
    const int c = compare(value(0), value(1));
    if (c == 0) // -0 < +0
      return ((o[0] & f.signBit()) != 0) == larger ? o[1] : o[0];
    return (c > 0) == larger ? o[0] : o[1];
  };
  if (const std::optional<Bits> host = f.bits == 32   ? hostResult<float, std::uint32_t>(op, o)
                                       : f.bits == 64 ? hostResult<double, std::uint64_t>(op, o)
                                                      : std::nullopt)
    return host;
  switch (op) {
  case Op::Add:
    return nearest(add(value(0), value(1), Rounding::NearestEven));
  case Op::Sub: {
    Value b = value(1);
    b.negative = !b.negative;
    return nearest(add(value(0), b, Rounding::NearestEven));
  }
  case Op::Mul:
    return nearest(multiply(value(0), value(1)));
  case Op::Div:
    return nearest(divide(value(0), value(1)));
  case Op::Sqrt:
    return nearest(squareRoot(value(0)));
  case Op::Fma:
    return nearest(fma(value(0), value(1), value(2), Rounding::NearestEven));
  case Op::Rem: {
    const DType type{f.bits == 64 ? "f64" : f.bits == 32 ? "f32" : f.precision == 11 ? "f16" : "bf16"};
    return nearest(unpack(real, std::bit_cast<Bits>(std::fmod(valueOf(type, o[0]), valueOf(type, o[1])))));
  }
  case Op::Neg:
    return o[0] ^ f.signBit();
  case Op::Abs:
    return o[0] & magnitude;
  case Op::CopySign:
    return (o[0] & magnitude) | (o[1] & f.signBit());
  case Op::Floor:
    return nearest(roundToInteger(value(0), Rounding::Down));
  case Op::Ceil:
    return nearest(roundToInteger(value(0), Rounding::Up));
  case Op::Trunc:
    return nearest(roundToInteger(value(0), Rounding::TowardZero));
  case Op::Round:
    return nearest(roundToInteger(value(0), Rounding::NearestAway));
  case Op::RoundEven:
    return nearest(roundToInteger(value(0), Rounding::NearestEven));
  case Op::Maximum:
    return ordered(true, true);
  case Op::Minimum:
    return ordered(false, true);
  case Op::MaxNum:
    return ordered(true, false);
  case Op::MinNum:
    return ordered(false, false);
  case Op::Clamp: {
    if (isNanAt(0))
      return f.canonicalNan;
    Bits b = o[0];
    if (!isNanAt(1) && compare(unpack(f, b), value(1)) < 0)
      b = o[1];
    if (!isNanAt(2) && compare(unpack(f, b), value(2)) > 0)
      b = o[2];
    return b;
  }
  case Op::IsNan:
    return isNanAt(0);
  case Op::IsInf:
    return (o[0] & magnitude) == f.infinity();
  case Op::IsFinite:
    return (o[0] & magnitude) < f.infinity();
  default:
    return std::nullopt;
  }
}

/// The error of a result; `T` is wider than the type.
template <typename T>
Verdict nearTo(T truth, double result, const Format &f, double ulp, double absolute, double narrowUlp) {
  auto verdict = [&](bool right, double ulps) {
    if (right)
      return Verdict{true, ulps, {}};
    char text[60];
    std::snprintf(text, sizeof text, "%.20Lg", static_cast<long double>(truth));
    return Verdict{false, ulps, text};
  };
  if (std::isnan(truth) || std::isnan(result))
    return verdict(std::isnan(truth) == std::isnan(result), 0);
  const T largest = std::ldexp(T(2), f.bias()); // infinity stands for this one
  auto finite = [&](T v) { return std::copysign(std::min(std::fabs(v), largest), v); };
  const T t = finite(truth), r = finite(static_cast<T>(result));
  if (t == 0 && r == 0)
    return verdict(std::signbit(t) == std::signbit(r) || absolute > 0, 0);
  const int exponent = t == 0 ? -100000 : std::ilogb(t);
  auto place = [&](const Format &format) {
    return std::ldexp(T(1), std::max(exponent - int(format.precision) + 1, format.minExponent()));
  };
  const T error = std::fabs(r - t);
  // From the rounded truth `ulp`, so from the truth half of one more.
  const T places = ulp == 0 ? T(0) : T(ulp) + T(0.5);
  const T allowed = places * place(narrowUlp > 0 ? single : f) + T(absolute) + T(narrowUlp) * place(f);
  const bool signRight = t == 0 || r == 0 || std::signbit(t) == std::signbit(r) || error <= T(absolute);
  // Truth is rounded too: a thousandth of a last place.
  return verdict(error <= allowed * T(1.000001) && signRight, static_cast<double>(error / place(f)));
}

std::string bodyOf(const Row &row, const std::string &type) {
  const OpText &op = opTexts[static_cast<unsigned>(row.op)];
  const std::string fast = row.grade == "Approx" ? " fastmath<afn>" : "";
  std::string operands = op.operands == 1 ? "%a" : op.operands == 2 ? "%a, %b" : "%a, %b, %c";
  if (row.op == Op::Clamp)
    operands = "%a to [%b, %c]";
  return std::string("%r = ") + op.name + " " + operands + fast + " : " + type + (row.op == Op::PowI ? ", i32" : "");
}

} // namespace

void addFloatCases(std::vector<NumbersCase> &cases) {
  const std::vector<Row> rows = tableRows();
  for (const Row &row : rows) {
    std::string lower = row.type;
    for (char &c : lower)
      c = static_cast<char>(std::tolower(c));
    const DType type{lower};
    const std::string opName = opTexts[static_cast<unsigned>(row.op)].name;
    NumbersCase c;
    c.name = opName.substr(opName.find('.') + 1) + "_" + lower + (row.grade == "Approx" ? "_approx" : "");
    c.group = lower;
    c.body = bodyOf(row, lower);
    for (unsigned k = 0; k < opTexts[static_cast<unsigned>(row.op)].operands; ++k)
      c.inputs.push_back(row.op == Op::PowI && k == 1 ? DType{"i32"} : type);
    const bool isTest = row.op == Op::IsNan || row.op == Op::IsInf || row.op == Op::IsFinite;
    c.output = isTest ? DType{"i1"} : type;
    const Format &format = formatOf(type);
    const bool via = row.placement == "ViaF32";
    const Row &bound =
        via ? *std::find_if(rows.begin(), rows.end(),
                            [&](const Row &r) { return r.op == row.op && r.type == "F32" && r.grade == row.grade; })
            : row;
    const bool exact = row.grade == "Precise" && row.ulp <= 0.5 && (!via || row.ulp == 0);
    c.check = [=, low = bound.low, high = bound.high, ulp = bound.ulp, absolute = bound.absolute, op = row.op,
               approx = row.grade == "Approx", output = c.output](std::span<const Bits> o, Bits result) -> Verdict {
      if (exact) {
        const Bits expected = *exactResult(op, format, o);
        Verdict v = expectBits(output, expected, result);
        const bool eitherZero =
            (op == Op::MaxNum || op == Op::MinNum || op == Op::Clamp) && ((expected | result) & ~format.signBit()) == 0;
        return eitherZero ? Verdict{} : v;
      }
      const double x = valueOf(type, o[0]);
      if (!(x >= low && x <= high) && (low != -inf || high != inf))
        return {};
      const double y = op == Op::PowI ? static_cast<double>(signedOf(o[1], 32))
                       : o.size() > 1 ? valueOf(type, o[1])
                                      : 0;
      const double got = valueOf(type, result);
      const double narrow = via ? 0.5 : 0;
      if (type.name == "f64")
        return nearTo<long double>(function<long double>(op, x, y), got, format, ulp, absolute, narrow);
      const double truth = function<double>(op, x, y);
      if (approx && op == Op::Pow &&
          !(std::fabs(truth) < 0x1p127 && std::fabs(truth) > 0x1p-126 && std::fabs(y) <= 128))
        return {};
      return nearTo<double>(truth, got, format, ulp, absolute, narrow);
    };
    cases.push_back(std::move(c));
  }
}

} // namespace kiln::test
