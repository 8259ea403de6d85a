//===- MemoryAccess.h - Global memory: widths, layouts, and who acts ------===//
//
// Three questions that every load, store and atomic asks (layouts specification, section 4):
//
//   how wide?   vectorElements(): the most elements that one instruction of a thread may move.  Registers must span
//               the low bits of the contiguous dimension, and no lane, warp or block may touch them.
//   which layout?  coalesce(): a blocked encoding with full-width, neighbouring accesses.
//   who?        Owners: replicated elements are written by exactly one thread.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_MEMORYACCESS_H
#define KILN_LAYOUT_MEMORYACCESS_H

#include "compiler/layout/Encodings.h"
#include "compiler/target/Target.h"

namespace kiln::layout {

/// Bytes of the widest access to global memory.
unsigned maxAccessBytes(const Target &target);

/// Largest 2^k <= maxElements with bits 0 .. k-1 of dimension `dim` spanned by the registers and touched by no lane,
/// warp or block basis.
std::uint32_t layoutVector(const LinearLayout &layout, unsigned dim, std::uint32_t maxElements);

/// Elements of one access along the dimension of stride 1.  `contiguity`, `maskConstancy`: facts of the address and of
/// the mask along `dim` (AxisInfo.h); `divisibilityBytes`: alignment of the address of every contiguous block.
std::uint32_t vectorElements(const LinearLayout &layout, unsigned dim, unsigned bits, std::uint32_t contiguity,
                             std::uint32_t divisibilityBytes, std::uint32_t maskConstancy = 1u << 30,
                             unsigned maxBytes = 16);

/// 32-byte sectors that one access of a warp touches, 2^logElements elements a lane along `dim`, on a dense row-major
/// tensor.
std::uint32_t sectors(const LinearLayout &layout, unsigned dim, unsigned logElements, unsigned bits);
/// The same for lines of 128 bytes, of which the level-1 cache looks up one a cycle.
std::uint32_t lines(const LinearLayout &layout, unsigned dim, unsigned logElements, unsigned bits);

/// The blocked encoding for one memory operation.  `contiguity`: one fact a dimension; `divisibilityBytes`: alignment
/// along the most contiguous one.  Extents as in TileLayout (the core decides).  L02, L03, L18 and the extents' codes.
Result<Blocked> coalesce(std::span<const std::int64_t> shape, std::span<const std::int64_t> contiguity,
                         std::int64_t divisibilityBytes, unsigned bits, std::int64_t warps);

/// Places that act for their element: all free bits 0.
struct Owners {
  BitVector registers = 0, lanes = 0, warps = 0, blocks = 0; ///< free masks

  explicit Owners(const LinearLayout &layout);
  /// The predicate of a store: one `and` and compare, hoisted to the kernel's entry.
  bool isOwner(unsigned lane, unsigned warp, unsigned block) const {
    return !(lane & lanes) && !(warp & warps) && !(block & blocks);
  }
  bool everyThread() const { return !lanes && !warps && !blocks; }
};

enum class MemoryOp : unsigned char { Load, VolatileLoad, Store, AsyncCopy, Atomic, AtomicWithResult, Print, BulkCopy };

/// Who executes a memory operation, and what follows.
struct Actors {
  bool ownersOnly = false;       ///< predicate with Owners; else every copy acts
  bool electOne = false;         ///< one thread for the whole operation, whatever the layout
  bool distinctRegisters = true; ///< registers with a free bit set do nothing
  bool broadcast = false;        ///< owners pass the result to the other copies (OwnerBroadcast)
};
Actors actorsOf(MemoryOp op, const LinearLayout &layout);

/// How owners pass a result to the copies: inside a warp by one shuffle a register, across warps through scratch.
struct OwnerBroadcast {
  bool none = true;     ///< no copies
  bool shuffle = false; ///< read from lane `ownerLane`, same register
  bool scratch = false; ///< warps or blocks copy, or lanes copy with other registers: convert instead
  std::array<BitVector, laneBits> ownerLane = {}; ///< columns: own lane -> owner's lane
};
OwnerBroadcast ownerBroadcast(const LinearLayout &layout);

} // namespace kiln::layout

#endif // KILN_LAYOUT_MEMORYACCESS_H
