//===- Merge.h - Journals of one sweep, measured in parts, as one ------------===//
#ifndef KILN_RUNTIME_TUNE_MERGE_H
#define KILN_RUNTIME_TUNE_MERGE_H

#include "runtime/tune/Journal.h"

namespace kiln::tune {

struct Merged {
  std::size_t entries = 0, duplicates = 0;
};

/// Writes a new journal.  A configuration that stands in several is taken from the first in which it is good, or else
/// from the first.  Journals of different headers are refused, and an `out` that exists.
Result<Merged> mergeJournals(const std::string &out, const std::vector<std::string> &parts);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_MERGE_H
