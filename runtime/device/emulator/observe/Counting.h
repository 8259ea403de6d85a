//===- Counting.h - Counters of a launch ----------------------------------===//
//
// A launch that counts runs a dispatch loop of its own (Dispatch.cpp), which calls traceBefore and traceAfter around
// each op; the others pay nothing.  What an op does follows from its opcode (OpTraits.h) and its address operand, so
// handlers do not count, except those whose traffic the op does not show: they call countAsyncBytes or countAccess.
//
// A worker counts by op; the sums over workers do not depend on how many there are.  Nothing here is compiled for a CPU
// level.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_COUNTING_H
#define KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_COUNTING_H

#include "kiln/Counters.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/observe/OpTraits.h"

#include <span>
#include <vector>

namespace kiln::emulator {

struct AsyncRange;

/// Of a worker.
struct OpTrace {
  explicit OpTrace(const std::vector<OpTraits> &traits) : traits(traits), counts(traits.size()) {}
  const std::vector<OpTraits> &traits;
  std::vector<Counts> counts; ///< by op
  Counts pending;             ///< of the op that runs: counted when it has run
};

/// The lanes w.exec are about to execute `op`.
void traceBefore(WarpState &w, const Op &op);
/// They have, but for those in w.uncounted, which parked and will execute it later.
void traceAfter(WarpState &w, const Op &op, std::uint32_t exec);
/// Every lane's guard is false.
void traceSkipped(WarpState &w, const Op &op);

/// For handlers of bulk and tensor copies, when they issue: bytes that the copy moves.
inline void countAsyncBytes(const WarpState &w, std::uint64_t bytes) {
  if (OpTrace *t = w.block->worker.trace.get())
    t->pending.asyncBytes += bytes;
}

enum class CountedSpace : std::uint8_t { Global, Shared };
/// One request of `lanes`, `bytes` each at `at[lane]` (device addresses, or offsets in shared memory).
void addAccess(Counts &to, CountedSpace space, AccessKind kind, const std::uint64_t *at, std::uint32_t lanes,
               unsigned bytes);
/// For handlers that work addresses out in a way of their own (wmma.load): a request of the running op.
inline void countAccess(const WarpState &w, CountedSpace space, AccessKind kind, const std::uint64_t *at,
                        std::uint32_t lanes, unsigned bytes) {
  if (OpTrace *t = w.block->worker.trace.get())
    addAccess(t->pending, space, kind, at, lanes, bytes);
}

/// For handlers of bulk and tensor copies: a request for these ranges, of global memory (device addresses) or shared.
void countBulk(const WarpState &w, CountedSpace space, AccessKind kind, std::span<const AsyncRange> ranges);

/// Different 32-byte sectors of the lanes' accesses, none of which crosses a sector's end.
unsigned sectorsOf(const std::uint64_t *at, std::uint32_t lanes);
/// Passes over the banks: the most different words of a bank, for all lanes together (up to 4 bytes a lane), half warps
/// (8) or quarters (16).  `ideal` is their number without conflicts.
unsigned wavefrontsOf(const std::uint64_t *at, std::uint32_t lanes, unsigned bytes, unsigned &ideal);

/// The workers' counts as one report.
LaunchCounters mergeCounts(std::span<const OpTrace *const> workers, const Launch &launch);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_COUNTING_H
