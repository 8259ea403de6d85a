//===- OracleApproximate.cpp - Reference values and bounds of approximations -===//
//
// Bounds are those that NVIDIA documents (the emulator specification, 1.3).  Libm in double is far more precise than
// all.
//
//===----------------------------------------------------------------------===//
#include "tests/parity/Oracle.h"

#include <bit>
#include <cmath>

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using U64 = std::uint64_t;

double unitInLastPlace(const sf::Format &f, double v) {
  v = std::abs(v);
  double least = std::ldexp(1.0, f.minExponent());
  return v == 0 ? least : std::max(least, std::ldexp(1.0, std::ilogb(v) - int(f.precision - 1)));
}

/// sqrt, rcp and friends as real functions; infinities and NaN as IEEE says.
double evaluate(const std::string &op, double x, double y) {
  if (op == "rcp")
    return 1 / x;
  if (op == "sqrt")
    return std::sqrt(x);
  if (op == "rsqrt")
    return x == 0 ? std::copysign(INFINITY, x) : 1 / std::sqrt(x);
  if (op == "ex2")
    return std::exp2(x);
  if (op == "lg2")
    return std::log2(x);
  if (op == "sin")
    return std::sin(x);
  if (op == "cos")
    return std::cos(x);
  if (op == "tanh")
    return std::tanh(x);
  return x / y;
}

constexpr double pi = 3.14159265358979323846;

} // namespace

Approximation approximation(const Form &form, const U64 *in) {
  const TypeInfo &t = form.lastType();
  const sf::Format &f = *t.format;
  const std::string &op = form.opcode();
  bool ftz = form.has("ftz");
  U64 a = ftz ? flush(f, in[0]) : in[0], b = form.inputs.size() > 1 ? (ftz ? flush(f, in[1]) : in[1]) : 0;
  double x = sf::toDouble(f, a), y = sf::toDouble(f, b);
  Approximation r;
  if (t.type == Type::F64) { // only the high word of the input counts
    std::uint64_t high = a & 0xffffffff00000000;
    r.defined = !sf::isNan(f, a) || sf::isNan(f, high);
    x = sf::toDouble(f, flush(f, high));
  }
  r.value = evaluate(op, x, y);
  if (op == "div" && form.has("approx")) {
    double magnitude = std::abs(y);
    if (std::isfinite(y) && magnitude > 0x1p126 && !std::isnan(x))
      r.value = std::isinf(x) ? NAN : 0.0;
    else if (magnitude != 0 && magnitude < 0x1p-126)
      r.defined = false;
  }
  if (std::isnan(r.value) || std::isinf(r.value))
    return r;
  double largest = sf::toDouble(f, f.maxFinite()), normal = std::ldexp(1.0, 1 - f.bias());
  double last = unitInLastPlace(f, r.value), magnitude = std::abs(r.value);
  switch (form.tolerance.bound) {
  case Bound::Exact:
    break;
  case Bound::Ulp:
    r.slack = form.tolerance.value * last;
    break;
  case Bound::Relative:
    r.slack = std::exp2(form.tolerance.value) * magnitude;
    break;
  case Bound::Absolute:
    r.slack = std::exp2(form.tolerance.value);
    break;
  case Bound::Log2:
    r.slack = 0x1p-22 * (x > 0.5 && x < 2 ? 1.0 : magnitude);
    break;
  case Bound::SinCos:
    r.defined = std::abs(x) <= 100 * pi;
    r.slack = std::abs(x) <= 2 * pi ? std::exp2(-20.5) : std::exp2(-14.7);
    break;
  }
  if (t.type != Type::F64) // the result itself is rounded to the type
    r.slack += form.tolerance.bound == Bound::Ulp ? 0 : 0.5 * last;
  if (op == "ex2" && f.bits == 16 && magnitude < normal) // subnormal results are truncated (seen on an H200)
    r.slack = std::max(r.slack, last);
  if (ftz && magnitude < normal * (1 + 0x1p-10)) // flushed, or just not
    r.slack = std::max(r.slack, magnitude);
  r.mayOverflow = magnitude + r.slack > largest;
  r.mustOverflow = magnitude - r.slack > largest;
  r.signedZero = r.value == 0 && op != "div" && op != "lg2";
  return r;
}

} // namespace kiln::parity
