//===- RaceTable.h - Who touched a word last, as one number ---------------===//
//
// Every 4-byte word of a memory has a *cell*: the number of a state.  A state says which accesses may still collide
// with a later one: the last writes, and the reads since, each with the bytes of the word that it covers.  An access is
// what one warp does with one op between two synchronisations, so the words of a contiguous access nearly always share
// their state, and what an access makes of a state is computed once and remembered.
//
// State 0, and every number from before the last reset, means: nothing that could still collide.  Numbers rise for
// ever, so a reset costs nothing and remembered transitions never become wrong.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETABLE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETABLE_H

#include "runtime/device/emulator/checks/RaceKnowledge.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::emulator {

/// What one warp does with one op between two synchronisations, or what an asynchronous operation does.
struct Access {
  std::uint64_t row = 0;   ///< of the agent (RaceKnowledge.h): a warp's block, or a row of asynchronous agents
  std::uint64_t first = 0; ///< address of lane 0 at the last execution, if the lanes follow each other; asynchronous:
                           ///< the issuer's block
  std::uint32_t clock = 0; ///< of the agent; a warp's rises with every release
  std::uint32_t syncs = 0; ///< of the warp: what its lanes did together so far; asynchronous: the issuer's clock
  std::uint32_t op = 0, lanes = 0;
  std::uint8_t warp = 0;   ///< place in the row
  std::uint8_t issuer = 0; ///< asynchronous: the warp that issued it
  std::uint8_t bytes = 0;  ///< of a lane
  bool write : 1 = false, read : 1 = false;
  bool strong : 1 = false;     ///< atomic, volatile, relaxed, acquire or release
  bool wide : 1 = false;       ///< strong for other blocks too
  bool regular : 1 = false;    ///< `first` counts; lanes follow each other
  bool asyncProxy : 1 = false; ///< through the async proxy

  std::uint64_t block() const { return blockOfRow(row); }
  bool async() const { return kindOfRow(row) != AgentKind::Warp; }
};

/// A part of a state: `bytes` is a mask of the word's four.
struct StatePart {
  std::uint32_t access = 0;
  std::uint8_t bytes = 0;
  bool operator==(const StatePart &) const = default;
};

/// What an access makes of a state.
struct Transition {
  std::uint32_t next = 0;     ///< the new state
  std::uint32_t collides = 0; ///< an access it races with, + 1
  // Each of these bytes was touched by a lane of the warp that is known to itself alone (Order::apart):
  std::uint8_t laneWrites = 0; ///< written with another op, which is a conflict if it was another lane
  std::uint8_t laneReads = 0;  ///< the same for reads
  std::uint8_t readBefore = 0; ///< read, conflict or not
  bool unseen = false;         ///< what it collides with is ordered, but the async proxy may not see it
  std::uint32_t sameWarp = 0;  ///< an access after laneWrites or laneReads, + 1
};

/// Answers whether an earlier access comes before what the current warp does now.
class Order {
public:
  virtual bool before(const Access &earlier) const = 0;
  /// Whether the async proxy may see a generic write that comes before.
  virtual bool visible(const Access &earlier) const = 0;
  /// Whether the async proxy may write what a generic read that comes before has read.
  virtual bool mayOverwrite(const Access &earlier) const = 0;
  /// Whether lanes of the current warp made an access that comes before, and each of them knows only of its own part.
  virtual bool apart(const Access &earlier) const = 0;

protected:
  ~Order() = default;
};

class RaceTable {
public:
  /// Holds about `limit` states or accesses and remembers 2^logCache transitions.
  RaceTable(std::size_t limit, unsigned logCache);
  /// Forgets: everything so far is ordered before everything that comes.
  void reset();
  /// The same; states are numbered from `first` on.
  void startAt(std::uint32_t first);
  /// Everything below means what 0 means.
  std::uint32_t firstState() const { return base; }
  /// The number that the next state will have.
  std::uint32_t nextState() const { return base + static_cast<std::uint32_t>(states.size()); }
  /// It holds as much as it should: a sweep is due.
  bool full() const {
    return states.size() >= limit || accesses.size() >= limit || parts.size() >= partsOfState * limit;
  }
  /// More than half full.
  bool crowded() const { return std::max({states.size(), accesses.size(), parts.size() / partsOfState}) > limit / 2; }
  void setLimit(std::size_t to) { limit = to; }
  /// Holds more from now on, if not more than `most`; false if it does already.
  bool grow(std::size_t most);
  /// Forgets what no cell leads to and what settled(access) says, and renumbers the cells: eachSpan(f) calls f with
  /// spans of all of them.
  template <typename EachSpan, typename Settled> void sweep(EachSpan eachSpan, Settled settled);
  /// Bytes that it holds.
  std::size_t bytes() const;
  /// What a state with its parts and accesses takes, if there are `limit` of them.
  static constexpr std::size_t bytesOfState = 64;
  /// The numbers are nearly used up: a new table is due, and cells of 0.
  bool wornOut() const { return (base | accessBase) >> 31; }

