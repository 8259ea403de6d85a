//===- Types.h - Element types of the front end, and shapes ----------------===//
//
// A tag type for each element type of the tile dialect (`f32`, `i1`, ..), and concepts over the tags.  The unsigned
// tags record the same signless types as the signed ones with unsigned operations (division, comparison, conversion,
// shifts to the right, min and max).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_TYPES_H
#define KILN_LANGUAGE_TYPES_H

#include "support/DType.h"

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kiln::language {

using kiln::DType;

// The tags.
struct f16 {};
struct bf16 {};
struct f32 {};
struct f64 {};
struct f8e4m3 {};
struct f8e5m2 {};
struct i1 {}; ///< a mask
struct i8 {};
struct i16 {};
struct i32 {};
struct i64 {};
struct u8 {};
struct u16 {};
struct u32 {};
struct u64 {};

namespace detail {
template <typename T> struct ElementOf;
#define KILN_TAG(tag, value)                                                                                           \
  template <> struct ElementOf<tag> {                                                                                  \
    static constexpr DType value_ = DType::value;                                                                      \
  };
KILN_TAG(f16, F16)
KILN_TAG(bf16, BF16)
KILN_TAG(f32, F32)
KILN_TAG(f64, F64)
KILN_TAG(f8e4m3, F8E4M3)
KILN_TAG(f8e5m2, F8E5M2)
KILN_TAG(i1, I1)
KILN_TAG(i8, I8)
KILN_TAG(i16, I16)
KILN_TAG(i32, I32)
KILN_TAG(i64, I64)
KILN_TAG(u8, U8)
KILN_TAG(u16, U16)
KILN_TAG(u32, U32)
KILN_TAG(u64, U64)
#undef KILN_TAG
} // namespace detail

/// Any tag.
template <typename T>
concept Element = requires { detail::ElementOf<T>::value_; };

template <Element T> inline constexpr DType elementOf = detail::ElementOf<T>::value_;

/// 8-bit floats are storage: they convert, and do no arithmetic.
template <typename T>
concept FloatElement = Element<T> && isFloat(elementOf<T>) && bitsOf(elementOf<T>) > 8;
template <typename T>
concept IntegerElement = Element<T> && isInteger(elementOf<T>);
/// What + - * / take.
template <typename T>
concept NumberElement = FloatElement<T> || IntegerElement<T>;
/// What & | ^ ~ take.
template <typename T>
concept BitsElement = IntegerElement<T> || std::same_as<T, i1>;
/// What counts: loops, offsets, coordinates.
template <typename T>
concept IndexElement = std::same_as<T, i32> || std::same_as<T, i64>;

/// Extents of a tile.  Each is m * 2^k; the odd parts multiply to at most 15, the powers of two to at most 2^20.
class Shape {
public:
  static constexpr unsigned maxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    for (std::int64_t e : extents)
      append(e);
  }

  unsigned rank() const { return count; }
  std::int64_t operator[](unsigned d) const { return d < count ? dims[d] : 1; }
  std::int64_t elements() const;
  bool operator==(const Shape &other) const {
    if (count != other.count)
      return false;
    for (unsigned d = 0; d < count; ++d)
      if (dims[d] != other.dims[d])
        return false;
    return true;
  }

  /// A ninth extent is dropped and remembered: problem() says so.
  void append(std::int64_t extent) {
    if (count == maxRank)
      tooMany = true;
    else
      dims[count++] = extent;
  }
  void set(unsigned d, std::int64_t extent) { dims[d] = extent; }
  Shape without(unsigned dim) const;
  Shape with(unsigned dim, std::int64_t extent) const;

  /// "[64, 32]".
  std::string toString() const;
  /// Why no tile has this shape; empty if one may.
  std::string problem() const;

private:
  std::array<std::int64_t, maxRank> dims = {};
  std::uint8_t count = 0;
  bool tooMany = false;
};

/// A string as a template argument.
template <std::size_t N> struct Name {
  consteval Name(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
  constexpr bool isIdentifier() const {
    for (std::size_t i = 0; i + 1 < N; ++i) {
      const char c = text[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i && c >= '0' && c <= '9')))
        return false;
    }
    return N > 1;
  }
  char text[N] = {};
};

} // namespace kiln::language

#endif // KILN_LANGUAGE_TYPES_H
