//===- Compare.cpp --------------------------------------------------------===//
#include "tests/parity/Compare.h"

#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using U64 = std::uint64_t;

std::string describeValue(Type type, U64 bits) {
  const TypeInfo &t = info(type);
  std::string text = format("0x%0*llx", int(t.bits / 4), static_cast<unsigned long long>(bits));
  if (t.format && t.elements == 1)
    text += format(" = %.9g", sf::toDouble(*t.format, bits));
  else if (!t.format && t.elements == 1)
    text += t.isSigned ? format(" = %lld", static_cast<long long>(signExtend(bits, t.bits)))
                       : format(" = %llu", static_cast<unsigned long long>(bits));
  return text;
}

std::string describeResults(const Form &form, const Columns &results, std::size_t index) {
  std::string text;
  for (std::size_t k = 0; k < results.size(); ++k)
    text += (k ? ", " : "") + describeValue(form.outputs[k], results[k][index]);
  return text;
}

/// Applies `visit(element, bits of its inputs, shift)` to the elements of case `index`.
template <typename Visit> void forElements(const Form &form, const Cases &cases, std::size_t index, Visit visit) {
  const TypeInfo &t = form.lastType();
  unsigned width = t.bits / t.elements;
  for (unsigned e = 0; e < t.elements; ++e) {
    U64 in[4] = {};
    for (std::size_t k = 0; k < cases.inputs.size(); ++k)
      in[k] = cases.inputs[k][index] >> (e * width) & lowBits(width);
    visit(in, e * width);
  }
}

/// Whether an element's result is within the slack; `extra` widens it.
bool acceptable(const Approximation &a, const sf::Format &f, U64 bits) {
  if (!a.defined)
    return true;
  if (std::isnan(a.value) || sf::isNan(f, bits))
    return std::isnan(a.value) && sf::isNan(f, bits);
  double g = sf::toDouble(f, bits);
  if (std::isinf(a.value) || a.mustOverflow)
    return std::isinf(g) && std::signbit(g) == std::signbit(a.value);
  if (std::isinf(g))
    return a.mayOverflow && std::signbit(g) == std::signbit(a.value);
  if (a.signedZero && g == 0 && std::signbit(g) != std::signbit(a.value))
    return false;
  return std::abs(g - a.value) <= a.slack;
}

} // namespace

bool withinBound(const Form &form, const Approximation &a, U64 bits) {
  return acceptable(a, *form.lastType().format, bits);
}

bool claimsCanonicalNan(const Form &form) {
  const std::string &op = form.opcode();
  if (op == "min" || op == "max")
    return form.lastType().bits != 64 && !form.has("xorsign");
  if (op != "cvt" || !form.previousType().format)
    return false;
  Type to = form.previousType().type, from = form.lastType().type;
  return from == Type::F32 && to != Type::F32 && to != Type::F64 && to != Type::TF32;
}

U64 normalised(const Form &form, std::size_t output, U64 bits) {
  const TypeInfo &t = info(form.outputs[output]);
  if (!t.format || claimsCanonicalNan(form))
    return bits;
  unsigned width = t.bits / t.elements;
  U64 result = 0;
  for (unsigned e = 0; e < t.elements; ++e) {
    U64 v = bits >> (e * width) & lowBits(width);
    result |= (sf::isNan(*t.format, v) ? t.format->canonicalNan : v) << (e * width);
  }
  return result;
}

std::string describeCase(const Form &form, const Cases &cases, std::size_t index) {
  std::string text = form.name + "(";
  for (std::size_t k = 0; k < cases.inputs.size(); ++k)
    text += (k ? ", " : "") + describeValue(form.inputs[k], cases.inputs[k][index]);
  return text + ")" + (form.group > 1 ? format(" in lane %zu of its group", index % form.group) : std::string());
}

Difference compareExact(const Form &form, const Cases &cases, const Columns &got, const Columns &want,
                        std::size_t begin, std::size_t count, const char *wantName) {
  Difference d;
  for (std::size_t i = begin; i < begin + count; ++i) {
    ++d.compared;
    bool same = true;
    for (std::size_t k = 0; k < got.size(); ++k)
      same &= normalised(form, k, got[k][i]) == normalised(form, k, want[k][i]);
    if (same)
      continue;
    if (d.cases++ == 0)
      d.first = describeCase(form, cases, i) + " gives " + describeResults(form, got, i) + "; " + wantName + ": " +
                describeResults(form, want, i);
  }
  return d;
}

Difference compareApproximate(const Form &form, const Cases &cases, const Columns &got) {
  Difference d;
  const sf::Format &f = *form.lastType().format;
  U64 mask = lowBits(f.bits);
  for (std::size_t i = 0; i < cases.count(); ++i)
    forElements(form, cases, i, [&](const U64 *in, unsigned shift) {
      Approximation a = approximation(form, in);
      U64 bits = got[0][i] >> shift & mask;
      if (!a.defined) {
        ++d.undefined;
        return;
      }
      ++d.compared;
      double g = sf::toDouble(f, bits), normal = std::ldexp(1.0, 1 - f.bias());
      if (std::isfinite(g) && std::isfinite(a.value) && std::abs(g) >= normal && std::abs(a.value) >= normal)
        d.worstUlp =
            std::max(d.worstUlp, std::abs(g - a.value) / std::ldexp(1.0, std::ilogb(a.value) - int(f.precision - 1)));
      if (acceptable(a, f, bits))
        return;
      if (d.cases++ == 0)
        d.first =
            describeCase(form, cases, i) + " gives " + describeResults(form, got, i) +
            format("; true value %.17g, allowed distance %.3g, off by %.3g", a.value, a.slack, std::abs(g - a.value));
    });
  return d;
}

Difference compareApproximate(const Form &form, const Cases &cases, const Columns &got, const Columns &want,
                              std::size_t count, const char *wantName) {
  Difference d;
  const sf::Format &f = *form.lastType().format;
  U64 mask = lowBits(f.bits);
  for (std::size_t i = 0; i < count; ++i)
    forElements(form, cases, i, [&](const U64 *in, unsigned shift) {
      Approximation a = approximation(form, in);
      U64 g = got[0][i] >> shift & mask, w = want[0][i] >> shift & mask;
      if (!a.defined) {
        ++d.undefined;
        return;
      }
      ++d.compared;
      bool same = g == w || (sf::isNan(f, g) && sf::isNan(f, w));
      if (!same && acceptable(a, f, g) && acceptable(a, f, w)) {
        double x = sf::toDouble(f, g), y = sf::toDouble(f, w);
        double half = std::ldexp(
            0.5, std::max(a.value == 0 ? -1074 : std::ilogb(a.value) - int(f.precision - 1), f.minExponent()));
        same = std::isinf(x) || std::isinf(y) || std::abs(x - y) <= a.slack + half;
      }
      if (!same && d.cases++ == 0)
        d.first = describeCase(form, cases, i) + " gives " + describeResults(form, got, i) + "; " + wantName + ": " +
                  describeResults(form, want, i);
    });
  return d;
}

} // namespace kiln::parity
