//===- Random.h - Random numbers, a function of seed and offset ---------------===//
//
//   auto keep = rand(seed, i) >= p;                 dropout: i, the elements' numbers, any integer tile or scalar
//   auto noise = randn(seed, i);
//   auto [a, b, c, d] = rand4(seed, i);             four numbers an offset, for the price of one
//
// Philox4x32-10 with the seed as key and the offset as counter: a number depends on these two 64-bit integers alone, on
// no layout, tile size, program or target, and kiln::philox (support/Philox.h) gives the same bits on the host.  The
// words are those of Triton's randint4x(seed, offset), for offsets from 0 on; what becomes of them is defined in
// Philox.h.
//
// Seeds are Scalar<i64>, Scalar<u64> or C++ integers.  Offsets are 32 or 64 bits wide and count as 64-bit numbers, so
// that i32 and i64 of one value give the same; each number wants an offset of its own.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_RANDOM_H
#define KILN_LANGUAGE_RANDOM_H

#include "Kernel.h"
#include "Math.h"
#include "Shapes.h"

#include "support/Philox.h"

#include <array>
#include <string>

namespace kiln::language {
namespace detail {

/// A value of another element type, a tile where V is one.
template <Element T, typename V> using As = std::conditional_t<isTile<V>(), Tile<T>, Scalar<T>>;

template <typename S>
concept SeedNumber = (std::integral<S> && !std::same_as<S, bool>) ||
                     (Numeric<S> && !isTile<S>() && IntegerElement<typename TagOf<S>::Type> &&
                      bitsOf(elementOf<typename TagOf<S>::Type>) == 64);
template <typename V>
concept OffsetNumber =
    Numeric<V> && IntegerElement<typename TagOf<V>::Type> && bitsOf(elementOf<typename TagOf<V>::Type>) >= 32;

/// philox::HostArithmetic, recorded.
struct RecordedArithmetic {
  template <typename W> static std::pair<W, W> product(const W &a, std::uint32_t b) {
    const As<u64, W> wide = language::cast<u64>(a) * b;
    return {language::cast<u32>(wide), language::cast<u32>(wide >> 32)};
  }
  static auto number(const auto &x) { return language::cast<f32>(x); }
  static auto asSigned(const auto &x) { return language::bitcast<i32>(x); }
  static auto asWord(const auto &x) { return language::bitcast<u32>(x); }
  static auto bits(const auto &x) { return language::bitcast<u32>(x); }
  static auto fromBits(const auto &x) { return language::bitcast<f32>(x); }
  static auto fma(const auto &a, const auto &b, const auto &c) { return language::fma(a, b, c); }
  static auto root(const auto &x) { return language::sqrt(x, precise); }
  static auto choose(const auto &c, const auto &a, const auto &b) { return language::select(c, a, b); }
};

template <SeedNumber S> Scalar<u64> seedOf(const S &seed) {
  if constexpr (Value<S>)
    return language::cast<u64>(seed);
  else
    return language::constant<u64>(static_cast<std::uint64_t>(seed));
}
template <typename V> As<u32, V> noneOf(const V &like) {
  if constexpr (isTile<V>())
    return zeros<u32>(like.shape());
  else
    return language::constant<u32>(0);
}
/// The offset's words; a negative one goes on with ones.
template <typename V> std::array<As<u32, V>, 4> counterOf(const V &offset) {
  using T = typename TagOf<V>::Type;
  const auto zero = noneOf(offset);
  if constexpr (bitsOf(elementOf<T>) == 64)
    return {language::cast<u32>(offset), language::cast<u32>(offset >> 32), zero, zero};
  else
    return {language::cast<u32>(offset), isUnsigned(elementOf<T>) ? zero : language::cast<u32>(offset >> 31), zero,
            zero};
}

/// Rounded one by one, and recorded at the caller's line.
struct RandomScope {
  explicit RandomScope(Location loc) : scope(loc) {}
  LocationScope scope;
  NoContraction single;
};
} // namespace detail

/// Philox4x32-10 itself: four words of a counter of four words and a key of two.
template <typename W>
  requires std::same_as<W, Tile<u32>> || std::same_as<W, Scalar<u32>>
std::array<W, 4> philox4x32(const std::array<W, 4> &counter, const std::array<Scalar<u32>, 2> &key,
                            Location loc = Location::current()) {
  const LocationScope scope(loc);
  return philox::rounds<detail::RecordedArithmetic>(counter, key);
}

/// Four times 32 random bits of each offset.
template <detail::SeedNumber S, detail::OffsetNumber V>
std::array<detail::As<u32, V>, 4> randbits4(const S &seed, const V &offsets, Location loc = Location::current()) {
  const LocationScope scope(loc);
  const Scalar<u64> key = detail::seedOf(seed);
  return language::philox4x32(detail::counterOf(static_cast<const detail::Plain<V> &>(offsets)),
                              {language::cast<u32>(key), language::cast<u32>(key >> 32)}, loc);
}
/// Uniform in [0, 1), multiples of 2^-24.
template <detail::SeedNumber S, detail::OffsetNumber V>
std::array<detail::As<f32, V>, 4> rand4(const S &seed, const V &offsets, Location loc = Location::current()) {
  const detail::RandomScope scope(loc);
  const auto w = randbits4(seed, offsets, loc);
  using A = detail::RecordedArithmetic;
  return {philox::uniform<A>(w[0]), philox::uniform<A>(w[1]), philox::uniform<A>(w[2]), philox::uniform<A>(w[3])};
}
/// Normal, of mean 0 and variance 1; at most 6.76 in size.
template <detail::SeedNumber S, detail::OffsetNumber V>
std::array<detail::As<f32, V>, 4> randn4(const S &seed, const V &offsets, Location loc = Location::current()) {
  const detail::RandomScope scope(loc);
  const auto w = randbits4(seed, offsets, loc);
  const auto first = philox::normals<detail::RecordedArithmetic>(w[0], w[1]),
             second = philox::normals<detail::RecordedArithmetic>(w[2], w[3]);
  return {first[0], first[1], second[0], second[1]};
}
/// Integers low .. high - 1, C++ numbers that an i32 holds.
template <detail::SeedNumber S, detail::OffsetNumber V>
std::array<detail::As<i32, V>, 4> randint4(const S &seed, const V &offsets, std::int64_t low, std::int64_t high,
                                           Location loc = Location::current()) {
  const detail::RandomScope scope(loc);
  if (low >= high || low < INT32_MIN || high - 1 > INT32_MAX || high - low > UINT32_MAX)
    detail::refuse("randint", "no i32 is one of " + std::to_string(low) + " .. " + std::to_string(high) + " - 1",
                   "give bounds with low < high, between -2147483648 and 2147483648, at most 4294967295 apart", loc);
  const auto w = randbits4(seed, offsets, loc);
  const auto of = [&](const auto &word) {
    return philox::integer<detail::RecordedArithmetic>(word, static_cast<std::int32_t>(low),
                                                       static_cast<std::uint32_t>(high - low));
  };
  return {of(w[0]), of(w[1]), of(w[2]), of(w[3])};
}

/// The first of rand4, randn4, randint4.
template <detail::SeedNumber S, detail::OffsetNumber V>
detail::As<f32, V> rand(const S &seed, const V &offsets, Location loc = Location::current()) {
  return rand4(seed, offsets, loc)[0];
}
template <detail::SeedNumber S, detail::OffsetNumber V>
detail::As<f32, V> randn(const S &seed, const V &offsets, Location loc = Location::current()) {
  return randn4(seed, offsets, loc)[0];
}
template <detail::SeedNumber S, detail::OffsetNumber V>
detail::As<i32, V> randint(const S &seed, const V &offsets, std::int64_t low, std::int64_t high,
                           Location loc = Location::current()) {
  return randint4(seed, offsets, low, high, loc)[0];
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_RANDOM_H
