//===- BenchTiming.h - How long a launch takes --------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_BENCHTIMING_H
#define KILN_RUNTIME_TOOLS_BENCHTIMING_H

#include "runtime/tools/L2Flush.h"

#include <functional>

namespace kiln::tools {

/// Milliseconds of one launch: the median, the least and the most of several batches, and half of the interval that
/// holds the true median with about 93 % (of 5 to 15 samples, by order statistics; less where sampling ended early).
struct Spread {
  double median = 0, least = 0, most = 0, halfInterval = 0;
  unsigned samples = 0;
};

struct Timing {
  unsigned samples = 15; ///< at most
  unsigned batch = 20;   ///< launches of one
  /// Of a GPU, by events: before each launch, which is timed by itself.  Null: launches follow each other.
  const L2Flush *flush = nullptr;
  /// Called once a batch, while the device works on it.
  std::function<void()> meanwhile = {};
  bool byEvents = true; ///< of the device; else the host's clock
  /// Ends before all samples, five at least, once half of the interval is this share of the median.  0: never.
  double enough = 0;
  /// Fewer launches a batch where one takes long: a batch lasts about so long.  0: always `batch`.
  double batchMilliseconds = 0;
};

/// `launch` in batches, after one that compiles.
Result<Spread> timeLaunches(Device &device, const Timing &how, const std::function<Status()> &launch);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_BENCHTIMING_H
