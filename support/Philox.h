//===- Philox.h - The stream of random numbers of kernels, on the host ------===//
//
//   const float x = kiln::philox::rand(seed, offset);     the number that rand(seed, offsets) of a kernel has there
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011): four words of 32
// bits are a function of a counter and a key, so that a number depends on its seed and offset and on nothing else.  The
// key is the seed, the counter the offset, low words first, the counter's upper half 0.
//
// Invariants.  The stream is fixed: what follows gives the same bits for ever.  It is written once, over an
// `Arithmetic`: that of C++ numbers here, that of recorded values in compiler/language/Random.h.  Each step is one IEEE
// operation, and no addition has a product as an operand, so that no compiler can fuse what the other does not.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_PHILOX_H
#define KILN_SUPPORT_PHILOX_H

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::philox {

/// Four words from a counter and a key.
template <typename Arithmetic, typename Word, typename Key>
std::array<Word, 4> rounds(std::array<Word, 4> counter, std::array<Key, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0)
      key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    const auto [low, high] = Arithmetic::product(counter[0], 0xD2511F53u);
    const auto [otherLow, otherHigh] = Arithmetic::product(counter[2], 0xCD9E8D57u);
    counter = {otherHigh ^ counter[1] ^ key[0], otherLow, high ^ counter[3] ^ key[1], low};
  }
  return counter;
}

/// In [0, 1): the upper 24 bits, all of which an f32 holds.
template <typename Arithmetic, typename Word> auto uniform(const Word &word) {
  return Arithmetic::number(word >> 8) * 0x1p-24f;
}

/// low, low + 1, .. below low + count: the upper half of word * count.  Their shares differ by at most 2^-32.
template <typename Arithmetic, typename Word> auto integer(const Word &word, std::int32_t low, std::uint32_t count) {
  return Arithmetic::asSigned(Arithmetic::product(word, count).second + static_cast<std::uint32_t>(low));
}

/// ln(x) of a normal x: x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); the polynomial is that of Cephes' logf.
template <typename Arithmetic, typename Float> Float naturalLog(const Float &x) {
  using A = Arithmetic;
  const auto bits = A::bits(x);
  const auto exponent = A::asSigned(bits - 0x3F3504F3u) >> 23;
  const Float e = A::number(exponent), f = A::fromBits(bits - (A::asWord(exponent) << 23)) - 1.0f;
  Float p = A::fma(f, 7.0376836292E-2f, -1.1514610310E-1f);
  for (const float c : {1.1676998740E-1f, -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f, 2.0000714765E-1f,
                        -2.4999993993E-1f, 3.3333331174E-1f})
    p = A::fma(p, f, c);
  const Float square = f * f, cube = square * f;
  const Float rest = A::fma(square, -0.5f, A::fma(e, -2.12194440e-4f, Float(cube * p)));
  return A::fma(e, 0.693359375f, Float(f + rest)); // ln 2 in two parts, the first of few bits
}

/// Two independent normal numbers (Box and Muller): a radius from the first word, an angle from the second.
template <typename Arithmetic, typename Word> auto normals(const Word &first, const Word &second) {
  using A = Arithmetic;
  // In (0, 1], down to 2^-33: a radius of up to 6.76.
  const auto u = A::fma(A::number(first), 0x1p-32f, 0x1p-33f);
  using Float = std::remove_const_t<decltype(u)>;
  const Float radius = A::root(naturalLog<A>(u) * -2.0f);
  // The nearest quarter of a turn, and the angle from there, at most pi / 4; sine and cosine as Cephes' sinf and cosf.
  const Word quarter = (second + 0x20000000u) >> 30;
  const Float t = A::number(A::asSigned(second - (quarter << 30))) * 0x1.921fb6p-30f;
  const Float square = t * t;
  Float sine = A::fma(square, -1.9515295891E-4f, 8.3321608736E-3f);
  sine = A::fma(A::fma(sine, square, -1.6666654611E-1f), Float(square * t), t);
  Float cosine = A::fma(square, 2.443315711809948E-5f, -1.388731625493765E-3f);
  cosine = A::fma(A::fma(cosine, square, 4.166664568298827E-2f), Float(square * square), A::fma(square, -0.5f, 1.0f));
  const auto odd = (quarter & 1u) == 1u;
  const auto signedBy = [](const Float &x, const Word &two) { return A::fromBits(A::bits(x) ^ (two << 30)); };
  return std::array<Float, 2>{radius * signedBy(A::choose(odd, sine, cosine), (quarter + 1u) & 2u),
                              radius * signedBy(A::choose(odd, cosine, sine), quarter & 2u)};
}

/// Of C++ numbers.
struct HostArithmetic {
  static std::pair<std::uint32_t, std::uint32_t> product(std::uint32_t a, std::uint32_t b) {
    const std::uint64_t wide = std::uint64_t(a) * b;
    return {static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32)};
  }
  static float number(std::uint32_t x) { return static_cast<float>(x); }
  static float number(std::int32_t x) { return static_cast<float>(x); }
  static std::int32_t asSigned(std::uint32_t x) { return static_cast<std::int32_t>(x); }
  static std::uint32_t asWord(std::int32_t x) { return static_cast<std::uint32_t>(x); }
  static std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
  static float fromBits(std::uint32_t x) { return std::bit_cast<float>(x); }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float root(float x) { return std::sqrt(x); }
  static float choose(bool condition, float a, float b) { return condition ? a : b; }
};

/// The four words of an offset.
inline std::array<std::uint32_t, 4> words(std::uint64_t seed, std::uint64_t offset) {
  return rounds<HostArithmetic>(
      std::array{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset >> 32), 0u, 0u},
      std::array{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}
/// In [0, 1), a multiple of 2^-24.
inline float rand(std::uint64_t seed, std::uint64_t offset) {
  return uniform<HostArithmetic>(words(seed, offset)[0]);
}
/// Of mean 0 and variance 1.
inline float randn(std::uint64_t seed, std::uint64_t offset) {
  const auto w = words(seed, offset);
  return normals<HostArithmetic>(w[0], w[1])[0];
}
/// In low .. high - 1; low < high.
inline std::int32_t randint(std::uint64_t seed, std::uint64_t offset, std::int32_t low, std::int32_t high) {
  return integer<HostArithmetic>(words(seed, offset)[0], low,
                                 static_cast<std::uint32_t>(high) - static_cast<std::uint32_t>(low));
}

} // namespace kiln::philox

#endif // KILN_SUPPORT_PHILOX_H
