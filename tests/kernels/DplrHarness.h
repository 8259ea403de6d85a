//===- DplrHarness.h - Calls of the DPLR delta rule against float64 --------------===//
//
// The specification's tests (S5): random inputs, the root mean square of differences over that of the reference at most
// 0.007 for o and 0.008 for everything else, on every output, no exceptions.  The reference is the recurrence token by
// token and its exact reverse (DplrReferenceTest.cpp).  The workspace is the test's, full of NaNs.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_DPLRHARNESS_H
#define KILN_TESTS_KERNELS_DPLRHARNESS_H

#include "tests/kernels/Bench.h"

namespace kiln::test {

/// Gates of every channel: logsigmoid(N(0, 1)) / norm, some of them zero, none below `lowest`.
struct DplrGates {
  double norm = 1, zeroed = 0;
  double lowest = -1e30, highest = 0; ///< equal: all gates are that
};

struct DplrProblem {
  std::uint64_t batch, tokens, heads, dim, dimV;
  DplrGates gates = {};
  kernels::OptionValues options = {}; ///< scale, chunk_size, lower_bound, safe_gate
  DType dtype = DType::F16;
  std::vector<std::uint64_t> offsets = {}; ///< cu_seqlens; empty: dense
  DType offsetType = DType::I32;
  std::optional<DType> first = DType::F32, last = DType::F32; ///< of initial_state and dht; none: left out
  DType gateType = DType::F32;
  double unit = 1; ///< do and dht are multiplied by it
  std::uint64_t sequences() const { return offsets.empty() ? batch : offsets.size() - 1; }
  Array offsetsArray() const; ///< cu_seqlens
  std::string text() const;
};

class Dplr : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override;
  /// In the default tier each device takes another sample: every `stride`-th case.
  bool chosen(unsigned number, unsigned stride) const;

  /// Every input of the forward and the backward operation.
  kernels::Arrays inputsOf(const DplrProblem &p);
  /// Runs `family` (dplr, dplr_backward; rwkv7 ..) with those of the inputs that it takes, every output asked for.
  kernels::Arrays run(std::string_view family, const kernels::Arrays &inputs, const DplrProblem &p);
  /// Both directions, compared with float64.
  void check(const DplrProblem &p);
  /// `check` of each; in the default tier each target of the emulator takes every fourth, `shortened`.
  void checkRows(const std::vector<DplrProblem> &rows, DplrProblem (*shortened)(DplrProblem));
  /// `check`, gradients from what the forward call of `family` saved.
  void checkSaved(const std::string &family, kernels::Arrays inputs, const DplrProblem &p);
  void compare(std::string_view family, const kernels::Arrays &inputs, const DplrProblem &p,
               const kernels::Arrays &outputs);

  Opened *on = nullptr;
  std::uint64_t seed = 1;
};

/// The inputs that a family takes.
kernels::Arrays inputsFor(const kernels::Family &family, const kernels::Arrays &inputs);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_DPLRHARNESS_H
