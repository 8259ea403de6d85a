//===- SharedAccess.h - Addresses of an access as linear maps ---------------===//
//
// For verify-barriers, which shares nothing with insert-barriers.  An access to shared memory is a few *pieces*.  A
// piece is a base byte and an affine map over GF(2) from free bits (register, vector element, byte of an element, lane,
// warp) to (byte offset, lane, warp).  Two pieces with a common origin meet where a linear system has solutions, and
// whether those include two different warps, or two lanes of one warp, is read off the system's kernel: no address is
// enumerated.  Pieces whose origins do not agree are compared address by address.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_SHAREDACCESS_H
#define KILN_PASSES_BARRIERS_SHAREDACCESS_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/tile_gpu/TileGpu.h"

namespace kiln::proof {

/// How far apart the threads are that may touch one byte in two accesses; Never: there is no such byte.
enum class Meet { Never, Thread, Lanes, Warps };

/// Byte offset, lane and warp of one place, or the xor of two.
struct Place {
  uint64_t offset = 0;
  uint32_t lane = 0, warp = 0;
  Place operator^(const Place &o) const { return {offset ^ o.offset, lane ^ o.lane, warp ^ o.warp}; }
};

struct Piece {
  uint64_t base = 0;             ///< byte of offset 0, added
  Place constant;                ///< xor-ed to the span of `free`
  std::vector<Place> free;       ///< one for each free bit
  bool everyLane = false;        ///< the lanes are not known: any may touch any byte of its warp
  uint64_t bytes = 0;            ///< offsets are below this power of two
  uint64_t reach = 0;            ///< base + reach is past its last byte
  int64_t interval = 0, pad = 0; ///< bytes; of a padded buffer: offset o lies at o + o / interval * pad
};

/// What one operation reads, or what it writes, as one agent.
struct SharedAccess {
  bool write = false;
  bool copy = false; ///< in flight: goes on until a wait for it
  tile::Agent agent = tile::Agent::Threads;
  bool elected = false; ///< by the one thread, whichever it is, or begun by it
  std::vector<Piece> pieces;
  /// Set if the pieces are all that it may touch, but maybe not what it does: names what is not known.
  std::string unknown;
};

/// Of each access to shared memory that the operation states, in that order: the number by which its buffer is chosen
/// among several; null if there is no choice.
llvm::SmallVector<mlir::Value, 2> chosenBy(mlir::Operation *op);

/// Numbers of chosenBy, where they are known.
using Chosen = llvm::SmallVector<std::optional<int64_t>, 2>;

/// As it is in the program, for a message.
std::string textOf(mlir::Value v);

/// Nothing for operations that leave shared memory alone, and for waits: what they do depends on the path.
Result<std::vector<SharedAccess>> accessesOf(mlir::Operation *op, const Chosen &chosen);

/// Never if neither writes.
Meet meet(const SharedAccess &a, const SharedAccess &b);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_SHAREDACCESS_H
