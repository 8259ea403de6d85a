// The matrix products of MatrixModel.h, 16 rows of one column at a time.
//
// Addends of F + 2 bits are integers in units of 2^(E - F): eight of them and C fit in 32 bits, longer sums go on in
// f64, which holds them exactly and scales them without rounding.
#include "runtime/device/emulator/insn/MatrixTile.h"

#include "runtime/device/emulator/insn/Families.h"

#include "support/Text.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"
#include "runtime/device/emulator/insn/Fragments.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

//===--- decoding --------------------------------------------------------===//

/// So small that a product with the largest number stays below 2^-126, the least that E can be.
constexpr std::int32_t nothing = -512;
/// The exponent of a C that is zero.
constexpr std::int32_t leastExponent = -126;

/// A binary format: sign, exponent and fraction from the top bit of `Bits` down, `Skip` bits below that do not count.
template <unsigned Bits, unsigned Exponent, unsigned Fraction, bool HasInfinity = true> struct Format {
  static constexpr unsigned bits = Bits, fraction = Fraction, skip = Bits - 1 - Exponent - Fraction;
  static constexpr std::uint32_t exponentMask = (1u << Exponent) - 1, fractionMask = (1u << Fraction) - 1;
  static constexpr std::int32_t bias = (1 << (Exponent - 1)) - 1;
  static constexpr bool hasInfinity = HasInfinity;
};
using FormatF32 = Format<32, 8, 23>;
using FormatTF32 = Format<32, 8, 10>;
using FormatF16 = Format<16, 5, 10>;
using FormatBF16 = Format<16, 8, 7>;
using FormatE4M3 = Format<8, 4, 3, false>;
/// Of which no value is subnormal.
struct FormatHalfE4M3 : FormatE4M3 {};
using FormatE5M2 = Format<8, 5, 2>;

struct Decoded {
  Floats significand; ///< 0 where it is not finite
  Ints exponent;
  Floats raw;   ///< the significand, infinite or NaN where the element is
  Ints special; ///< -1 where it is not finite
};

/// Elements with exponent `zero` where they are zero or not finite.
template <typename F> [[gnu::always_inline]] inline Decoded decode(Words bits, std::int32_t zero) {
  const Words field = bits >> (F::skip + F::fraction) & F::exponentMask;
  const Words fraction = bits >> F::skip & F::fractionMask;
  const Words sign = (bits >> (F::bits - 1) & 1) << 31;
  const Ints normal = field != 0;
  const Words digits = fraction | (bitsAs<Words>(normal) & (1u << F::fraction));
  const Floats magnitude =
      __builtin_convertvector(bitsAs<Ints>(digits), Floats) * (1.0f / static_cast<float>(1u << F::fraction));
  const Ints top = field == F::exponentMask;
  Decoded d;
  const Ints nan = F::hasInfinity ? top & (fraction != 0) : top & (fraction == F::fractionMask);
  d.special = F::hasInfinity ? top : nan;
  const Words notFinite = 0x7f800000u | (bitsAs<Words>(nan) & 0x00400000u);
  d.significand = bitsAs<Floats>((bitsAs<Words>(magnitude) | sign) & ~bitsAs<Words>(d.special));
  d.raw = bitsAs<Floats>(choose(d.special, notFinite, bitsAs<Words>(magnitude)) | sign);
  const Ints exponent = __builtin_elementwise_max(bitsAs<Ints>(field), Ints(1)) - F::bias;
  d.exponent = choose(d.special | (digits == 0), Ints(zero), exponent);
  if constexpr (std::is_same_v<F, FormatHalfE4M3>) {
    const Ints subnormal = (field == 0) & (fraction != 0);
    const Ints lead = bitsAs<Ints>(bitsAs<Words>(d.raw) >> 23 & 0xff) - 127;
    const Words one = (bitsAs<Words>(d.raw) & 0x807fffffu) | 0x3f800000u;
    d.raw = choose(subnormal, bitsAs<Floats>(one), d.raw);
    d.significand = choose(subnormal, bitsAs<Floats>(one), d.significand);
    d.exponent += lead & subnormal;
  }
  return d;
}

