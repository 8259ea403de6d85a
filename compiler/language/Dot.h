//===- Dot.h - Matrix products ----------------------------------------------===//
//
//   auto c = dot(a, b, c);                     c + a x b; M x K by K x N, or with a leading batch dimension
//   auto e = dot(a, b);                        a x b
//   auto d = dot(x, y, d, Precision::Tf32);    of f32: how the operands are taken
//
// | operands | accumulator |
// |---|---|
// | f16, bf16; f8e4m3 and f8e5m2, also mixed; f32 | f32 |
// | f64 | f64 |
// | i8 | i32 |
//
// Products are exact (Tf32: of the rounded operands); the order of the sums is the same in every run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_DOT_H
#define KILN_LANGUAGE_DOT_H

#include "Value.h"

namespace kiln::language {

/// How a product takes f32 operands: as they are; rounded to tf32 (11 bits of mantissa); as the sum of two such
/// numbers.
enum class Precision : std::uint8_t { Ieee, Tf32, Tf32x3 };

namespace detail {
template <typename A, typename B> struct SumOf;
template <Element T>
  requires std::same_as<T, f16> || std::same_as<T, bf16> || std::same_as<T, f32>
struct SumOf<T, T> {
  using Type = f32;
};
template <> struct SumOf<f64, f64> {
  using Type = f64;
};
template <> struct SumOf<i8, i8> {
  using Type = i32;
};
template <typename A, typename B>
  requires(std::same_as<A, f8e4m3> || std::same_as<A, f8e5m2>) && (std::same_as<B, f8e4m3> || std::same_as<B, f8e5m2>)
struct SumOf<A, B> {
  using Type = f32;
};

/// What a product without an accumulator adds to; shapes that do not fit are refused by the product.
template <Element S, typename A, typename B> Tile<S> zerosOfProduct(const A &a, const B &b, Location loc) {
  Shape shape;
  for (unsigned d = 0; d + 1 < a.rank(); ++d)
    shape.append(a.extent(d));
  shape.append(b.rank() ? b.extent(b.rank() - 1) : 1);
  return Tile<S>(full(shape, Operand::number(Constant(0), elementOf<S>, loc), loc));
}
} // namespace detail

/// Element types that are multiplied with each other, and what their products add up in.
template <typename A, typename B>
concept Multiplied = requires { typename detail::SumOf<A, B>::Type; };
template <typename A, typename B>
  requires Multiplied<A, B>
using Sum = typename detail::SumOf<A, B>::Type;

/// c + a x b.
template <Element A, Element B>
  requires Multiplied<A, B>
Tile<Sum<A, B>> dot(const Tile<A> &a, const Tile<B> &b, const Tile<Sum<A, B>> &c, Location loc = Location::current()) {
  return Tile<Sum<A, B>>(
      detail::dot(detail::operandOf(a, loc), detail::operandOf(b, loc), detail::operandOf(c, loc), "", loc));
}
/// a x b.
template <Element A, Element B>
  requires Multiplied<A, B>
Tile<Sum<A, B>> dot(const Tile<A> &a, const Tile<B> &b, Location loc = Location::current()) {
  return dot(a, b, detail::zerosOfProduct<Sum<A, B>>(a, b, loc), loc);
}
/// a x b for f32 operands, taken as `precision` says.
inline Tile<f32> dot(const Tile<f32> &a, const Tile<f32> &b, Precision precision, Location loc = Location::current());

/// c + a x b for f32 operands, taken as `precision` says.
inline Tile<f32> dot(const Tile<f32> &a, const Tile<f32> &b, const Tile<f32> &c, Precision precision,
                     Location loc = Location::current()) {
  constexpr std::string_view names[] = {"", "tf32", "tf32x3"};
  return Tile<f32>(detail::dot(detail::operandOf(a, loc), detail::operandOf(b, loc), detail::operandOf(c, loc),
                               names[static_cast<unsigned>(precision)], loc));
}
inline Tile<f32> dot(const Tile<f32> &a, const Tile<f32> &b, Precision precision, Location loc) {
  return dot(a, b, detail::zerosOfProduct<f32>(a, b, loc), precision, loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_DOT_H
