//===- Mbarrier.h - Barriers in shared memory -----------------------------===//
//
// Section 3.2 of the emulator specification.  An mbarrier counts arrivals and bytes: its phase is over when no arrival
// is pending and as many bytes have come as were announced; then the next phase begins.  The state is kept here, not
// in the block's memory; the object's 8 bytes hold a number that nobody may look at.
//
// Invariants: `phase` only rises; pending <= expected; the table belongs to the block whose shared memory holds the
// object, whichever block of the cluster works on it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_MBARRIER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_MBARRIER_H

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Executor.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kiln::emulator {

class AsyncWork;

struct Mbarrier {
  bool valid = false;
  bool observed = true;     ///< somebody has seen that the last phase was over
  bool unseenBytes = false; ///< copies brought bytes in a phase of which nobody has seen that it is over
  std::uint64_t phase = 0;
  std::uint32_t expected = 0, pending = 0;   ///< arrivals of a phase; still to come in this one
  std::int64_t tx = 0;                       ///< bytes announced and not come; negative: they came first
  std::int64_t announced = 0, delivered = 0; ///< bytes in this phase, for findings
  std::uint32_t initOp = 0;                  ///< where it was initialised
  std::uint32_t txOp = 0;                    ///< where bytes were last announced or completed, by warp txWarp
  std::uint32_t txWarp = 0;
  std::uint32_t number = 0;                ///< in its block, in order of first initialisation
  std::uint32_t bulkIssued = 0;            ///< bulk operations that complete it, ever
  std::vector<std::uint32_t> bulkInFlight; ///< their numbers, as long as not all their bytes are counted
  Knowledge releasing, released;           ///< by arrivals of this phase; by those of all phases before
};

/// An mbarrier object: the block that has it, its offset in that block's shared memory.
struct MbarrierPlace {
  BlockState *owner = nullptr;
  std::uint32_t offset = 0;
};

class MbarrierTable {
public:
  static constexpr std::uint32_t objectBytes = 8;
  void clear() {
    objects.clear();
    low = ~0u;
    high = 0;
  }
  /// The object at `offset`, or nullptr.
  Mbarrier *find(std::uint32_t offset) {
    const auto at = objects.find(offset);
    return at == objects.end() || !at->second.valid ? nullptr : &at->second;
  }
  /// Entry of an object that is initialised now; what it says of an earlier one there is kept for the race checks.
  Mbarrier &make(std::uint32_t offset);
  /// An object that overlaps [first, first + n), and its offset.
  Mbarrier *overlapping(std::uint64_t first, std::uint64_t n, std::uint32_t &offset) {
    return first < high && first + n > low ? search(first, n, offset) : nullptr;
  }
  std::unordered_map<std::uint32_t, Mbarrier> &all() { return objects; }

private:
  Mbarrier *search(std::uint64_t first, std::uint64_t n, std::uint32_t &offset);
  std::unordered_map<std::uint32_t, Mbarrier> objects; ///< by offset; also those that are no longer valid
  std::uint32_t low = ~0u, high = 0;                   ///< all lie between
};

/// The object at a lane's address: an offset in shared memory, or a generic address if op.flags say so (access:: in
/// MemoryFaults.h).  False after a fatal finding: misaligned, outside, or in another block though not `remote`.
bool locateMbarrier(WarpState &w, const Op &op, unsigned lane, std::uint64_t address, bool remote,
                    MbarrierPlace &place);
/// The state of an object that `op` uses, with the checks of its initialisation; nullptr after a fatal finding.
Mbarrier *useMbarrier(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place,
                      ObjectUse use = ObjectUse::Use);

/// Announces bytes.
bool expectTx(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, Mbarrier &b, std::uint32_t bytes);

/// A bulk operation that will complete bytes of the object has been issued: who it is to the race checks.  Every one of
/// them must call completeTx once with the same agent.
AsyncAgent bulkAgent(MbarrierPlace place, Mbarrier &b);
/// All `bytes` of the bulk operation `by` have been written.  Fault after a fatal finding.
Next completeTx(MbarrierPlace place, std::uint32_t bytes, const AsyncWork &by, const AsyncAgent &agent);
/// Arrivals that no warp executes (cp.async.mbarrier.arrive): whoever waits for the phase has waited for by.agent.
Next arriveAsync(MbarrierPlace place, const AsyncWork &by, std::uint32_t count);

/// `count` arrivals; true if they completed the phase.
bool arriveAtMbarrier(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, Mbarrier &b,
                      std::uint32_t count);
/// Bytes that have come; `bulkNumber` of the bulk operation that brought them, 0: none.
Next countTx(WarpState &w, const Op &op, std::uint32_t lanes, MbarrierPlace place, std::uint32_t bytes,
             std::uint32_t bulkNumber);
/// `op` accesses [first, first + bytes) of the owner's shared memory.  True after a finding: an mbarrier lies there.
bool checkRawAccess(WarpState &w, const Op &op, std::uint32_t lanes, BlockState &owner, std::uint64_t first,
                    std::uint64_t bytes, bool write);

/// A phase must not be left with bytes missing or too many when the block ends.
void checkMbarriersAtExit(BlockState &block);
/// " waits mbarrier full+8 phase 3 (...)", for a deadlock finding.
std::string describeMbarrier(const BlockState &block, std::uint32_t offset);

// --- the instructions; address in s[0] + imm, see insn/Mbarrier.cpp ------------

Next mbarrierInit(Warp &w, const Op &op);
Next mbarrierInval(Warp &w, const Op &op);
Next mbarrierArrive(Warp &w, const Op &op);
Next mbarrierExpectTx(Warp &w, const Op &op);
Next mbarrierCompleteTx(Warp &w, const Op &op);
Next mbarrierWait(Warp &w, const Op &op);
Next mbarrierPendingCount(Warp &w, const Op &op);

/// Op::flags of mbarrier instructions, in addition to those of access:: for the address.
namespace mbarrierFlag {
constexpr std::uint16_t relaxed = 32;
constexpr std::uint16_t expectTx = 0x100, noComplete = 0x200, drop = 0x400, parity = 0x800, tries = 0x2000;
constexpr std::uint16_t remote = 0x4000; ///< .shared::cluster
} // namespace mbarrierFlag

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_MBARRIER_H
