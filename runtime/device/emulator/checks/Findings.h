//===- Findings.h - Collecting what the checks see ------------------------===//
//
// Each worker has a sink.  Equal findings (same id and op) are counted; which one represents them, and the order of the
// report, follow from block, warp and op alone, so they do not depend on the number of workers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FINDINGS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FINDINGS_H

#include "kiln/Device.h"
#include "runtime/device/emulator/decode/Program.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kiln::emulator {

/// A block among those of a launch.  Clusters start in the order of their numbers.
struct BlockPlace {
  std::uint64_t cluster = 0, linear = 0;
  auto operator<=>(const BlockPlace &) const = default;
};

/// The other access of a race.
struct RawOther {
  std::uint64_t block = 0;
  unsigned warp = 0;
  std::uint32_t lanes = 0, op = 0;
};

struct RawFinding {
  std::string id;
  std::uint32_t op = 0;
  std::optional<RawOther> other;
  BlockPlace block;
  unsigned warp = 0;
  std::uint32_t lanes = 0;
  std::string message;
  bool fatal = false, note = false;
  std::uint64_t count = 0;        ///< in all blocks of this sink
  std::uint64_t countInBlock = 0; ///< in `block`
};

class FindingSink {
public:
  void report(RawFinding finding);
  /// Counts one more of a finding that is known from this block or an earlier one; false: report it in full.
  bool again(const char *id, std::uint32_t op, BlockPlace block, std::uint32_t otherOp = noOther);
  /// Id, op, op of the other access.
  using Key = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  static constexpr std::uint32_t noOther = ~0u;
  std::map<Key, RawFinding> &all() { return found; }

private:
  std::map<Key, RawFinding> found;
};

/// "(x,y,z)" of a block number.
std::string blockText(std::uint64_t linear, Dim3 grid);

// Like reportFinding and countFinding (Warp.h), with the other access.
void reportRace(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, RawOther other);
/// A note with another access.
void reportNote(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, RawOther other);
bool countRace(Warp &warp, const Op &op, const char *id, std::uint32_t otherOp);

/// The workers' findings as one report.  After a fatal finding in cluster `firstFatal`, what later ones saw is dropped.
std::vector<Finding> mergeFindings(std::vector<FindingSink *> sinks, const Program &program, Dim3 grid,
                                   std::uint64_t firstFatal);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FINDINGS_H
