//===- MatrixReference.h - Matrix products in float64 with derived bounds --===//
//
// What a matrix instruction may return: products are exact; the sum of a block of products and the accumulator is
// truncated at 2^-F of its largest addend, F fraction bits; the result is truncated to its precision.  Every addend and
// every partial sum is at most sum |a b|, so a bound is a count of truncations times that sum.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_NVCC_MATRIXREFERENCE_H
#define KILN_TESTS_NVCC_MATRIXREFERENCE_H

#include "tests/nvcc/Bench.h"
#include "tests/parity/SoftFloat.h"

namespace kiln::test {

/// Elements as a kernel reads them, and their values.
template <typename T> struct Operand {
  std::vector<T> bits;
  std::vector<double> values;
};

/// Uniform in [-range, range], rounded to the format.
Operand<std::uint16_t> randomHalves(Bench &bench, const softfloat::Format &format, std::size_t count, float range);
Operand<std::uint8_t> randomQuarters(Bench &bench, const softfloat::Format &format, std::size_t count, float range);
/// fp32 of any low bits; the values are rounded to tf32, ties away from zero, as cvt.rna.tf32 does.
Operand<float> randomTf32(Bench &bench, std::size_t count, float range);

/// How the hardware adds up.
struct Accumulation {
  unsigned block;             ///< products that one truncated sum takes, at least: fewer means more truncations
  unsigned fraction = 24;     ///< F
  double precision = 0x1p-23; ///< relative error of one result: fp32, truncated
  double smallest = 0;        ///< absolute error of one result below the normal range
};
inline constexpr Accumulation f32Accumulation{4}; ///< of every mma.sync and wgmma but fp8's
inline constexpr Accumulation f16Accumulation{8, 24, 0x1p-11, 0x1p-25};
inline constexpr Accumulation fp8Accumulation{16, 13, 0x1p-12}; ///< sm_90's wgmma: 13 bits kept, truncated

struct Product {
  std::vector<double> want, bound, magnitude;
};
/// a[m][k] times b, which is [k][n] or, if `bByColumns`, [n][k].  k may end inside a block: the rest counts as zeros.
Product multiply(const std::vector<double> &a, const std::vector<double> &b, int m, int n, int k, bool bByColumns,
                 const Accumulation &accumulation);
/// After the results were rounded to a format of `precision` bits.
void roundedTo(Product &product, unsigned precision);

std::vector<float> toFloats(const softfloat::Format &format, const std::vector<std::uint16_t> &bits);

} // namespace kiln::test

#endif // KILN_TESTS_NVCC_MATRIXREFERENCE_H