template <typename F>
bool decodeAll(MatrixMode mode, const U32 *raw, U32 count, U32 flip, float *significand, std::int32_t *exponent) {
  Ints special = 0;
  for (U32 i = 0; i < count; i += width) {
    Decoded d = decode<F>(loadVector<Words>(raw + i) ^ flip, nothing);
    special |= d.special;
    if (mode == MatrixMode::Fast) {
      const Ints scale = (__builtin_elementwise_max(d.exponent, Ints(leastExponent)) + 127) << 23;
      storeVector(significand + i, d.raw * bitsAs<Floats>(scale));
      continue;
    }
    storeVector(significand + i, d.raw);
    storeVector(exponent + i, d.exponent);
  }
  return anyLane(special);
}

/// Integers of `Bits` bits, sign-extended if `Signed`.
template <unsigned Bits, bool Signed> bool decodeIntegers(const U32 *raw, U32 count, float *value) {
  for (U32 i = 0; i < count; i += width) {
    const Ints high = bitsAs<Ints>(loadVector<Words>(raw + i) << (32 - Bits));
    const Ints v = Signed ? high >> (32 - Bits) : bitsAs<Ints>(bitsAs<Words>(high) >> (32 - Bits));
    storeVector(value + i, __builtin_convertvector(v, Floats));
  }
  return false;
}

//===--- sums ------------------------------------------------------------===//

/// 2^(e - base) where that matters, 0 where it is far below 1.  `base` has the bias of the f32 exponent taken off.
[[gnu::always_inline]] inline Floats scaleOf(Ints e, Ints base) {
  return bitsAs<Floats>(__builtin_elementwise_max(e - base, Ints(0)) << 23);
}

struct BlockSum {
  Doubles value;
  Floats verdict; ///< Special: infinite or NaN where the result is
};

/// The truncated sum of C and the products k in [begin, end) for 16 rows and one column; the operands point there.
template <bool Special>
[[gnu::always_inline]] inline BlockSum sumBlock(const MatrixOperand &a, const MatrixOperand &b, U32 begin, U32 end,
                                                unsigned fraction, const Decoded &c) {
  Ints e = c.exponent;
  for (U32 k = begin; k < end; ++k)
    e = __builtin_elementwise_max(e, loadVector<Ints>(a.exponent + k * a.stride) + b.exponent[k * b.stride]);
  const Ints base = e - static_cast<std::int32_t>(fraction + 127);
  Ints part = __builtin_convertvector(c.significand * scaleOf(c.exponent, base), Ints);
  BlockSum s;
  s.value = 0.0;
  s.verdict = c.raw;
  for (U32 k = begin; k < end;) {
    const U32 stop = k + 8 < end ? k + 8 : end;
#pragma clang loop unroll(full)
    for (; k < stop; ++k) {
      Floats p = loadVector<Floats>(a.significand + k * a.stride) * b.significand[k * b.stride];
      if constexpr (Special) {
        s.verdict += p;
        p = choose((bitsAs<Words>(p) & 0x7f800000u) == 0x7f800000u, Floats(0.0f), p);
      }
      const Ints exponent = loadVector<Ints>(a.exponent + k * a.stride) + b.exponent[k * b.stride];
      part += __builtin_convertvector(p * scaleOf(exponent, base), Ints);
    }
    s.value += __builtin_convertvector(part, Doubles);
    part = 0;
  }
  const Longs unit = __builtin_convertvector(e - static_cast<std::int32_t>(fraction) + 1023, Longs) << 52;
  s.value *= bitsAs<Doubles>(unit);
  return s;
}

