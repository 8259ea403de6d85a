//===- OracleCompare.cpp - setp and set of every type ----------------------===//
#include "tests/parity/Oracle.h"

namespace kiln::parity {

namespace {

using U64 = std::uint64_t;

/// `order`: -1, 0, 1, or 2 for unordered.
bool holds(std::string_view comparison, int order) {
  bool unordered = order == 2;
  if (comparison == "num")
    return !unordered;
  if (comparison == "nan")
    return unordered;
  bool acceptsNan = comparison.size() == 3; // equ, neu, ltu, ...
  if (unordered)
    return acceptsNan;
  std::string_view base = comparison.substr(0, 2);
  if (base == "eq")
    return order == 0;
  if (base == "ne")
    return order != 0;
  if (base == "lt" || base == "lo")
    return order < 0;
  if (base == "le" || base == "ls")
    return order <= 0;
  if (base == "gt" || base == "hi")
    return order > 0;
  return order >= 0; // ge, hs
}

int orderOf(const TypeInfo &t, U64 a, U64 b, bool ftz) {
  if (const softfloat::Format *f = t.format) {
    if (softfloat::isNan(*f, a) || softfloat::isNan(*f, b))
      return 2;
    if (ftz) {
      a = flush(*f, a);
      b = flush(*f, b);
    }
    return softfloat::compare(softfloat::unpack(*f, a), softfloat::unpack(*f, b));
  }
  if (t.isSigned) {
    std::int64_t x = signExtend(a, t.bits), y = signExtend(b, t.bits);
    return x < y ? -1 : x > y;
  }
  return a < b ? -1 : a > b;
}

bool combine(const Form &form, bool value, bool c) {
  if (form.has("and"))
    return value && c;
  if (form.has("or"))
    return value || c;
  return value != c;
}

} // namespace

bool compareOracle(const Form &form, const U64 *in, U64 *out) {
  if (form.opcode() != "setp" && form.opcode() != "set")
    return false;
  const TypeInfo &t = form.lastType();
  bool combined = form.has("and") || form.has("or") || form.has("xor");
  bool c = combined && in[2] != 0;
  if (form.name.ends_with("negated"))
    c = !c;
  unsigned width = t.bits / t.elements;
  bool results[2];
  for (unsigned e = 0; e < t.elements; ++e) {
    U64 a = in[0] >> (e * width) & lowBits(width), b = in[1] >> (e * width) & lowBits(width);
    results[e] = holds(form.parts[1], orderOf(t, a, b, form.has("ftz")));
  }
  if (form.opcode() == "setp") {
    if (t.elements == 2) { // one predicate a half
      out[0] = results[0];
      out[1] = results[1];
      return true;
    }
    out[0] = combined ? combine(form, results[0], c) : results[0];
    if (form.outputs.size() > 1)
      out[1] = combined ? combine(form, !results[0], c) : !results[0];
    return true;
  }
  const TypeInfo &d = form.previousType();
  out[0] = 0;
  for (unsigned e = 0; e < t.elements; ++e) {
    bool r = combined ? combine(form, results[e], c) : results[e];
    unsigned destination = t.elements == 2 ? 16 : d.bits;
    U64 one = d.format ? U64(d.format->bias()) << (d.format->precision - 1) : lowBits(destination);
    out[0] |= (r ? one : 0) << (e * 16);
  }
  return true;
}

} // namespace kiln::parity
