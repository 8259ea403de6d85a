//===- Sweep.h - Candidates measured until the budget ends -------------------===//
//
// Asks the searcher, prepares (compiles), measures, tells it and writes the journal.  What the journal holds already is
// told to the searcher and neither measured nor counted again.  Several threads may prepare at the same time, ahead of
// what is measured.
//
// Invariant: an interruption or a failure loses nothing but the configurations that are being measured.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_SWEEP_H
#define KILN_RUNTIME_TUNE_SWEEP_H

#include "runtime/tune/Journal.h"
#include "runtime/tune/Search.h"

#include <atomic>
#include <functional>

namespace kiln::tune {

/// What a configuration takes, by the measurer of that number.  A failed Result ends the sweep: it says nothing about
/// the configuration.  NotReady, in a sweep with a time limit: nobody
/// began it in time.
using Measure = std::function<Result<Entry>(const Configuration &, unsigned measurer)>;
struct Measuring {
  Measure measure;
  /// Before it, and whatever else is measured meanwhile.  An entry that is not good is the answer, and nothing is
  /// measured.  None: all is in `measure`.
  std::function<Result<Entry>(const Configuration &)> prepare = {};
  /// What a measurer does while its first configuration is prepared.
  std::function<void(unsigned measurer)> getReady = {};
};

struct SweepOptions {
  std::size_t budget = 0; ///< configurations to measure; 0: all
  double seconds = 0;     ///< after which none is begun; 0: no limit
  unsigned jobs = 1;      ///< that are prepared at the same time
  /// Threads that only measure, one for each device, each with a number; what `jobs` others prepare.  0: whoever
  /// prepared a configuration measures it, so as many at a time.
  unsigned measurers = 0;
  const std::atomic<bool> *interrupted = nullptr;
};

/// How far a sweep is.
struct SweepState {
  std::size_t done = 0, total = 0; ///< measured in this run, and at most to be
  std::size_t known = 0;           ///< that the journal had
  std::size_t failures[outcomes] = {};
  std::optional<Entry> best, last;
  double seconds = 0;
  /// In which order the good ones came that were better than all before: (number measured, milliseconds).
  std::vector<std::pair<std::size_t, double>> convergence;
};

enum class SweepEnd : std::uint8_t { Complete, Budget, Interrupted };

struct SweepResult {
  SweepState state;
  SweepEnd end = SweepEnd::Complete;
  std::vector<Entry> entries; ///< all that are known of candidates, in the order in which they were asked for
};

/// `journal` may be null.  `seen` is called after each configuration, by one thread at a time.
Result<SweepResult> runSweep(const Space &space, const std::vector<Candidate> &kept, Searcher &searcher,
                             Journal *journal, const Measuring &how, const SweepOptions &options,
                             const std::function<void(const SweepState &)> &seen);

/// NAME, VALUE of a configuration.
std::vector<std::pair<std::string, std::string>> named(const Space &space, const Configuration &configuration);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_SWEEP_H
