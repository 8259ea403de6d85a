#include "Literals.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace kiln::language {
namespace {

/// A binary float format: e exponent bits, m mantissa bits.  e4m3 has no infinity, and its NaN is all ones.
struct Format {
  unsigned exponentBits, mantissaBits;
  bool finite;
};

Format formatOf(DType e) {
  switch (e) {
  case DType::F16:
    return {5, 10, false};
  case DType::BF16:
    return {8, 7, false};
  case DType::F32:
    return {8, 23, false};
  case DType::F8E4M3:
    return {4, 3, true};
  case DType::F8E5M2:
    return {5, 2, false};
  default:
    return {11, 52, false};
  }
}

/// The bits of `v` rounded to nearest even; `overflow` if a finite v is too large.
std::uint64_t roundTo(const Format &f, double v, bool &overflow) {
  const unsigned width = 1 + f.exponentBits + f.mantissaBits;
  const std::uint64_t sign = std::uint64_t(std::signbit(v)) << (width - 1);
  const std::uint64_t allExponent = ((std::uint64_t(1) << f.exponentBits) - 1) << f.mantissaBits;
  const std::uint64_t mantissaMask = (std::uint64_t(1) << f.mantissaBits) - 1;
  overflow = false;
  if (std::isnan(v))
    return f.finite ? allExponent | mantissaMask : allExponent | (std::uint64_t(1) << (f.mantissaBits - 1));
  if (std::isinf(v)) {
    overflow = f.finite;
    return sign | allExponent;
  }
  if (v == 0)
    return sign;
  const int bias = (1 << (f.exponentBits - 1)) - 1;
  const int exponent = std::max(std::ilogb(v), 1 - bias);
  // v in units of the last place at that exponent: exact, then rounded by the default mode, to nearest even.
  std::uint64_t units = static_cast<std::uint64_t>(
      std::nearbyint(std::scalbn(std::fabs(v), static_cast<int>(f.mantissaBits) - exponent)));
  // A subnormal's units are its bits; a carry into the next exponent is the right sum.
  const bool normal = units >> f.mantissaBits;
  const std::uint64_t bits =
      normal ? units + (static_cast<std::uint64_t>(exponent + bias - 1) << f.mantissaBits) : units;
  overflow = f.finite ? bits >= (allExponent | mantissaMask) : bits >= allExponent;
  return sign | bits;
}

double valueOf(const detail::Constant &c) {
  using Kind = detail::Constant::Kind;
  return c.kind == Kind::Float ? c.f : c.kind == Kind::Signed ? static_cast<double>(c.i) : static_cast<double>(c.u);
}

/// Whether the format holds v, and v has so few binary places that its decimals are exact.
bool isShort(const Format &f, double v) {
  if (v == 0)
    return !std::signbit(v);
  const int exponent = std::ilogb(v);
  if (exponent < -10 || exponent > 20)
    return false;
  const int places = std::min(static_cast<int>(f.mantissaBits) - exponent, 10);
  const double units = std::scalbn(v, places);
  return units == std::nearbyint(units);
}

bool appendFloat(std::string &out, DType e, double v) {
  const Format f = formatOf(e);
  bool overflow;
  const std::uint64_t bits = roundTo(f, v, overflow);
  if (overflow)
    return false;
  char buffer[40];
  if (std::isfinite(v) && isShort(f, v)) {
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed);
    if (error == std::errc() && end - buffer <= 8) {
      const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
      out += text;
      if (text.find('.') == std::string_view::npos)
        out += ".0";
      return true;
    }
  }
  constexpr char digits[] = "0123456789ABCDEF";
  out += "0x";
  for (int shift = static_cast<int>(bitsOf(e)) - 4; shift >= 0; shift -= 4)
    out += digits[bits >> shift & 15];
  return true;
}

bool appendWhole(std::string &out, DType e, const detail::Constant &c) {
  using Kind = detail::Constant::Kind;
  const unsigned bits = bitsOf(e);
  const bool negative = c.kind == Kind::Signed && c.i < 0;
  if (c.kind == Kind::Float)
    return false;
  if (isUnsigned(e)) {
    if (negative || (bits < 64 && c.u >> bits))
      return false;
    // Signless types read and print as signed ones.
    appendInteger(out, static_cast<std::int64_t>(c.u << (64 - bits)) >> (64 - bits));
    return true;
  }
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  if (negative ? c.i < -largest - 1 : c.u > static_cast<std::uint64_t>(largest))
    return false;
  appendInteger(out, c.i);
  return true;
}

} // namespace

void appendInteger(std::string &out, std::int64_t value) {
  char buffer[24];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

bool appendLiteral(std::string &out, DType e, const detail::Constant &value) {
  if (isFloat(e))
    return appendFloat(out, e, valueOf(value));
  if (e == DType::I1) {
    out += value.u ? "true" : "false";
    return true;
  }
  return appendWhole(out, e, value);
}

std::string constantText(const detail::Constant &c) {
  using Kind = detail::Constant::Kind;
  char buffer[40];
  std::to_chars_result r = {};
  if (c.kind == Kind::Bool)
    return c.u ? "true" : "false";
  if (c.kind == Kind::Float)
    r = std::to_chars(buffer, buffer + sizeof buffer, c.f);
  else if (c.kind == Kind::Signed)
    r = std::to_chars(buffer, buffer + sizeof buffer, c.i);
  else
    r = std::to_chars(buffer, buffer + sizeof buffer, c.u);
  return std::string(buffer, r.ptr);
}

std::string rangeText(DType e) {
  switch (e) {
  case DType::F16:
    return "-65504 .. 65504";
  case DType::F8E4M3:
    return "-448 .. 448";
  case DType::F8E5M2:
    return "-57344 .. 57344";
  case DType::BF16:
  case DType::F32:
    return "about -3.4e38 .. 3.4e38";
  case DType::F64:
    return "all doubles";
  case DType::I1:
    return "false, true";
  default:
    break;
  }
  const unsigned bits = bitsOf(e);
  if (isUnsigned(e))
    return "0 .. " + std::to_string(~std::uint64_t(0) >> (64 - bits));
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  return std::to_string(-largest - 1) + " .. " + std::to_string(largest);
}

void appendQuoted(std::string &out, std::string_view text) {
  constexpr char digits[] = "0123456789ABCDEF";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += '\\';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

} // namespace kiln::language