  /// The number of an access like `a` (of which `first`, `lanes` and `regular` are replaced), a new one if `fresh`;
  /// sameLanes: of an access of the same lanes.
  std::uint32_t number(const Access &a, bool fresh = false, bool sameLanes = false);
  /// Whether number(), which gave `number` once, still knows it.
  bool holds(std::uint32_t number) const { return number >= accessBase; }
  const Access &access(std::uint32_t number) const { return accesses[number - accessBase]; }

  /// What access `a` to `bytes` of a word makes of its state.
  Transition apply(std::uint32_t state, std::uint32_t a, std::uint8_t bytes, const Order &order) {
    if (state < base)
      state = 0;
    const Memo &m = memo[memoIndex(state, a, bytes)];
    if (m.state == state && m.access == a && m.bytes == bytes)
      return m.result;
    return compute(state, a, bytes, order);
  }

private:
  struct Memo {
    std::uint32_t state = 0, access = 0;
    std::uint8_t bytes = 0;
    Transition result;
  };
  struct State {
    std::uint32_t first = 0, count = 0; ///< in parts
  };
  static constexpr std::size_t partsOfState = 2; ///< that there is room for, on average
  static_assert(sizeof(Access) + sizeof(State) + partsOfState * sizeof(StatePart) == bytesOfState);
  /// Room for `more` elements, `most` in all if that is enough: doubling could take twice what is used.
  template <typename T> static void makeRoom(std::vector<T> &v, std::size_t more, std::size_t most) {
    if (v.size() + more > v.capacity())
      v.reserve(std::max(v.size() + more, std::min(std::max(v.capacity() * 2, std::size_t(64)), most)));
  }
  std::size_t memoIndex(std::uint32_t state, std::uint32_t a, std::uint8_t bytes) const {
    return (state * 0x9E3779B1u ^ a * 0x85EBCA6Bu ^ bytes * 0x27D4EB2Fu) >> (32 - logCache);
  }
  Transition compute(std::uint32_t state, std::uint32_t a, std::uint8_t bytes, const Order &order);

  std::size_t limit;
  unsigned logCache;
  std::uint32_t base = 1, accessBase = 1;
  std::vector<Access> accesses;
  std::vector<State> states;
  std::vector<StatePart> parts, scratch;
  std::vector<Memo> memo;
  std::vector<std::uint32_t> recent; ///< hash of (block, warp, op) -> access
};

template <typename EachSpan, typename Settled> void RaceTable::sweep(EachSpan eachSpan, Settled settled) {
  constexpr std::uint32_t unknown = ~0u;
  std::vector<std::uint32_t> newState(states.size(), unknown), newAccess(accesses.size(), unknown);
  std::vector<Access> keptAccesses;
  std::vector<State> keptStates;
  std::vector<StatePart> keptParts;
  const std::uint32_t newBase = nextState(), newAccessBase = accessBase + static_cast<std::uint32_t>(accesses.size());
  auto renumber = [&](const State &old) {
    State kept{static_cast<std::uint32_t>(keptParts.size()), 0};
    for (std::uint32_t i = 0; i < old.count; ++i) {
      StatePart p = parts[old.first + i];
      std::uint32_t &number = newAccess[p.access - accessBase];
      if (number == unknown) {
        const Access &a = accesses[p.access - accessBase];
        number = settled(a) ? 0 : newAccessBase + static_cast<std::uint32_t>(keptAccesses.size());
        if (number)
          keptAccesses.push_back(a);
      }
      if (!number)
        continue;
      p.access = number;
      keptParts.push_back(p);
      ++kept.count;
    }
    if (!kept.count)
      return 0u;
    keptStates.push_back(kept);
    return newBase + static_cast<std::uint32_t>(keptStates.size() - 1);
  };
  eachSpan([&](std::span<std::uint32_t> cells) {
    for (std::uint32_t &cell : cells) {
      if (cell < base) {
        if (cell) // pages of zeros stay as they are
          cell = 0;
        continue;
      }
      std::uint32_t &to = newState[cell - base];
      if (to == unknown)
        to = renumber(states[cell - base]);
      cell = to;
    }
  });
  accesses = std::move(keptAccesses);
  states = std::move(keptStates);
  parts = std::move(keptParts);
  base = newBase;
  accessBase = newAccessBase;
}

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETABLE_H