/// A sum that comes out as zero is +0, also where it was below zero.
[[gnu::always_inline]] inline Words signedUnlessZero(Words magnitude, Words sign) {
  return magnitude | (sign & bitsAs<Words>(magnitude != 0));
}

/// An exact value as f32, truncated to `resultFraction` bits.
[[gnu::always_inline]] inline Words truncated(Doubles x, unsigned resultFraction) {
  const Doubles magnitude = bitsAs<Doubles>(bitsAs<Longs>(x) & 0x7fffffffffffffffll);
  const Floats near = __builtin_convertvector(magnitude, Floats);
  const Longs above = (__builtin_convertvector(near, Doubles) > magnitude) & (magnitude < 0x1p128);
  const Ints less = __builtin_convertvector(above, Ints); // -1 where rounding went up
  const Words sign = bitsAs<Words>(__builtin_convertvector(bitsAs<Longs>(x) >> 63, Ints)) & 0x80000000u;
  const Words bits = bitsAs<Words>(bitsAs<Ints>(near) + less) & (~0u << (23 - resultFraction));
  return signedUnlessZero(bits, sign);
}

/// An exact value as f16, rounded to nearest even.
template <bool KeepZero = false> [[gnu::always_inline]] inline Words nearestHalf(Doubles x) {
  const Doubles magnitude = bitsAs<Doubles>(bitsAs<Longs>(x) & 0x7fffffffffffffffll);
  // Adding 2^(52 - 10) times the leading power of two, at least 2^-14, rounds to f16's last bit.
  const Longs leading = __builtin_elementwise_max(bitsAs<Longs>(magnitude) >> 52, Longs(1023 - 14));
  const Doubles big = bitsAs<Doubles>((leading + 42) << 52);
  const Floats rounded = __builtin_convertvector((magnitude + big) - big, Floats);
  const Floats finite = __builtin_elementwise_min(rounded, Floats(65536.0f));
  const Words normal = (bitsAs<Words>(finite) >> 13) - (112u << 10);
  const Words subnormal =
      bitsAs<Words>(__builtin_convertvector(__builtin_elementwise_min(finite, Floats(0x1p-14f)) * 0x1p24f, Ints));
  const Words sign = bitsAs<Words>(__builtin_convertvector(bitsAs<Longs>(x) >> 63, Ints)) & 0x8000u;
  const Words bits = choose(finite < 0x1p-14f, subnormal, normal);
  return KeepZero ? bits | sign : signedUnlessZero(bits, sign);
}

template <MatrixType D> [[gnu::always_inline]] inline Words resultBits(Doubles x, unsigned resultFraction) {
  return D == MatrixType::F16 ? nearestHalf(x) : truncated(x, resultFraction);
}

/// What a sum with an infinite or NaN addend gives.
template <MatrixType D> [[gnu::always_inline]] inline Words specialBits(Floats verdict, Words bits) {
  const Words v = bitsAs<Words>(verdict);
  const Words infinity = D == MatrixType::F16 ? (v >> 16 & 0x8000u) | 0x7c00u : v;
  const Words nan = D == MatrixType::F16 ? U32(canonicalNan16) : canonicalNan32;
  const Ints notFinite = (v & 0x7f800000u) == 0x7f800000u;
  return choose(notFinite, choose((v & 0x7fffffffu) > 0x7f800000u, nan, infinity), bits);
}

template <MatrixType C> [[gnu::always_inline]] inline Floats addendValue(Words bits);

/// The result of the unit plus C, as other instructions add.
template <MatrixType C, MatrixType D> [[gnu::always_inline]] inline Words addedLast(Words result, Words addend) {
  const Floats a = addendValue<D>(result), c = addendValue<C>(addend), sum = a + c;
  if constexpr (D == MatrixType::F16)
    return specialBits<D>(sum, nearestHalf(__builtin_convertvector(a, Doubles) + __builtin_convertvector(c, Doubles)));
  else
    return specialBits<D>(sum, bitsAs<Words>(sum));
}

