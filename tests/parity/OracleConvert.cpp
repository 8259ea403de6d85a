//===- OracleConvert.cpp - cvt of every pair of types ----------------------===//
#include "tests/parity/Oracle.h"

#include <algorithm>

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using U64 = std::uint64_t;

std::int64_t lowest(const TypeInfo &t) {
  return t.isSigned ? std::int64_t(~U64(0) << (t.bits - 1)) : 0;
}
U64 highest(const TypeInfo &t) {
  return lowBits(t.isSigned ? t.bits - 1 : t.bits);
}

/// Extends an integer result to the register that `Form::outputs` stores.
U64 container(const Form &form, const TypeInfo &t, U64 v) {
  unsigned bits = info(form.outputs[0]).bits;
  return (t.isSigned ? U64(signExtend(v, t.bits)) : v & lowBits(t.bits)) & lowBits(bits);
}

U64 integerToInteger(const Form &form, const TypeInfo &to, const TypeInfo &from, U64 v) {
  if (form.has("sat")) {
    __int128 wide = from.isSigned ? __int128(signExtend(v, from.bits)) : __int128(v & lowBits(from.bits));
    wide = std::clamp<__int128>(wide, lowest(to), __int128(highest(to)));
    return container(form, to, U64(wide));
  }
  U64 extended = from.isSigned ? U64(signExtend(v, from.bits)) : v & lowBits(from.bits);
  return container(form, to, extended);
}

U64 floatToInteger(const Form &form, const TypeInfo &to, const sf::Format &f, U64 v) {
  Modes m(form);
  if (sf::isNan(f, v)) { // f64 and 64-bit results: the top bit; else 0
    if (f.bits == 64)
      return container(form, to, U64(1) << (to.bits - 1));
    return to.bits == 64 ? U64(1) << 63 : 0;
  }
  if (m.ftz)
    v = flush(f, v);
  sf::Value whole = sf::roundToInteger(sf::unpack(f, v), m.rounding);
  return container(form, to, sf::toInteger(whole, lowest(to), highest(to)));
}

U64 integerToFloat(const Form &form, const sf::Format &f, const TypeInfo &from, U64 v) {
  Modes m(form);
  bool negative = from.isSigned && signExtend(v, from.bits) < 0;
  U64 magnitude = negative ? U64(0) - U64(signExtend(v, from.bits)) : v & lowBits(from.bits);
  return finish(f, m, sf::pack(f, sf::fromUnsigned(magnitude, negative), m.rounding));
}

/// The low 13 bits of a tf32 are zero: rounds a format that has them removed.
U64 toTensorFloat(const Form &form, const Modes &m, U64 v) {
  constexpr sf::Format tensorFloat{19, 11, 8, false, 0x3ffff};
  if (sf::isNan(sf::single, v)) {
    if (!form.has("rna"))
      return sf::single.canonicalNan;
    U64 cut = v & ~U64(0x1fff); // .rna only drops the bits of a NaN, which may leave an infinity
    bool infinite = (cut & 0x7fffffff) == 0x7f800000;
    return infinite && form.has("satfinite") ? (cut & 0x80000000) | 0x7f7fe000 : cut;
  }
  U64 r = sf::pack(tensorFloat, sf::unpack(sf::single, v), m.rounding, form.has("satfinite")) << 13;
  return m.relu && (r & 0x80000000) ? 0 : r;
}

U64 floatToFloat(const Form &form, const sf::Format &to, const sf::Format &from, U64 v) {
  Modes m(form);
  if (m.ftz && from.bits == 32 && to.bits != 16) // f16 results do not flush the source
    v = flush(from, v);
  sf::Value value = sf::unpack(from, v);
  bool integral = form.has("rni") || form.has("rzi") || form.has("rmi") || form.has("rpi");
  if (integral)
    value = sf::roundToInteger(value, m.rounding);
  m.ftz &= to.bits == 32; // only f32 results flush
  return roundAndFinish(to, m, value, form.has("satfinite"));
}

U64 packSaturated(const Form &form, const U64 *in) {
  const TypeInfo &to = *findType(form.parts[3]);
  auto clamp = [&](U64 v) {
    std::int64_t x = signExtend(v, 32);
    return U64(std::clamp<std::int64_t>(x, lowest(to), std::int64_t(highest(to)))) & lowBits(to.bits);
  };
  U64 pair = clamp(in[0]) << to.bits | clamp(in[1]);
  return to.bits == 16 ? pair : (pair | in[2] << 16) & 0xffffffff;
}

} // namespace

bool convertOracle(const Form &form, const U64 *in, U64 *out) {
  if (form.opcode() != "cvt")
    return false;
  if (form.has("pack")) {
    out[0] = packSaturated(form, in);
    return true;
  }
  const TypeInfo &to = form.previousType(), &from = form.lastType();
  if (to.type == Type::TF32)
    out[0] = toTensorFloat(form, Modes(form), in[0]);
  else if (!to.format && !from.format)
    out[0] = integerToInteger(form, to, from, in[0]);
  else if (!to.format)
    out[0] = floatToInteger(form, to, *from.format, in[0]);
  else if (!from.format)
    out[0] = integerToFloat(form, *to.format, from, in[0]);
  else if (to.elements == 1)
    out[0] = floatToFloat(form, *to.format, *from.format, in[0]);
  else { // packed: the first of two operands is the high half
    unsigned width = to.bits / 2;
    U64 low = form.inputs.size() == 2 ? in[1] : in[0] & lowBits(from.bits / 2);
    U64 high = form.inputs.size() == 2 ? in[0] : in[0] >> (from.bits / 2);
    out[0] = floatToFloat(form, *to.format, *from.format, low) | floatToFloat(form, *to.format, *from.format, high)
                                                                     << width;
  }
  return true;
}

} // namespace kiln::parity
