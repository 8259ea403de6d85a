//===- MatmulHarness.h - Matrix products against float64 --------------------------===//
//
// |error| <= half a unit of out's type at the result + (K + splits + 2) 2^-22 sum |a b|, where the sum's bound is 2^-13
// for 8-bit floats (their matrix instructions keep 14 bits) and 2^-9 for tf32's operands.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_MATMULHARNESS_H
#define KILN_TESTS_KERNELS_MATMULHARNESS_H

#include "kernels/matmul/MatmulOperation.h"
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"

#include <random>

namespace kiln::test {

/// Kernels there may multiply by wgmma.
bool multipliesByWarpgroups(const Opened &on);

class Matmul : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override;

  /// In the default tier each device takes another sample: every `stride`-th case.
  bool chosen(unsigned number, unsigned stride) const;

  /// Random numbers.
  Operand operand(DType type, const std::vector<std::int64_t> &shape, const MemoryOrder &order = {});
  Operand output(DType type, const std::vector<std::int64_t> &shape, const MemoryOrder &order = {}) {
    return allocateOutput(*on->device, type, shape, order);
  }

  /// What a caller's epilogue computes, in float64, of the value, the row and column of out, and `other` there; and how
  /// steep it is in the value at most.
  struct Hook {
    kernels::Epilogue recorded;
    std::function<double(double x, std::int64_t row, std::int64_t column, double other)> wanted;
    double steep = 1;
    bool other = false; ///< reads it
  };

  struct Problem {
    DType type, out;
    std::int64_t batch, m, n, k; ///< batch 0: no such dimension
    bool aColumns = false, bColumns = false, outColumns = false;
    std::int64_t pad = 0, around = 0;
    bool bias = false;
    float scale = 1;
    kernels::Activation activation = kernels::Activation::None;
    language::Precision precision = language::Precision::Ieee;
    std::int64_t splits = 1;
    bool deterministic = true;
    Hook hook = {};
    kernels::Tiling tiling = {};
    std::int64_t programs = 0;
    std::string text() const;
  };

  /// Runs the product twice if it is split, which must give the same bits where it says so.
  void check(const Problem &p);

  Opened *on = nullptr;
  std::mt19937_64 random{31};
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_MATMULHARNESS_H