template <MatrixType T> [[gnu::always_inline]] inline Decoded decodeAddend(Words bits) {
  if constexpr (T == MatrixType::F16)
    return decode<FormatF16>(bits, leastExponent);
  else
    return decode<FormatF32>(bits, leastExponent);
}

template <MatrixType C, MatrixType D>
void multiplyExact(const MatrixModel &m, const MatrixOperand &a, const MatrixOperand &b, U32 *tile, U32 stride,
                   U32 rows, U32 columns, U32 k) {
  const bool special = a.special || b.special;
  for (U32 row = 0; row < rows; row += width)
    for (U32 column = 0; column < columns; ++column) {
      MatrixOperand x = a, y = b;
      x.significand += row;
      x.exponent += row;
      y.significand += column;
      y.exponent += column;
      U32 *at = tile + column * stride + row;
      const Words addend = loadVector<Words>(at);
      Words bits = m.addsLast ? Words(0u) : addend;
      for (U32 begin = 0; begin < k; begin += m.block) {
        const Decoded c = begin == 0 ? decodeAddend<C>(bits) : decodeAddend<D>(bits);
        if (special || anyLane(c.special)) [[unlikely]] {
          const BlockSum s = sumBlock<true>(x, y, begin, begin + m.block, m.fraction, c);
          bits = specialBits<D>(s.verdict, resultBits<D>(s.value, m.resultFraction));
        } else {
          bits = resultBits<D>(sumBlock<false>(x, y, begin, begin + m.block, m.fraction, c).value, m.resultFraction);
        }
      }
      storeVector(at, m.addsLast ? addedLast<C, D>(bits, addend) : bits);
    }
}

//===--- fast mode and integers ------------------------------------------===//

[[gnu::always_inline]] inline Floats fused(Floats a, float b, Floats c) {
#if KILN_LEVEL_HAS_FMA
  return __builtin_elementwise_fma(a, Floats(b), c);
#else
  for (unsigned i = 0; i < width; ++i)
    c[i] = fusedFloat(a[i], b, c[i]);
  return c;
#endif
}

template <MatrixType C> [[gnu::always_inline]] inline Floats addendValue(Words bits) {
  if constexpr (C == MatrixType::F16) {
    const Decoded c = decode<FormatF16>(bits, 0);
    return c.raw * bitsAs<Floats>((c.exponent + 127) << 23);
  } else {
    return bitsAs<Floats>(bits);
  }
}

template <MatrixType C, MatrixType D, unsigned Columns>
[[gnu::always_inline]] inline void multiplyFastColumns(const float *a, U32 strideA, const float *b, U32 strideB,
                                                       U32 *tile, U32 stride, U32 k) {
  Floats sum[Columns];
  for (unsigned j = 0; j < Columns; ++j)
    sum[j] = addendValue<C>(loadVector<Words>(tile + j * stride));
  for (U32 i = 0; i < k; ++i) {
    const Floats x = loadVector<Floats>(a + i * strideA);
    for (unsigned j = 0; j < Columns; ++j)
      sum[j] = fused(x, b[i * strideB + j], sum[j]);
  }
  for (unsigned j = 0; j < Columns; ++j) {
    const Words bits =
        D == MatrixType::F16 ? nearestHalf<true>(__builtin_convertvector(sum[j], Doubles)) : bitsAs<Words>(sum[j]);
    storeVector(tile + j * stride, specialBits<D>(sum[j], bits));
  }
}

template <MatrixType C, MatrixType D>
void multiplyFast(const MatrixModel &, const MatrixOperand &a, const MatrixOperand &b, U32 *tile, U32 stride, U32 rows,
                  U32 columns, U32 k) {
  constexpr unsigned together = 4;
  for (U32 row = 0; row < rows; row += width) {
    U32 column = 0;
    for (; column + together <= columns; column += together)
      multiplyFastColumns<C, D, together>(a.significand + row, a.stride, b.significand + column, b.stride,
                                          tile + column * stride + row, stride, k);
    for (; column < columns; ++column)
      multiplyFastColumns<C, D, 1>(a.significand + row, a.stride, b.significand + column, b.stride,
                                   tile + column * stride + row, stride, k);
  }
}

