//===- Replay.h - A stored space in place of a device -------------------------===//
//
// The configurations of a journal as the candidates of a sweep, and what it says of them as the measurements: so that
// searches are compared without a GPU, and always with the same answers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REPLAY_H
#define KILN_RUNTIME_TUNE_REPLAY_H

#include "runtime/tune/Sweep.h"

#include <map>

namespace kiln::tune {

class Replay {
public:
  /// Refuses a journal without a good configuration, and one whose configurations do not have the same parameters.
  static Result<Replay> create(const JournalContents &journal);

  const Space &space() const { return stored; }
  const std::vector<Candidate> &candidates() const { return kept; }
  const Entry &best() const { return entries.at(fastest); }
  Result<Entry> measure(const Configuration &configuration) const;

private:
  Replay(Space space) : stored(std::move(space)) {}
  Space stored;
  std::vector<Candidate> kept;
  std::map<std::size_t, Entry> entries; ///< by number
  std::size_t fastest = 0;
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REPLAY_H
