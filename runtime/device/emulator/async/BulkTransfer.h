//===- BulkTransfer.h - Bytes that bulk copies move -----------------------===//
//
// What all of cp.async.bulk, cp.reduce.async.bulk and their tensor forms share: operands, checks of addresses, the
// pieces of memory that a copy reads and writes, and the asynchronous works that move them.
//
//  - A load writes shared memory of one block, then completes its bytes at an mbarrier there (LoadWork).  A multicast
//    is one load for each block.
//  - A store reads shared memory, then writes or reduces global memory: two works (StoreRead, StoreWrite), so that
//    schedules can tell wait_group.read from wait_group.
//  - Whether a byte has a value moves with it; a reduction has one where both of its operands have.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKTRANSFER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKTRANSFER_H

#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/async/BulkReduce.h"

#include "compiler/target/TensorMap.h"

#include <memory>
#include <optional>
#include <vector>

namespace kiln::emulator {

/// Operands of a bulk op: slots in the pool at Op::aux.  An address is a base and a number to add to it.
namespace bulkSlot {
enum : unsigned { To, ToAdd, From, FromAdd, Barrier, BarrierAdd, Size, Mask, Coordinates, count = Coordinates + 5 };
} // namespace bulkSlot

/// Op::flags of bulk ops, in addition to the space of the mbarrier (access::shared).
namespace bulkFlag {
constexpr std::uint16_t to32 = 0x100, from32 = 0x200, barrier32 = 0x400; ///< the base register has 32 bits
constexpr std::uint16_t multicast = 0x800;                               ///< Mask: blocks of the cluster
constexpr std::uint16_t byteMask = 0x1000;                               ///< Mask: which of 16 bytes are written
constexpr std::uint16_t ownBlock = 0x2000;                               ///< the destination is .shared::cta
constexpr std::uint16_t reads = 0x100;                                   ///< of cp.async.bulk.wait_group: .read
} // namespace bulkFlag

/// Op::imm of bulk copies: dimensions, reduction and the type of its elements.
constexpr std::int64_t bulkForm(unsigned rank, ReduceOp op = ReduceOp::None, ReduceType type = {}) {
  return rank | static_cast<std::int64_t>(op) << 8 | static_cast<std::int64_t>(type) << 16;
}
inline unsigned rankOf(const Op &op) {
  return op.imm & 0xFF;
}
inline ReduceOp reduceOf(const Op &op) {
  return static_cast<ReduceOp>(op.imm >> 8 & 0xFF);
}
inline ReduceType reduceTypeOf(const Op &op) {
  return static_cast<ReduceType>(op.imm >> 16 & 0xFF);
}

/// Calls f(lane) for every executing lane until it returns Fault.
template <typename Fn> Next eachLane(const Warp &w, Fn f) {
  for (std::uint32_t m = w.exec; m; m &= m - 1)
    if (f(static_cast<unsigned>(__builtin_ctz(m))) == Next::Fault)
      return Next::Fault;
  return Next::Advance;
}

/// While it lives, lane `lane` is the only one that executes: to the race checks it issues or waits by itself.
class OnlyLane {
public:
  OnlyLane(WarpState &w, unsigned lane) : w(w), exec(w.exec) { w.exec = 1u << lane; }
  ~OnlyLane() { w.exec = exec; }
  OnlyLane(const OnlyLane &) = delete;
  OnlyLane &operator=(const OnlyLane &) = delete;

private:
  WarpState &w;
  std::uint32_t exec;
};

/// Lane l's value of an operand in the pool.
std::uint32_t bulkOperand(const Warp &w, const Op &op, unsigned which, unsigned l);
/// Lane l's address; `which` is bulkSlot::To, From or Barrier.
std::uint64_t bulkAddress(const Warp &w, const Op &op, unsigned which, unsigned l);

/// Memory, and the bits that say which of its bytes have a value.
struct MemorySide {
  std::uint64_t *bits = nullptr; ///< null: all have
  std::uint64_t origin = 0;      ///< address of the first bit's byte
};
MemorySide sharedSide(const BlockState &block);
/// Of addresses in an allocation.
MemorySide globalSide(const BlockState &block, const Allocation &allocation);

/// The bytes at `to` have values where those at `from` have; with `both` only those that had one before.
void moveDefined(MemorySide side, std::uint64_t from, MemorySide into, std::uint64_t to, std::uint64_t bytes,
                 bool both = false);

/// Contiguous bytes in both memories.
struct BulkPiece {
  std::uint64_t from = 0; ///< address; 0: the filling
  std::uint64_t to = 0;   ///< offset from where the transfer's destination starts
  std::uint32_t bytes = 0;
  std::uint32_t side = 0; ///< index into BulkTransfer::sides, of what is in global memory
};

/// Changes elements on their way into shared memory.
using Convert = void (*)(std::byte *data, std::uint32_t bytes);

struct BulkTransfer {
  std::vector<BulkPiece> pieces;
  std::vector<MemorySide> sides{MemorySide{}}; ///< of sources
  std::uint64_t filling = 0;                   ///< repeated
  Convert convert = nullptr;
};

/// Adds [address, address + bytes), to the last range if it goes on there.
void addRange(std::vector<AsyncRange> &ranges, std::uint64_t address, std::uint64_t bytes);
/// Sorts them and makes one of those that follow each other.
void joinRanges(std::vector<AsyncRange> &ranges);

/// Into shared memory of `place.owner`, at its start plus each piece's offset; then `tx` bytes at the mbarrier.
class LoadWork final : public AsyncWork {
public:
  LoadWork(WarpState &issuer, const Op &op, std::uint32_t lanes) : AsyncWork(issuer, op, lanes, AsyncKind::Bulk) {}
  Next deliver() override;
  std::shared_ptr<const BulkTransfer> transfer;
  Combine combine = nullptr;
  MbarrierPlace place;
  std::uint32_t tx = 0;
};

/// Of the data that a StoreRead has read.
class StoreWrite final : public AsyncWork {
public:
  StoreWrite(WarpState &issuer, const Op &op, std::uint32_t lanes)
      : AsyncWork(issuer, op, lanes, AsyncKind::BulkWrite) {}
  Next deliver() override;
  struct Piece {
    std::uint64_t from = 0, to = 0; ///< offset in the data, address
    std::uint32_t bytes = 0, side = 0;
  };
  std::vector<Piece> pieces;
  std::vector<MemorySide> sides; ///< of destinations
  Combine combine = nullptr;
  static constexpr std::uint16_t wholeMask = 0xFFFF;
  std::uint16_t byteMask = wholeMask; ///< of every 16 bytes
  std::vector<std::byte> data;
  std::vector<std::uint64_t> defined; ///< bits of `data`; empty: all have a value
};

/// Reads shared memory, then issues the write.
class StoreRead final : public AsyncWork {
public:
  StoreRead(WarpState &issuer, const Op &op, std::uint32_t lanes)
      : AsyncWork(issuer, op, lanes, AsyncKind::BulkRead), write(std::make_unique<StoreWrite>(issuer, op, lanes)) {}
  Next deliver() override;
  BulkTransfer transfer; ///< destinations are offsets in the write's data
  std::uint64_t bytes = 0;
  std::unique_ptr<StoreWrite> write;
};

// --- checks of one lane's operands; false after a fatal finding ---------------

/// `address` is a multiple of `bytes`.
bool checkAligned(WarpState &w, const Op &op, unsigned l, std::uint64_t address, unsigned bytes);
/// [address, address + bytes) of the shared window lies in shared memory of a block of the cluster, of the own one
/// unless `remote`: which block, and the offset there.
bool checkShared(WarpState &w, const Op &op, unsigned l, std::uint64_t address, std::uint64_t bytes, bool remote,
                 BlockState *&owner, std::uint32_t &offset);
/// [address, address + bytes) lies in one buffer that may be read, or written.
bool checkGlobal(WarpState &w, const Op &op, unsigned l, std::uint64_t address, std::uint64_t bytes, bool write,
                 const Allocation *&allocation);

// --- loads ---------------------------------------------------------------------

/// Where a load goes in one block.
struct LoadTarget {
  BlockState *owner = nullptr;
  std::uint32_t offset = 0; ///< of the destination in its shared memory; the same in all blocks of a multicast
  MbarrierPlace place;
};
/// The targets of lane l's load, of which it covers `span` bytes of shared memory: one, or those of the mask.
bool locateTargets(WarpState &w, const Op &op, unsigned l, std::uint64_t span, unsigned alignment,
                   std::vector<LoadTarget> &targets);
/// What a load does in every target.
struct Load {
  std::shared_ptr<const BulkTransfer> transfer; ///< destinations are offsets in shared memory
  Combine combine = nullptr;
  std::uint32_t tx = 0;            ///< bytes that it counts for
  std::vector<AsyncRange> sources; ///< host addresses, in global memory unless `fromShared`
  bool fromShared = false;
  std::optional<TensorMapSwizzle> swizzle; ///< of a tensor
  std::vector<AsyncRange> offsets;         ///< of what it writes, in shared memory
  std::uint64_t map = 0;                   ///< address of the tensor map in global memory
};
Next issueLoads(WarpState &w, const Op &op, unsigned l, const std::vector<LoadTarget> &targets, const Load &load);

// --- stores --------------------------------------------------------------------

/// What a store reads and writes: host addresses.
struct StoreRanges {
  std::vector<AsyncRange> sources, destinations;
  std::uint64_t map = 0; ///< address of the tensor map in global memory
};
/// Calls f(lanes) for the executing lanes, those together that issue the same store: compilers let a whole warp issue
/// what one lane would be enough for.  Its bytes come once, then; each lane has it in a group of its own.  Every lane's
/// reduction counts, so those are apart.
template <typename Fn> Next eachStore(WarpState &w, const Op &op, Fn f);
/// Of lanes `l` and `other`: one destination, source, size, group.
bool storeTheSame(const WarpState &w, const Op &op, unsigned l, unsigned other);
/// Issues the store of `lanes` and remembers that its block must not end before its sources have been read.
Next issueStore(WarpState &w, const Op &op, std::uint32_t lanes, std::unique_ptr<StoreRead> store,
                const StoreRanges &ranges);
/// The reads or writes of lane l's bulk groups with numbers below `epoch`.
AsyncAgent bulkGroupAgent(const WarpState &w, unsigned l, AgentKind kind, std::uint32_t epoch);

template <typename Fn> Next eachStore(WarpState &w, const Op &op, Fn f) {
  for (std::uint32_t todo = w.exec; todo;) {
    const auto l = static_cast<unsigned>(__builtin_ctz(todo));
    std::uint32_t lanes = 1u << l;
    for (std::uint32_t m = reduceOf(op) == ReduceOp::None ? todo & (todo - 1) : 0; m; m &= m - 1) {
      const auto other = static_cast<unsigned>(__builtin_ctz(m));
      lanes |= std::uint32_t(storeTheSame(w, op, l, other)) << other;
    }
    todo &= ~lanes;
    if (f(lanes) == Next::Fault)
      return Next::Fault;
  }
  return Next::Advance;
}

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKTRANSFER_H