/// Products of integers of up to 8 bits: up to 256 of them are exact in f32.
void multiplyIntegers(const MatrixModel &m, const MatrixOperand &a, const MatrixOperand &b, U32 *tile, U32 stride,
                      U32 rows, U32 columns, U32 k) {
  for (U32 row = 0; row < rows; row += width)
    for (U32 column = 0; column < columns; ++column) {
      Floats sum = 0.0f;
      for (U32 i = 0; i < k; ++i)
        sum += loadVector<Floats>(a.significand + i * a.stride + row) * b.significand[i * b.stride + column];
      U32 *at = tile + column * stride + row;
      const Ints product = __builtin_convertvector(sum, Ints), c = loadVector<Ints>(at);
      const Ints wrapped = bitsAs<Ints>(bitsAs<Words>(c) + bitsAs<Words>(product));
      storeVector(at, m.saturate ? __builtin_elementwise_add_sat(c, product) : wrapped);
    }
}

template <MatrixType C, MatrixType D>
void (*multiplier(MatrixMode mode))(const MatrixModel &, const MatrixOperand &, const MatrixOperand &, U32 *, U32, U32,
                                    U32, U32) {
  return mode == MatrixMode::Fast ? &multiplyFast<C, D> : &multiplyExact<C, D>;
}

} // namespace

bool decodeElements(MatrixType type, MatrixMode mode, const U32 *raw, U32 count, bool negate, float *significand,
                    std::int32_t *exponent) {
  const U32 flip = negate ? 1u << (matrixTypeBits(type) - 1) : 0;
  switch (type) {
  case MatrixType::F16:
    return decodeAll<FormatF16>(mode, raw, count, flip, significand, exponent);
  case MatrixType::BF16:
    return decodeAll<FormatBF16>(mode, raw, count, flip, significand, exponent);
  case MatrixType::TF32:
    return decodeAll<FormatTF32>(mode, raw, count, flip, significand, exponent);
  case MatrixType::E4M3:
    return decodeAll<FormatE4M3>(mode, raw, count, flip, significand, exponent);
  case MatrixType::HalfE4M3:
    return decodeAll<FormatHalfE4M3>(mode, raw, count, flip, significand, exponent);
  case MatrixType::E5M2:
    return decodeAll<FormatE5M2>(mode, raw, count, flip, significand, exponent);
  case MatrixType::S8:
    return decodeIntegers<8, true>(raw, count, significand);
  case MatrixType::U8:
    return decodeIntegers<8, false>(raw, count, significand);
  case MatrixType::S4:
    return decodeIntegers<4, true>(raw, count, significand);
  case MatrixType::U4:
    return decodeIntegers<4, false>(raw, count, significand);
  case MatrixType::F32:
  case MatrixType::S32:
    break; // types of C and D
  }
  return false;
}

void multiplyTile(const MatrixModel &model, MatrixMode mode, const MatrixOperand &a, const MatrixOperand &b, U32 *tile,
                  U32 stride, U32 rows, U32 columns, U32 k) {
  using enum MatrixType;
  if (isIntegerMatrix(model.a))
    return multiplyIntegers(model, a, b, tile, stride, rows, columns, k);
  const auto multiply = model.c == F16 ? (model.d == F16 ? multiplier<F16, F16>(mode) : multiplier<F16, F32>(mode))
                                       : (model.d == F16 ? multiplier<F32, F16>(mode) : multiplier<F32, F32>(mode));
  multiply(model, a, b, tile, stride, rows, columns, k);
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
