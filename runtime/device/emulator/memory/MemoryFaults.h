//===- MemoryFaults.h - The slow side of memory accesses ------------------===//
//
// Called by the memory families when their fast tests fail: looks addresses up, and words the findings.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORYFAULTS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORYFAULTS_H

#include "runtime/device/emulator/execute/Warp.h"

#include <string>

namespace kiln::emulator {

struct Program;
struct WarpState;

/// Op::flags of memory ops.
namespace access {
constexpr std::uint16_t generic = 0, global = 1, shared = 2, local = 3, constant = 4, param = 5, spaceMask = 7;
constexpr std::uint16_t base32 = 8;  ///< the address register has 32 bits
constexpr std::uint16_t strong = 16; ///< volatile, relaxed, acquire, release: others may wait for it
constexpr std::uint16_t narrow = 32; ///< a sign-extended byte in a 16-bit register
constexpr std::uint16_t acquire = 64, release = 128;
constexpr std::uint16_t countShift = 8, countMask = 0xF; ///< elements of a vector, 1 to 8
constexpr std::uint16_t ctaScope = 4096;                 ///< strong for threads of the block only
constexpr std::uint16_t cluster = 0x4000;                ///< .shared::cluster: other blocks' shared memory too
} // namespace access

// All return false after a fatal finding.  `at` are device addresses of the executing lanes.

/// "tile+12" for an offset in the block's shared memory.
std::string sharedName(const Program &p, std::uint64_t offset);
/// "load", "store", "copy", "mbarrier operation" or "atomic access".
const char *accessKind(const WarpState &w, const Op &op);

bool reportMisaligned(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes);
/// Lanes outside the own block's shared memory, unless `owner` says whose memory it is that they must be in.
bool reportSharedBounds(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window,
                        const BlockState *owner = nullptr);
/// Shared addresses (from `window` on), all of one rank: the block that has them.  Null after a fatal finding.
const BlockState *resolveShared(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window);
bool reportParamBounds(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window);
bool reportReadOnly(Warp &w, const Op &op, const char *what);
/// Looks every lane up and remembers the allocation for next time if it is one for all.  Gives the bits to look at;
/// where the lanes are in several allocations it checks and marks them itself and gives none.
bool resolveGlobal(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, bool write, std::uint64_t *&bits,
                   std::uint64_t &origin);
/// Turns local offsets (from `window` on) into host addresses.
bool resolveLocal(Warp &w, const Op &op, std::uint64_t *at, unsigned bytes, std::uint64_t window);

/// Some byte that the lanes read may never have been written: reports the lanes where one of the bytes in `used` is
/// not. `at` are host addresses, lane l's being first + l * stride if at is nullptr.
void reportUninitialised(Warp &w, const Op &op, const std::uint64_t *at, std::uint64_t first, unsigned stride,
                         unsigned bytes, std::uint32_t used, const std::uint64_t *bits, std::uint64_t origin);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORYFAULTS_H
