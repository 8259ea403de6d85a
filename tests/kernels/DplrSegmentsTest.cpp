// Long sequences walked along in segments, by both directions of every kind of rule: against float64, within the limits
// of whole walks.
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class DplrSegments : public Dplr {};

OptionValues segments(int size, int chunk = 16) {
  return {{"chunk_size", chunk}, {"segment_size", size}};
}

std::vector<DplrProblem> problems() {
  std::vector<DplrProblem> out{
      // Segments of one chunk, the last one short; of two, of four.
      {1, 150, 2, 32, 32, {1, 0}, segments(1), DType::BF16},
      {2, 201, 1, 48, 96, {.1, .5}, segments(2), DType::F16},
      {1, 150, 1, 64, 64, {1, 0}, segments(4), DType::BF16},
      // Sequences of no token, of less than a segment, of a whole number of them.
      {1, 227, 1, 64, 32, {1, 0}, segments(2), DType::F16},
      // States that hardly decay, so that roundings add up: 40 chunks, the second call's size being chosen.
      {1, 640, 1, 32, 32, {100, .5}, segments(4), DType::BF16},
      {1, 640, 1, 32, 32, {100, .5}, segments(0), DType::BF16},
      {1, 300, 1, 128, 128, {1, 0}, segments(2, 64), DType::BF16}};
  out[1].first = DType::F16, out[1].last = DType::F16;
  out[2].first.reset(), out[2].last.reset();
  out[3].offsets = {0, 0, 5, 69, 69, 133, 227, 227};
  return out;
}

TEST_P(DplrSegments, BothDirections) {
  const std::vector<DplrProblem> all = problems();
  for (std::size_t n = 0; n < all.size(); ++n)
    if (chosen(static_cast<unsigned>(n), 4)) {
      SCOPED_TRACE(n);
      ASSERT_NO_FATAL_FAILURE(check(all[n]));
    }
}

/// Where segments are cut depends on a sequence's own tokens: packed and dense calls have the same bits.  Segments are
/// there: other bits than those of whole walks.
TEST_P(DplrSegments, PackedAsDense) {
  if (GetParam() % 2 && on->emulated() && !isFullTier())
    return;
  const DplrProblem p{1, 150, 1, 32, 32, {10, 0}, segments(2), DType::BF16};
  DplrProblem packed = p, whole = p;
  packed.offsets = {0, p.tokens};
  whole.options = {{"chunk_size", 16}, {"segment_size", 16}};
  const Arrays inputs = inputsOf(p);
  Arrays offsets = inputs;
  offsets["cu_seqlens"] = packed.offsetsArray();
  for (const auto &[family, cut] : {std::pair("dplr", "final_state"), {"dplr_backward", "dh0"}}) {
    const Arrays plain = run(family, inputs, p), same = run(family, offsets, packed),
                 other = run(family, inputs, whole);
    ASSERT_FALSE(plain.empty() || same.empty() || other.empty());
    for (const auto &[name, array] : plain)
      EXPECT_EQ(array.data, same.at(name).data) << name;
    EXPECT_TRUE(plain.at(cut).data != other.at(cut).data);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrSegments, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
