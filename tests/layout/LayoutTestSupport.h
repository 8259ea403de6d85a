//===- LayoutTestSupport.h - Random layouts and the golden file -----------===//
#ifndef KILN_TESTS_LAYOUT_LAYOUTTESTSUPPORT_H
#define KILN_TESTS_LAYOUT_LAYOUTTESTSUPPORT_H

#include "compiler/layout/SharedEncodings.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

namespace kiln::layout::test {

/// tests/layout/data/layouts_golden.json: answers of the executable reference.
const nlohmann::json &golden();

Encoding encodingFromJson(const nlohmann::json &e);
SharedEncoding sharedFromJson(const nlohmann::json &e);
/// Entry `i` of the section "layouts".
LinearLayout goldenLayout(std::size_t i);

class Random {
public:
  explicit Random(std::uint64_t seed) : engine(seed) {}
  /// Uniform in [low, high].
  int in(int low, int high) { return low + static_cast<int>(engine() % static_cast<std::uint64_t>(high - low + 1)); }
  bool chance(double p) { return static_cast<double>(engine() >> 11) * 0x1p-53 < p; }
  std::uint64_t word() { return engine(); }
  template <typename T> T pick(std::initializer_list<T> list) { return list.begin()[in(0, int(list.size()) - 1)]; }
  template <typename List> void shuffle(List &list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(in(0, int(i) - 1))]);
  }
  /// 2^total as `parts` factors.
  Sizes split(int total, int parts);
  Sizes permutation(int rank);

private:
  std::mt19937_64 engine;
};

Blocked randomBlocked(Random &random, int rank, int warpBits);
/// A random encoding of rank 2 for 2^warpBits warps.
Encoding randomEncoding(Random &random, int warpBits);

/// Register, lane, warp and block bases to be made into a layout.
struct RawLayout {
  std::vector<std::uint32_t> shape;
  std::array<std::vector<BitVector>, numHardwareDims> columns;
  LinearLayout build() const;
};

/// A surjective layout of rank 2 with up to maxBits tensor bits: encodings, permutations, sheared maps, hardware bits
/// that overlap.  `pairOf`: a second layout of the same shape, warps and blocks.
std::pair<LinearLayout, LinearLayout> randomPair(Random &random, int maxBits);

/// The value, or a test failure and a scalar.
template <typename T> T unwrap(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().toString();
    return T();
  }
  return std::move(*result);
}

} // namespace kiln::layout::test

#endif // KILN_TESTS_LAYOUT_LAYOUTTESTSUPPORT_H
