//===- OracleFloat.cpp - IEEE arithmetic through SoftFloat -----------------===//
#include "tests/parity/Oracle.h"

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using U64 = std::uint64_t;

U64 minMax(const sf::Format &f, const Modes &m, bool max, U64 a, U64 b) {
  if (m.ftz) {
    a = flush(f, a);
    b = flush(f, b);
  }
  U64 sign = 0;
  if (m.xorsign) {
    sign = (a ^ b) & f.signBit();
    a &= ~f.signBit();
    b &= ~f.signBit();
  }
  bool aNan = sf::isNan(f, a), bNan = sf::isNan(f, b);
  if ((aNan && bNan) || (m.nan && (aNan || bNan)))
    return f.canonicalNan;
  if (aNan || bNan)
    return (aNan ? b : a) | sign;
  int order = sf::compare(sf::unpack(f, a), sf::unpack(f, b));
  if (order == 0) // -0 is below +0
    order = int((b & f.signBit()) != 0) - int((a & f.signBit()) != 0);
  return (max == (order > 0) ? a : b) | sign;
}

/// 0 where a multiplicand is the "out of bounds" NaN.
bool outOfBounds(U64 bits) {
  return (bits & 0x7fff) == 0x7ff7;
}

/// One element; false if the opcode is not here.
bool element(const Form &form, const sf::Format &f, const Modes &m, U64 a, U64 b, U64 c, U64 &out) {
  const std::string &op = form.opcode();
  if (op == "min" || op == "max") {
    out = minMax(f, m, op == "max", a, b);
    return true;
  }
  if (op == "abs" || op == "neg") {
    U64 v = m.ftz ? flush(f, a) : a;
    out = op == "abs" ? v & ~f.signBit() : v ^ f.signBit();
    return true;
  }
  if (op == "copysign") { // d = copysign(a, b): the sign of a on the magnitude of b
    out = (b & ~f.signBit()) | (a & f.signBit());
    return true;
  }
  if (m.ftz) {
    a = flush(f, a);
    b = flush(f, b);
    c = flush(f, c);
  }
  if (op == "fma" && form.has("oob") && (outOfBounds(a) || outOfBounds(b))) {
    out = 0;
    return true;
  }
  sf::Value x = sf::unpack(f, a), y = sf::unpack(f, b), r;
  if (op == "add")
    r = sf::add(x, y, m.rounding);
  else if (op == "sub")
    r = sf::add(x, sf::unpack(f, b ^ f.signBit()), m.rounding);
  else if (op == "mul")
    r = sf::multiply(x, y);
  else if (op == "fma" || op == "mad")
    r = sf::fma(x, y, sf::unpack(f, c), m.rounding);
  else if (op == "div")
    r = sf::divide(x, y);
  else if (op == "rcp")
    r = sf::divide(sf::fromUnsigned(1), x);
  else if (op == "sqrt")
    r = sf::squareRoot(x);
  else
    return false;
  out = roundAndFinish(f, m, r);
  return true;
}

bool testProperty(const Form &form, const sf::Format &f, U64 a) {
  bool nan = sf::isNan(f, a), infinite = (a & ~f.signBit()) == f.infinity();
  if (form.has("finite"))
    return !nan && !infinite;
  if (form.has("infinite"))
    return infinite;
  if (form.has("number"))
    return !nan;
  if (form.has("notanumber"))
    return nan;
  if (form.has("normal")) // zero counts as normal
    return !nan && !infinite && !isSubnormal(f, a);
  return isSubnormal(f, a);
}

} // namespace

Modes::Modes(const Form &form)
    : ftz(form.has("ftz")), sat(form.has("sat")), relu(form.has("relu")), nan(form.has("NaN")),
      xorsign(form.has("xorsign")) {
  if (form.has("rz") || form.has("rzi"))
    rounding = sf::Rounding::TowardZero;
  else if (form.has("rm") || form.has("rmi"))
    rounding = sf::Rounding::Down;
  else if (form.has("rp") || form.has("rpi"))
    rounding = sf::Rounding::Up;
  else if (form.has("rna"))
    rounding = sf::Rounding::NearestAway;
}

bool isSubnormal(const sf::Format &f, U64 bits) {
  U64 magnitude = bits & (f.signBit() - 1);
  return magnitude != 0 && magnitude <= f.fractionMask();
}

U64 flush(const sf::Format &f, U64 bits) {
  return isSubnormal(f, bits) ? bits & f.signBit() : bits;
}

U64 finish(const sf::Format &f, const Modes &m, U64 bits) {
  if (m.sat) {
    U64 one = U64(f.bias()) << (f.precision - 1);
    if (sf::isNan(f, bits) || (bits & f.signBit()))
      return 0;
    return bits > one ? one : bits;
  }
  if (m.relu && !sf::isNan(f, bits) && (bits & f.signBit()))
    return 0;
  return bits;
}

U64 roundAndFinish(const sf::Format &f, const Modes &m, const sf::Value &value, bool saturateFinite) {
  if (m.ftz && value.kind == sf::Value::Finite) {
    // The same precision, two more exponent bits: nothing that f can hold is subnormal there.
    sf::Format wide{f.bits + 2, f.precision, f.exponentBits + 2, false, 0};
    sf::Value rounded = sf::unpack(wide, sf::pack(wide, value, m.rounding));
    rounded.negative = false;
    sf::Value normal = sf::unpack(f, f.fractionMask() + 1);
    if (sf::compare(rounded, normal) < 0)
      return finish(f, m, value.negative ? f.signBit() : 0);
  }
  return finish(f, m, sf::pack(f, value, m.rounding, saturateFinite));
}

bool floatOracle(const Form &form, const U64 *in, U64 *out) {
  const TypeInfo &t = form.lastType();
  if (!t.format || form.approximate() || form.opcode() == "cvt")
    return false;
  const sf::Format &f = *t.format;
  if (form.opcode() == "testp") {
    out[0] = testProperty(form, f, in[0]);
    return true;
  }
  Modes modes(form);
  unsigned width = t.bits / t.elements;
  U64 result = 0;
  for (unsigned e = 0; e < t.elements; ++e) {
    U64 operand[3] = {}, r;
    for (std::size_t i = 0; i < form.inputs.size() && i < 3; ++i)
      operand[i] = in[i] >> (e * width) & lowBits(width);
    if (!element(form, f, modes, operand[0], operand[1], operand[2], r))
      return false;
    result |= r << (e * width);
  }
  out[0] = result;
  return true;
}

} // namespace kiln::parity
