//===- FunctionNumbers.h - What functions of scores and masks compute on the host -------===//
//
// Whole numbers, numbers and masks of several pairs at a time, with the operators and functions that texts have
// (FunctionText.h): the float64 side of what tiles are in kernels.  A number carries its derivative by the score, and
// how far a kernel's, fp32 with approximate functions, may be off.
//
// Invariants.  One lane stands for as many as it meets.  Whole numbers are those of 32 bits: they wrap, and what is
// divided by 0 is 0.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_FUNCTIONNUMBERS_H
#define KILN_KERNELS_ATTENTION_FUNCTIONNUMBERS_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::kernels::host {

inline constexpr unsigned mostLanes = 128;

/// Copies what is there: of one lane one, though there is room for all.
template <typename T> class Lanes {
public:
  Lanes(T value) : count(1) { values[0] = value; }
  /// So many, to be written.
  static Lanes several(unsigned count) {
    Lanes out;
    out.count = count;
    return out;
  }
  Lanes(const Lanes &other) : count(other.count) { std::copy_n(other.values.begin(), count, values.begin()); }
  Lanes &operator=(const Lanes &other) {
    count = other.count;
    std::copy_n(other.values.begin(), count, values.begin());
    return *this;
  }

  unsigned size() const { return count; }
  T &operator[](unsigned i) { return values[i]; }
  /// Of every lane, where there is one.
  const T &at(unsigned i) const { return values[count == 1 ? 0 : i]; }

private:
  Lanes() = default;
  unsigned count;
  std::array<T, mostLanes> values;
};

struct Number {
  double value, slope, error;
};
using Wholes = Lanes<std::int32_t>;
using Numbers = Lanes<Number>;
using Masks = Lanes<bool>;

inline Number number(double value, double slope = 0, double error = 0) {
  return {value, slope, error};
}

template <typename R, typename F, typename A, typename... Rest>
Lanes<R> mapped(F f, const Lanes<A> &a, const Lanes<Rest> &...rest) {
  auto out = Lanes<R>::several(std::max({a.size(), rest.size()...}));
  for (unsigned i = 0; i < out.size(); ++i)
    out[i] = f(a.at(i), rest.at(i)...);
  return out;
}

/// Half a unit in the last place of fp32.
inline double halfUlpOf(double v) {
  return 0x1p-24 * std::abs(v);
}

#define KILN_LANES(symbol, R, T, expression)                                                                           \
  inline Lanes<R> operator symbol(const Lanes<T> &x, const Lanes<T> &y) {                                              \
    return mapped<R>([](const T &a, const T &b) -> R { return expression; }, x, y);                                    \
  }
#define KILN_WRAPPED(symbol)                                                                                           \
  KILN_LANES(symbol, std::int32_t, std::int32_t,                                                                       \
             static_cast<std::int32_t>(static_cast<std::uint32_t>(a) symbol static_cast<std::uint32_t>(b)))
#define KILN_COMPARED(symbol)                                                                                          \
  KILN_LANES(symbol, bool, std::int32_t, a symbol b) KILN_LANES(symbol, bool, Number, a.value symbol b.value)
KILN_WRAPPED(+)
KILN_WRAPPED(-)
KILN_WRAPPED(*)
KILN_LANES(/, std::int32_t, std::int32_t, b == 0 ? 0 : static_cast<std::int32_t>(std::int64_t(a) / b))
KILN_LANES(%, std::int32_t, std::int32_t, b == 0 ? 0 : static_cast<std::int32_t>(std::int64_t(a) % b))
KILN_COMPARED(<)
KILN_COMPARED(<=)
KILN_COMPARED(>)
KILN_COMPARED(>=)
KILN_COMPARED(==)
KILN_COMPARED(!=)
KILN_LANES(&, bool, bool, a &&b)
KILN_LANES(|, bool, bool, a || b)
#undef KILN_COMPARED
#undef KILN_WRAPPED

KILN_LANES(+, Number, Number,
           number(a.value + b.value, a.slope + b.slope, a.error + b.error + halfUlpOf(a.value + b.value)))
KILN_LANES(-, Number, Number,
           number(a.value - b.value, a.slope - b.slope, a.error + b.error + halfUlpOf(a.value - b.value)))
KILN_LANES(*, Number, Number,
           number(a.value *b.value, a.slope *b.value + b.slope * a.value,
                  std::abs(a.value) * b.error + std::abs(b.value) * a.error + halfUlpOf(a.value * b.value)))
