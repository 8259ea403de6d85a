//===- Search.h - Which configuration is next ---------------------------------===//
//
// A searcher is asked for candidates and told what they took.  It may be asked again before it was told of the last.
//
// Invariants: each candidate is given at most once; with the same seed and the same answers in the same order the
// candidates are the same on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_SEARCH_H
#define KILN_RUNTIME_TUNE_SEARCH_H

#include "runtime/tune/Pruning.h"

#include <memory>

namespace kiln::tune {

class Searcher {
public:
  virtual ~Searcher() = default;
  /// The place of the next candidate in the list; none: there are no more.
  virtual std::optional<std::size_t> next() = 0;
  /// Milliseconds of a candidate that was given; none: it failed.
  virtual void tell(std::size_t candidate, std::optional<double> milliseconds) {}
};

/// KILN_TUNE_SEARCH(name, maker, what it does)
#define KILN_TUNE_SEARCHES                                                                                             \
  KILN_TUNE_SEARCH("exhaustive", makeExhaustive, "all of them, in the order of the space")                             \
  KILN_TUNE_SEARCH("random", makeRandom, "all of them, in an order that the seed says")                                \
  KILN_TUNE_SEARCH("model", makeModelGuided, "the default, the model's best, then neighbours of the best measured")

/// A failure lists the searches.  `kept` must outlive the searcher.
Result<std::unique_ptr<Searcher>> makeSearcher(const std::string &name, const Space &space,
                                               const std::vector<Candidate> &kept, std::uint64_t seed);
/// "exhaustive, random, model".
std::string searchNames();

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_SEARCH_H
