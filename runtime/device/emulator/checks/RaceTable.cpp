#include "runtime/device/emulator/checks/RaceTable.h"

namespace kiln::emulator {

RaceTable::RaceTable(std::size_t limit, unsigned logCache)
    : limit(limit), logCache(logCache), memo(std::size_t(1) << logCache), recent(std::size_t(1) << logCache, 0) {}

void RaceTable::reset() {
  base = nextState();
  accessBase += static_cast<std::uint32_t>(accesses.size());
  accesses.clear();
  states.clear();
  parts.clear();
  if (accesses.capacity() > 1 << 20) { // a large launch is over: most are small
    accesses = {};
    states = {};
    parts = {};
  }
}

void RaceTable::startAt(std::uint32_t first) {
  reset();
  base = first;
}

std::size_t RaceTable::bytes() const {
  return accesses.capacity() * sizeof(Access) + states.capacity() * sizeof(State) +
         (parts.capacity() + scratch.capacity()) * sizeof(StatePart) + memo.capacity() * sizeof(Memo) +
         recent.capacity() * sizeof(recent[0]);
}

bool RaceTable::grow(std::size_t most) {
  if (limit >= most)
    return false;
  limit = std::min(limit * 2, most);
  return true;
}

std::uint32_t RaceTable::number(const Access &a, bool fresh, bool sameLanes) {
  const std::uint64_t hash = (a.row * 0x9E3779B97F4A7C15u + a.warp * 0x85EBCA6Bu + a.op * 0xC2B2AE3Du) >> 13;
  std::uint32_t &slot = recent[hash & (recent.size() - 1)];
  if (slot >= accessBase && !fresh) {
    Access &known = accesses[slot - accessBase];
    if (known.row == a.row && known.warp == a.warp && known.op == a.op && known.clock == a.clock &&
        known.syncs == a.syncs && known.write == a.write && (!sameLanes || known.lanes == a.lanes)) {
      known.first = a.first;
      known.lanes = a.lanes;
      known.regular = a.regular;
      return slot;
    }
  }
  slot = accessBase + static_cast<std::uint32_t>(accesses.size());
  makeRoom(accesses, 1, limit);
  accesses.push_back(a);
  return slot;
}

// A part is dropped when whatever collides with it later collides with the new access too, or is ordered after both: a
// read that comes before the new access; a write whose bytes are written again.  Of reads and atomics of other blocks
// two are kept, of different blocks: any third block collides with one of them.
Transition RaceTable::compute(std::uint32_t state, std::uint32_t number, std::uint8_t bytes, const Order &order) {
  const Access now = access(number);
  Transition out;
  scratch.clear();
  bool present = false, needed = true;
  const std::uint64_t block = now.block();
  unsigned foreignReads = 0;
  std::uint64_t foreignBlock = 0;
  const State old = state ? states[state - base] : State{};
  for (std::uint32_t i = 0; i < old.count; ++i) {
    StatePart p = parts[old.first + i];
    const Access &then = access(p.access);
    const std::uint8_t both = p.bytes & bytes;
    const bool sameRole = then.write == now.write && then.asyncProxy == now.asyncProxy;
    const bool apart = both && order.apart(then);
    if (!then.write && apart)
      out.readBefore |= both;
    if (p.access == number) {
      p.bytes |= bytes;
      present = true;
      scratch.push_back(p);
      continue;
    }
    const bool ordered = order.before(then);
    if (both) {
      const bool conflict = then.write || now.write, changesProxy = now.asyncProxy && !then.asyncProxy;
      const bool readUnseen = ordered && changesProxy && !then.write && !order.mayOverwrite(then);
      const bool morallyStrong = then.strong && now.strong && then.asyncProxy == now.asyncProxy &&
                                 (then.block() == block || (then.wide && now.wide));
      if (conflict && !ordered && !morallyStrong) {
        out.collides = p.access + 1;
        out.unseen = false;
      } else if (ordered && then.write && changesProxy && !order.visible(then) &&
                 (!out.collides ||
                  (out.unseen && (access(out.collides - 1).async() || !access(out.collides - 1).write)))) {
        // A store rather than a cp.async of the same word, which may not be reported.
        out.collides = p.access + 1;
        out.unseen = true;
      } else if (readUnseen && now.write && !out.collides) {
        out.collides = p.access + 1;
        out.unseen = true;
      }
      if (conflict && ordered && apart && !morallyStrong) {
        out.laneWrites |= then.write ? both : 0;
        out.laneReads |= then.write ? 0 : both;
        out.sameWarp = p.access + 1;
      }
      // After a race was reported its other side is dropped as well: once is enough.
      const bool replaced = now.write ? ordered || !morallyStrong : !then.write && ordered && !readUnseen;
      if (replaced)
        p.bytes &= static_cast<std::uint8_t>(~bytes);
    }
    if (!p.bytes)
      continue;
    if (then.block() != block && !ordered && sameRole && (p.bytes & bytes) == bytes && (!now.write || then.strong)) {
      foreignReads += foreignReads == 0 || then.block() != foreignBlock;
      foreignBlock = then.block();
      needed = needed && foreignReads < 2;
    }
    scratch.push_back(p);
  }
  if (!present && needed)
    scratch.push_back({number, bytes});
  bool same = scratch.size() == old.count;
  for (std::uint32_t i = 0; same && i < old.count; ++i)
    same = scratch[i] == parts[old.first + i];
  if (same) {
    out.next = state;
  } else {
    out.next = nextState();
    makeRoom(states, 1, limit);
    makeRoom(parts, scratch.size(), partsOfState * limit);
    states.push_back({static_cast<std::uint32_t>(parts.size()), static_cast<std::uint32_t>(scratch.size())});
    parts.insert(parts.end(), scratch.begin(), scratch.end());
  }
  memo[memoIndex(state, number, bytes)] = {state, number, bytes, out};
  return out;
}

} // namespace kiln::emulator
