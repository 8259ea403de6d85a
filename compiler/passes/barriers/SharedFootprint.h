//===- SharedFootprint.h - Which threads touch which bytes of shared memory -===//
//
// For insert-barriers.  A footprint lists, for every element-sized cell that an operation reads or writes, the warps
// and the lanes that do.  It is worked out by walking the access's plan place by place; what has no plan (a gather, an
// unknown buffer) is every thread on every byte it may reach.
//
// What one thread does (`elected`) needs nothing before what it does later, and is anyone's for all others.
//
// An access in flight begins at its operation.  A wait publishes what was copied: from there on it counts as written
// (of what was read: as read) by every thread, at that moment; what threads have others read for them, as read by
// these.  `Waits::OfOwners` has what threads copied written by these, too, where they are known: of a wait for all that
// was copied by one layout.  That asks for fewer barriers, `Waits::OfAll` puts them where one does for more.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_SHAREDFOOTPRINT_H
#define KILN_PASSES_BARRIERS_SHAREDFOOTPRINT_H

#include "compiler/passes/barriers/SlotNumber.h"
#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {

/// What two accesses need between them, weakest first.
enum class Hazard { None, Lanes, Warps };

class SharedFootprint {
public:
  /// Who has written what a wait publishes.
  enum class Waits { OfAll, OfOwners };

  /// One for each access that the operation states; nothing for an operation that does not touch shared memory.  A
  /// failure names what is wrong with one that does.
  static Result<std::vector<SharedFootprint>> of(mlir::Operation *op, Waits waits = Waits::OfAll);
  /// Of a wait for a phase of an mbarrier: the buffers that others have done with by then, as written by everyone.
  static Result<std::vector<SharedFootprint>> releasedBy(mlir::Operation *op);

  bool writes() const { return write; }
  /// Whose bytes these are; null if that is not known.
  tile_gpu::LocalAllocOp buffer() const { return alloc; }

  /// Warps: some byte is touched by two warps; Lanes: by two lanes of one warp, and by no other; and one is a write.
  /// `rounds`: how many rounds of the loop that counts this one's slot lie between; nothing if that is not known.
  /// `round`: for an access before the loop that counts the other's slot, the round that the other is in; nothing if
  /// that is not known.
  Hazard against(const SharedFootprint &other, std::optional<int64_t> rounds, std::optional<int64_t> round) const;
  /// What they would need if the buffers, which are known and not the same, began at the same byte.
  Hazard ifShared(const SharedFootprint &other) const;

  /// The loop's number of the buffer, where it is one of several that is known.
  const std::optional<SlotNumber> &slotNumber() const { return number; }
  /// The number of the buffer, where it is one of several and a constant.
  std::optional<int64_t> constantNumber() const { return constant; }

  struct Cell {
    uint32_t warps = 0; ///< that touch it
    uint32_t lanes = 0; ///< of any of them
  };
  /// Who touches a byte of the kernel's shared memory; null if it lies outside of what the access may reach.
  const Cell *cellAt(uint64_t byte) const;

private:
  struct Builder;

  /// Of the bytes alone; the other's lie so many bytes higher than they say.
  Hazard overlap(const SharedFootprint &other, int64_t shift) const;

  bool write = false;
  bool elected = false;         ///< by the one thread, or begun by it; the cells say: by anyone
  tile_gpu::LocalAllocOp alloc; ///< of whose buffers `number` or `constant` picks one
  std::optional<SlotNumber> number;
  std::optional<int64_t> constant;
  uint64_t begin = 0, end = 0; ///< bytes of the kernel's shared memory
  unsigned cellBytes = 1;
  std::vector<Cell> cells; ///< from `begin` on; empty: every byte in begin .. end is touched by `everyone`
  Cell everyone;
};

} // namespace kiln

#endif // KILN_PASSES_BARRIERS_SHAREDFOOTPRINT_H
