//===- Confirm.h - The best few, measured again in turn -----------------------===//
//
// A sweep measures each configuration once, minutes apart: clocks and temperature change meanwhile, and of many equal
// ones the luckiest looks best.  So the best few, and what the call takes where nothing is tuned, are measured again,
// one after the other and back again, round by round: what drifts is the same for all of them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_CONFIRM_H
#define KILN_RUNTIME_TUNE_CONFIRM_H

#include "runtime/tune/Sweep.h"

namespace kiln::tune {

struct Confirmed {
  Entry entry;                ///< of the sweep
  std::vector<double> rounds; ///< milliseconds of each
  double median = 0;          ///< of the rounds, each divided by what it was slower than their mean
  /// Its median is not further from the winner's than the middle half of the rounds of either is wide.
  bool isTied = false;
  std::optional<Entry> failure = {}; ///< what it was when it was measured again, if not good: it is no winner
};

struct ConfirmOptions {
  std::size_t best = 3;
  unsigned rounds = 6;                            ///< an even number: as many there as back
  const std::atomic<bool> *interrupted = nullptr; ///< ends it; the rounds before count
};

/// The best of `entries` and the default, the fastest first, those that are not good any more last.  Fewer than two:
/// nothing is measured, and nothing returned.
Result<std::vector<Confirmed>> confirm(const std::vector<Entry> &entries, const Measure &measure,
                                       const ConfirmOptions &options);

/// The first one if each of its rounds was faster than each of the default's, else the default: where others use the
/// device, little differences are theirs.  `confirmed` has one that is good.
const Confirmed &clearlyBest(const std::vector<Confirmed> &confirmed);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_CONFIRM_H
