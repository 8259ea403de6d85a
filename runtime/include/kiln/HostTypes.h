//===- HostTypes.h - The small floats as C++ types, and C++ types as DType ===//
//
// `float16`, `bfloat16`, `float8_e4m3` and `float8_e5m2` hold one element as it lies in device memory.  They are
// trivially copyable and convert: from float and double explicitly, rounding to nearest even once (runtime/io/Numbers.h
// says what becomes of numbers out of range), to float implicitly and exactly.  So arithmetic is done in float.
//
// `dtypeOf<T>` is the element type of a C++ type; a `HostElement` has one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_HOSTTYPES_H
#define KILN_HOSTTYPES_H

#include "runtime/io/DType.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace kiln {

template <const FloatFormat &format> class SmallFloat {
public:
  using Bits = std::conditional_t<format.bits() == 8, std::uint8_t, std::uint16_t>;

  SmallFloat() = default;
  explicit SmallFloat(double value) : code(static_cast<Bits>(encodeFloat(value, format))) {}
  static constexpr SmallFloat fromBits(Bits bits) {
    SmallFloat out{};
    out.code = bits;
    return out;
  }
  constexpr Bits bits() const { return code; }
  operator float() const { return static_cast<float>(decodeFloat(code, format)); }

private:
  Bits code;
};

using float16 = SmallFloat<formatF16>;
using bfloat16 = SmallFloat<formatBf16>;
using float8_e4m3 = SmallFloat<formatE4m3>;
using float8_e5m2 = SmallFloat<formatE5m2>;

namespace detail {
template <typename T> struct DTypeOf;
#define KILN_HOST_TYPE(cpp, dtype)                                                                                     \
  template <> struct DTypeOf<cpp> {                                                                                    \
    static constexpr DType value = DType::dtype;                                                                       \
  };
KILN_HOST_TYPE(float, F32)
KILN_HOST_TYPE(double, F64)
KILN_HOST_TYPE(float16, F16)
KILN_HOST_TYPE(bfloat16, BF16)
KILN_HOST_TYPE(float8_e4m3, F8E4M3)
KILN_HOST_TYPE(float8_e5m2, F8E5M2)
#undef KILN_HOST_TYPE
/// By width: `long` and `long long` are different types of one width.  No bool and no characters: a std::vector<bool>
/// has no elements in memory.
template <typename T>
  requires std::integral<T> && (!std::same_as<T, bool>) && (!std::same_as<T, char>)
struct DTypeOf<T> {
  static constexpr DType value = std::is_signed_v<T> ? (sizeof(T) == 1   ? DType::I8
                                                        : sizeof(T) == 2 ? DType::I16
                                                        : sizeof(T) == 4 ? DType::I32
                                                                         : DType::I64)
                                                     : (sizeof(T) == 1   ? DType::U8
                                                        : sizeof(T) == 2 ? DType::U16
                                                        : sizeof(T) == 4 ? DType::U32
                                                                         : DType::U64);
};
} // namespace detail

/// A C++ type that elements of a tensor may have.
template <typename T>
concept HostElement = std::is_trivially_copyable_v<T> && requires { detail::DTypeOf<T>::value; };

template <HostElement T> inline constexpr DType dtypeOf = detail::DTypeOf<T>::value;

/// Floats whose values a float or a double can be rounded to, or read from.
template <typename T>
concept HostFloat = HostElement<T> && !std::integral<T>;

} // namespace kiln

#endif // KILN_HOSTTYPES_H
