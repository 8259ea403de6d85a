//===- AttentionMatrixTest.cpp - The specification's matrix, both directions ----------===//
//
// AttentionMatrix.h says of what.  Each case against float64 and by the probes of the mask.
//
// A GPU runs all of it.  The emulators share, in the full tier, what has at most 300 rows and 6 heads, backward 130
// rows; in the default tier each takes a sample.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionMatrix.h"
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace kiln::test {
namespace {

class AttentionMatrix : public AttentionBackward {
protected:
  /// What this device takes: of the default tier's emulators every `stride`-th.  `skew`: one more after each so many,
  /// where the list has that period.
  std::vector<MatrixCase> shareOf(const std::vector<MatrixCase> &all, unsigned stride, unsigned skew = 0) {
    std::vector<MatrixCase> out;
    for (unsigned i = 0; i < all.size(); ++i)
      if (shared(skew ? i + 1 + (i + 1) / skew : i, stride))
        out.push_back(all[i]);
    EXPECT_FALSE(out.empty());
    return out;
  }
  void forward(const std::vector<MatrixCase> &cases) {
    inParallel(cases.size(), [&](std::size_t i, std::mt19937_64 &engine) { both(cases[i].of, engine); });
  }
  void backward(const std::vector<MatrixCase> &cases) {
    inParallel(cases.size(), [&](std::size_t i, std::mt19937_64 &engine) {
      Problem p = cases[i].of;
      p.lse = true; // read here
      if (!HasFatalFailure())
        all(p, cases[i].withLse, engine);
    });
  }
};

TEST_P(AttentionMatrix, EveryCombinationOfTheCore) {
  forward(shareOf(casesOfCore(on->emulated() ? 260 : 1024), 160));
}
TEST_P(AttentionMatrix, EveryCombinationOfTheCoreBackward) {
  backward(shareOf(casesOfCore(on->emulated() ? 130 : 1024, 16), 160));
}

TEST_P(AttentionMatrix, EveryLengthOfTheList) {
  forward(shareOf(casesOfLengths(on->emulated() ? 300 : 20000), 80, 6)); // else an emulator would meet three of the six
}
TEST_P(AttentionMatrix, EveryLengthOfTheListBackward) {
  backward(shareOf(casesOfLengths(on->emulated() ? 260 : 20000), 80, 6));
}

/// On emulators the shorter ones, dealt out to the targets: one each in the default tier.
TEST_P(AttentionMatrix, LongSequencesOfWideHeads) {
  const std::vector<MatrixCase> every = casesOfWideHeads();
  std::vector<MatrixCase> cases;
  for (std::size_t i = 0; i < every.size(); ++i)
    if (!on->emulated() || (i % 4 == GetParam() && i >= pick(6u, 0u) && i < pick(10u, 12u)))
      cases.push_back(every[i]);
  ASSERT_FALSE(cases.empty());
  std::reverse(cases.begin(), cases.end());
  forward(cases);
  if (!on->emulated())
    backward(cases);
}

TEST_P(AttentionMatrix, EveryNumberOfHeads) {
  forward(shareOf(casesOfHeads(on->emulated() ? 6 : 256), 12));
}
TEST_P(AttentionMatrix, EveryNumberOfHeadsBackward) {
  backward(shareOf(casesOfHeads(on->emulated() ? 6 : 256), 12));
}

/// NaN lies after the lengths that are used, poison between and around the rows of outputs.
TEST_P(AttentionMatrix, RandomBatchesOf9) {
  forward(shareOf(on->emulated() ? casesOfBatches({pick(40, 100)}) : casesOfBatches({70, 200, 700, 1500}), 36));
}
TEST_P(AttentionMatrix, RandomBatchesOf9Backward) {
  backward(shareOf(on->emulated() ? casesOfBatches({40}) : casesOfBatches({70, 200, 700}), 36));
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionMatrix, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
