//===- Tuned.h - What sweeps found, kept for later calls -----------------------===//
//
// `kiln tune` keeps the fastest values of a call's tuned options in the kernel cache, and calls that leave these options
// open take them: on the same kind of device, for the same code, options and types, and for sizes in the same bucket (a
// power of two).  They change the speed and never the result.
//
// Invariant: nothing here has to succeed.  Where nothing is kept, an operation chooses as always.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TUNED_H
#define KILN_TUNED_H

#include "support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// What decides which values are the best, and whose they are.
struct TunedQuestion {
  std::string operation;            ///< "attention_backward"
  std::string part;                 ///< of one that tunes several launches: "keys"; else empty
  std::string types;                ///< "bf16"
  std::string configuration;        ///< what of the code is not tuned: "dim=128, causal=true"
  std::string sizes;                ///< buckets: "queries 8192, keys 8192, heads 64"
  std::vector<std::string> options; ///< names of the call's options that are asked for
};

/// A value of each option, in the question's order; 0: the operation chooses.
using TunedValues = std::vector<std::int64_t>;

/// How they were found; for people.
struct TunedOrigin {
  std::string call; ///< that was measured
  double milliseconds = 0;
  std::optional<double> untuned; ///< milliseconds of what the operation chooses
  std::size_t configurations = 0;
  std::string time; ///< "2026-11-28T04:00:00Z"
};

} // namespace kiln

#endif // KILN_TUNED_H
