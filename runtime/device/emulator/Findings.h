//===- Findings.h - Collecting what the checks see ------------------------===//
//
// Each worker has a sink.  Equal findings (same id and op) are counted; which one represents them, and the order of the
// report, follow from block, warp and op alone, so they do not depend on the number of workers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_FINDINGS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_FINDINGS_H

#include "kiln/Device.h"
#include "runtime/device/emulator/Program.h"

#include <map>
#include <string>
#include <vector>

namespace kiln::emulator {

struct RawFinding {
  std::string id;
  std::uint32_t op = 0;
  std::uint64_t block = 0;
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
  bool again(const char *id, std::uint32_t op, std::uint64_t block);
  std::map<std::pair<std::string, std::uint32_t>, RawFinding> &all() { return found; }

private:
  std::map<std::pair<std::string, std::uint32_t>, RawFinding> found;
};

/// The workers' findings as one report.  After a fatal finding in block `firstFatal`, what later blocks saw is dropped.
std::vector<Finding> mergeFindings(std::vector<FindingSink *> sinks, const Program &program, Dim3 grid,
                                   std::uint64_t firstFatal);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_FINDINGS_H
