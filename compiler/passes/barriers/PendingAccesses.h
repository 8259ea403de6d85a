//===- PendingAccesses.h - Accesses since the last barrier, on some path ------===//
//
// The state of BarrierSearch's walk.  A walk joins and compares states at every branch and round, so an access that
// comes later on a path is a number (PastTable), and a state has one byte for each of them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_PENDINGACCESSES_H
#define KILN_PASSES_BARRIERS_PENDINGACCESSES_H

#include "compiler/passes/barriers/GlobalAccess.h"
#include "compiler/passes/barriers/SharedFootprint.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <tuple>
#include <vector>

namespace kiln {

/// One access of an operation: to a buffer, to global memory, or to both.
struct Access {
  mlir::Operation *op = nullptr;
  std::optional<SharedFootprint> shared;
  std::optional<GlobalAccess> global;
  unsigned number = 0;  ///< of all accesses of the function
  bool elected = false; ///< of the elected thread
  bool copied = false;  ///< the copy engine writes it

  const SlotNumber *slot() const { return shared && shared->slotNumber() ? &*shared->slotNumber() : nullptr; }
};

/// An access that comes later on a path.
struct Past {
  const Access *access = nullptr;
  unsigned carried = 0; ///< 1: of an earlier round of a loop that it is in
  /// Rounds since then of the loop that counts its slot, modulo the number of slots; `unknown` where that loop has been
  /// entered again.
  int64_t rounds = 0;
  /// The loop around that was entered last since then, and which of its rounds this is, from 0 on; of accesses to one
  /// buffer of several.
  mlir::Operation *entered = nullptr;
  int64_t round = 0;
  static constexpr int64_t unknown = -1, mostRounds = 4; ///< that are told apart: a barrier comes soon

  /// When another round of the loop begins.
  Past inNextRound(mlir::Operation *loop) const;
};

/// Numbers for all that was seen.
class PastTable {
public:
  unsigned number(const Past &past);
  const Past &operator[](unsigned number) const { return pasts[number]; }
  /// Of the same access when another round of the loop begins.
  unsigned inNextRound(unsigned number, mlir::Operation *loop);

private:
  using Key = std::tuple<const Access *, unsigned, int64_t, mlir::Operation *, int64_t>;
  std::deque<Past> pasts; ///< places that stay
  llvm::DenseMap<Key, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, std::vector<unsigned>>
      next; ///< by loop: one more than the number; 0: not asked yet
};

/// What lies after an access on every path.
struct Synced {
  bool warp = false;     ///< a barrier of the warp
  bool elected = false;  ///< the elected thread has waited for an mbarrier that says that it is done
  bool computes = false; ///< the warps that compute have, or a barrier of them; only where others copy
};

/// Numbers of PastTable, each with what lies after it.
class PendingAccesses {
public:
  void set(unsigned number, Synced synced) { cell(number) = encoded(synced); }
  void clear() { cells.clear(); }
  /// On another path: what is on both has only what lies after it on both.
  void join(unsigned number, Synced synced) { join(cell(number), encoded(synced)); }
  void join(const PendingAccesses &other) {
    if (cells.size() < other.cells.size())
      cells.resize(other.cells.size());
    for (size_t i = 0; i < other.cells.size(); ++i)
      join(cells[i], other.cells[i]);
  }
  template <typename Use> void forEach(Use &&use) const {
    for (size_t i = 0; i < cells.size(); ++i)
      if (cells[i])
        use(static_cast<unsigned>(i), decoded(cells[i]));
  }
  /// `change` may change what lies after an access; false: the access is no longer pending.
  template <typename Change> void update(Change &&change) {
    for (size_t i = 0; i < cells.size(); ++i)
      if (cells[i]) {
        Synced synced = decoded(cells[i]);
        cells[i] = change(static_cast<unsigned>(i), synced) ? encoded(synced) : 0;
      }
  }
  bool operator==(const PendingAccesses &other) const {
    const auto &[less, more] = cells.size() < other.cells.size()
                                   ? std::pair<const Cells &, const Cells &>(cells, other.cells)
                                   : std::pair<const Cells &, const Cells &>(other.cells, cells);
    return std::equal(less.begin(), less.end(), more.begin()) &&
           std::all_of(more.begin() + static_cast<std::ptrdiff_t>(less.size()), more.end(), [](auto c) { return !c; });
  }

private:
  using Cells = std::vector<uint8_t>; ///< 0: not pending
  static uint8_t encoded(Synced s) { return static_cast<uint8_t>(1 | s.warp << 1 | s.elected << 2 | s.computes << 3); }
  static Synced decoded(uint8_t c) { return {(c & 2) != 0, (c & 4) != 0, (c & 8) != 0}; }
  static void join(uint8_t &into, uint8_t other) { into = into && other ? into & other : into | other; }
  uint8_t &cell(unsigned number) {
    if (cells.size() <= number)
      cells.resize(number + 1);
    return cells[number];
  }
  Cells cells;
};

} // namespace kiln

#endif // KILN_PASSES_BARRIERS_PENDINGACCESSES_H