#undef KILN_LANES
inline Numbers operator/(const Numbers &x, const Numbers &y) {
  return mapped<Number>(
      [](const Number &a, const Number &b) {
        const double q = a.value / b.value;
        return number(q, (a.slope - q * b.slope) / b.value,
                      (a.error + std::abs(q) * b.error) / std::abs(b.value) + 4 * halfUlpOf(q));
      },
      x, y);
}
inline Masks operator!(const Masks &x) {
  return mapped<bool>([](bool a) { return !a; }, x);
}
inline Wholes operator-(const Wholes &x) {
  return Wholes(0) - x;
}
inline Numbers operator-(const Numbers &x) {
  return mapped<Number>([](const Number &a) { return number(-a.value, -a.slope, a.error); }, x);
}

template <typename T> Lanes<T> select(const Masks &mask, const Lanes<T> &x, const Lanes<T> &y) {
  return mapped<T>([](bool first, const T &a, const T &b) { return first ? a : b; }, mask, x, y);
}
// Of equal numbers the first is taken, as in Dual.h.
template <typename T> Lanes<T> min(const Lanes<T> &x, const Lanes<T> &y) {
  return select(x <= y, x, y);
}
template <typename T> Lanes<T> max(const Lanes<T> &x, const Lanes<T> &y) {
  return select(x >= y, x, y);
}
inline Wholes abs(const Wholes &x) {
  return select(x < Wholes(0), -x, x);
}
inline Numbers abs(const Numbers &x) {
  return mapped<Number>(
      [](const Number &a) {
        return number(std::abs(a.value), a.value > 0 ? a.slope : a.value < 0 ? -a.slope : 0, a.error);
      },
      x);
}
/// The slope is 0 everywhere; nothing is said of a value on the other side of a step.
inline Numbers floor(const Numbers &x) {
  return mapped<Number>([](const Number &a) { return number(std::floor(a.value)); }, x);
}

// `v` is the value at x, `slope` the derivative there, `loss` how far approximate code may be off: PTX's bounds,
// rounded up.
#define KILN_FUNCTION(name, slopeText, lossText)                                                                       \
  inline Numbers name(const Numbers &numbers) {                                                                        \
    return mapped<Number>(                                                                                             \
        [](const Number &a) {                                                                                          \
          const double x = a.value, v = std::name(x), slope = slopeText, loss = lossText;                              \
          (void)x;                                                                                                     \
          return number(v, a.slope * slope, std::abs(slope) * a.error + loss);                                         \
        },                                                                                                             \
        numbers);                                                                                                      \
  }
KILN_FUNCTION(exp, v, v * (0x1p-21 + 0x1p-22 * std::abs(x)))
KILN_FUNCTION(exp2, v * 0.69314718055994531, v * 0x1p-21)
KILN_FUNCTION(log, 1 / x, 0x1p-21 + 4 * halfUlpOf(v))
KILN_FUNCTION(log2, 1.4426950408889634 / x, 0x1p-21 + 4 * halfUlpOf(v))
KILN_FUNCTION(sqrt, 0.5 / v, 4 * halfUlpOf(v))
KILN_FUNCTION(tanh, 1 - v * v, 0x1.01p-11 * std::abs(v))
#undef KILN_FUNCTION
inline Numbers pow(const Numbers &x, const Numbers &y) {
  return mapped<Number>(
      [](const Number &a, const Number &b) {
        const double v = std::pow(a.value, b.value), ofBase = b.value * std::pow(a.value, b.value - 1),
                     ofExponent = b.slope == 0 && b.error == 0 ? 0 : v * std::log(a.value);
        return number(v, ofBase * a.slope + (b.slope == 0 ? 0 : ofExponent * b.slope),
                      std::abs(ofBase) * a.error + (b.error == 0 ? 0 : std::abs(ofExponent) * b.error) +
                          std::abs(v) *
                              (0x1p-20 + 0x1p-21 * std::abs(b.value * std::log2(std::abs(a.value) + 1e-300))));
      },
      x, y);
}
inline Numbers asNumbers(const Wholes &x) {
  return mapped<Number>([](std::int32_t a) { return number(a, 0, halfUlpOf(a)); }, x);
}

} // namespace kiln::kernels::host

#endif // KILN_KERNELS_ATTENTION_FUNCTIONNUMBERS_H
