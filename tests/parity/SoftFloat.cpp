//===- SoftFloat.cpp ------------------------------------------------------===//
#include "tests/parity/SoftFloat.h"

#include <algorithm>
#include <bit>

namespace kiln::softfloat {

namespace {

int topBit(const Wide &v) {
  for (int word = 3; word >= 0; --word)
    if (std::uint64_t w = std::uint64_t(v >> (64 * word)))
      return 64 * word + 63 - std::countl_zero(w);
  return -1;
}

/// v >> shift with every lost bit or-ed into the last place.
Wide jamRight(const Wide &v, int shift) {
  if (shift <= 0)
    return v;
  if (shift > 255)
    return v != 0;
  Wide kept = v >> shift;
  return (kept << shift) != v ? kept | 1 : kept;
}

/// Whether a discarded part (`lost` of a unit 2^shift, not zero) rounds the magnitude up.
bool roundsUp(const Wide &lost, int shift, bool odd, bool negative, Rounding rounding) {
  switch (rounding) {
  case Rounding::TowardZero:
    return false;
  case Rounding::Down:
    return negative;
  case Rounding::Up:
    return !negative;
  case Rounding::NearestEven:
  case Rounding::NearestAway:
    break;
  }
  Wide middle = Wide(1) << (shift - 1);
  if (lost != middle)
    return lost > middle;
  return odd || rounding == Rounding::NearestAway;
}

/// v / 2^shift, rounded; shift > 0.
Wide shiftRounded(Wide v, int shift, bool negative, Rounding rounding) {
  if (shift > 250) { // everything is far below half a unit
    v = 1;
    shift = 8;
  }
  Wide kept = v >> shift, lost = v - (kept << shift);
  if (lost != 0 && roundsUp(lost, shift, (kept & 1) != 0, negative, rounding))
    kept += 1;
  return kept;
}

Value nan() {
  return {Value::Nan, false, 0, 0};
}
Value zero(bool negative) {
  return {Value::Zero, negative, 0, 0};
}
Value infinity(bool negative) {
  return {Value::Infinity, negative, 0, 0};
}

} // namespace

bool isNan(const Format &f, std::uint64_t bits) {
  std::uint64_t magnitude = bits & (f.signBit() - 1);
  return f.finiteOnly ? magnitude == f.signBit() - 1 : magnitude > f.infinity();
}

Value unpack(const Format &f, std::uint64_t bits) {
  bool negative = bits & f.signBit();
  std::uint64_t magnitude = bits & (f.signBit() - 1);
  if (isNan(f, bits))
    return nan();
  if (!f.finiteOnly && magnitude == f.infinity())
    return infinity(negative);
  if (magnitude == 0)
    return zero(negative);
  int field = int(magnitude >> (f.precision - 1));
  std::uint64_t significand = magnitude & f.fractionMask();
  if (field)
    significand |= f.fractionMask() + 1;
  return {Value::Finite, negative, significand, f.minExponent() + (field ? field - 1 : 0)};
}

std::uint64_t pack(const Format &f, const Value &v, Rounding rounding, bool saturateFinite) {
  std::uint64_t sign = v.negative ? f.signBit() : 0;
  switch (v.kind) {
  case Value::Nan:
    return f.canonicalNan;
  case Value::Zero:
    return sign;
  case Value::Infinity:
    return sign | (saturateFinite || f.finiteOnly ? f.maxFinite() : f.infinity());
  case Value::Finite:
    break;
  }
  int top = topBit(v.significand);
  int last = std::max(v.exponent + top - int(f.precision - 1), f.minExponent());
  int shift = last - v.exponent;
  Wide kept = shift <= 0 ? v.significand << -shift : shiftRounded(v.significand, shift, v.negative, rounding);
  if (kept == 0)
    return sign;
  if (kept >> f.precision) { // rounded up to the next binade
    kept >>= 1;
    last += 1;
  }
  bool normal = (kept >> (f.precision - 1)) != 0;
  std::int64_t field = normal ? last - f.minExponent() + 1 : 0;
  std::uint64_t magnitude = 0;
  bool overflow = field >= (std::int64_t(1) << f.exponentBits);
  if (!overflow) {
    magnitude = (std::uint64_t(field) << (f.precision - 1)) | (std::uint64_t(kept) & f.fractionMask());
    overflow = magnitude > f.maxFinite();
  }
  if (overflow) {
    bool toMax = saturateFinite || f.finiteOnly || rounding == Rounding::TowardZero ||
                 (rounding == Rounding::Down && !v.negative) || (rounding == Rounding::Up && v.negative);
    magnitude = toMax ? f.maxFinite() : f.infinity();
  }
  return sign | magnitude;
}

Value fromUnsigned(std::uint64_t magnitude, bool negative) {
  if (magnitude == 0)
    return zero(false);
  return {Value::Finite, negative, magnitude, 0};
}

Value add(const Value &a, const Value &b, Rounding rounding) {
  if (a.kind == Value::Nan || b.kind == Value::Nan)
    return nan();
  if (a.kind == Value::Infinity || b.kind == Value::Infinity) {
    if (a.kind == b.kind && a.negative != b.negative)
      return nan();
    return infinity(a.kind == Value::Infinity ? a.negative : b.negative);
  }
  if (a.kind == Value::Zero && b.kind == Value::Zero)
    return zero(a.negative == b.negative ? a.negative : rounding == Rounding::Down);
  if (a.kind == Value::Zero)
    return b;
  if (b.kind == Value::Zero)
    return a;
  const Value &high = a.exponent >= b.exponent ? a : b, &low = a.exponent >= b.exponent ? b : a;
  int distance = high.exponent - low.exponent;
  // Significands have at most 110 bits: 140 more keep the sum below 2^251 and the sticky bit far below any last place.
  int up = distance < 140 ? distance : 140;
  Wide h = high.significand << up, l = jamRight(low.significand, distance - up);
  int exponent = high.exponent - up;
  if (high.negative == low.negative)
    return {Value::Finite, high.negative, h + l, exponent};
  if (h == l)
    return zero(rounding == Rounding::Down);
  return h > l ? Value{Value::Finite, high.negative, h - l, exponent}
               : Value{Value::Finite, low.negative, l - h, exponent};
}

Value multiply(const Value &a, const Value &b) {
  bool negative = a.negative != b.negative;
  if (a.kind == Value::Nan || b.kind == Value::Nan)
    return nan();
  if (a.kind == Value::Infinity || b.kind == Value::Infinity)
    return a.kind == Value::Zero || b.kind == Value::Zero ? nan() : infinity(negative);
  if (a.kind == Value::Zero || b.kind == Value::Zero)
    return zero(negative);
  return {Value::Finite, negative, a.significand * b.significand, a.exponent + b.exponent};
}

Value fma(const Value &a, const Value &b, const Value &c, Rounding rounding) {
  return add(multiply(a, b), c, rounding);
}

Value divide(const Value &a, const Value &b) {
  bool negative = a.negative != b.negative;
  if (a.kind == Value::Nan || b.kind == Value::Nan)
    return nan();
  if (a.kind == Value::Infinity)
    return b.kind == Value::Infinity ? nan() : infinity(negative);
  if (b.kind == Value::Infinity)
    return zero(negative);
  if (b.kind == Value::Zero)
    return a.kind == Value::Zero ? nan() : infinity(negative);
  if (a.kind == Value::Zero)
    return zero(negative);
  Wide dividend = a.significand << 140;
  Wide quotient = dividend / b.significand;
  if (quotient * b.significand != dividend)
    quotient |= 1;
  return {Value::Finite, negative, quotient, a.exponent - 140 - b.exponent};
}

Value squareRoot(const Value &a) {
  if (a.kind == Value::Nan || a.kind == Value::Zero)
    return a;
  if (a.negative)
    return nan();
  if (a.kind == Value::Infinity)
    return a;
  int shift = 130 + ((a.exponent ^ 130) & 1);
  Wide n = a.significand << shift, root = 0;
  for (int bit = topBit(n) / 2; bit >= 0; --bit) {
    Wide next = root | (Wide(1) << bit);
    if (next * next <= n)
      root = next;
  }
  if (root * root != n)
    root = (root << 1) | 1; // the sticky bit below the last place
  else
    root <<= 1;
  return {Value::Finite, false, root, (a.exponent - shift) / 2 - 1};
}

int compare(const Value &a, const Value &b) {
  auto sign = [](const Value &v) { return v.kind == Value::Zero ? 0 : v.negative ? -1 : 1; };
  if (sign(a) != sign(b))
    return sign(a) < sign(b) ? -1 : 1;
  if (sign(a) == 0)
    return 0;
  if (a.kind == Value::Infinity || b.kind == Value::Infinity) {
    if (a.kind == b.kind)
      return 0;
    return (a.kind == Value::Infinity ? 1 : -1) * sign(a);
  }
  Value difference = add(a, {b.kind, !b.negative, b.significand, b.exponent}, Rounding::NearestEven);
  return sign(difference);
}

Value roundToInteger(const Value &a, Rounding rounding) {
  if (a.kind != Value::Finite || a.exponent >= 0)
    return a;
  Wide kept = shiftRounded(a.significand, -a.exponent, a.negative, rounding);
  if (kept == 0)
    return zero(a.negative);
  return {Value::Finite, a.negative, kept, 0};
}

std::uint64_t toInteger(const Value &a, std::int64_t low, std::uint64_t high) {
  if (a.kind == Value::Zero)
    return 0;
  bool huge = a.kind == Value::Infinity || a.exponent + topBit(a.significand) > 64;
  if (a.negative) {
    std::uint64_t limit = std::uint64_t(0) - std::uint64_t(low);
    Wide magnitude = huge ? Wide(limit) : a.exponent >= 0 ? a.significand << a.exponent : a.significand >> -a.exponent;
    return std::uint64_t(0) - std::uint64_t(magnitude < limit ? magnitude : Wide(limit));
  }
  Wide magnitude = huge ? Wide(high) : a.exponent >= 0 ? a.significand << a.exponent : a.significand >> -a.exponent;
  return std::uint64_t(magnitude < high ? magnitude : Wide(high));
}

std::uint64_t ulpDistance(const Format &f, std::uint64_t a, std::uint64_t b) {
  auto order = [&](std::uint64_t bits) {
    std::uint64_t magnitude = bits & (f.signBit() - 1);
    return bits & f.signBit() ? -std::int64_t(magnitude) : std::int64_t(magnitude);
  };
  std::int64_t x = order(a), y = order(b);
  return x < y ? std::uint64_t(y) - std::uint64_t(x) : std::uint64_t(x) - std::uint64_t(y);
}

double toDouble(const Format &f, std::uint64_t bits) {
  std::uint64_t r = pack(real, unpack(f, bits), Rounding::NearestEven);
  return std::bit_cast<double>(r);
}

} // namespace kiln::softfloat
