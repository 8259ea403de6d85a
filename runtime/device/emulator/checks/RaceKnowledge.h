//===- RaceKnowledge.h - How far agents are known -------------------------===//
//
// Agents do things in an order of their own: a warp, the cp.async of a warp, the bulk copies that complete an mbarrier.
// An agent has a place in a *row*, and its clock there says how much of what it did is known.  Rows belong to blocks:
// one for the block's warps, and one for each kind of asynchronous agents.  What the async proxy may see of the generic
// accesses of a row is a row of its own (sharedProxyBit, globalProxyBit, mapProxyBit).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACEKNOWLEDGE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACEKNOWLEDGE_H

#include "runtime/device/emulator/decode/Op.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::emulator {

/// Agents that are no warps have rows of their own, by kind; their block is the low part of the row's number.
enum class AgentKind : std::uint8_t {
  Warp,      ///< the block's warps
  CopyAsync, ///< cp.async of warp i
  Wgmma,     ///< of warpgroup i
  Mbarrier,  ///< bulk operations that complete the block's mbarrier chunk * 32 + i
  BulkRead,  ///< reads of bulk groups: chunk = warp, i = lane
  BulkWrite, ///< writes of bulk groups
};
constexpr std::uint64_t agentRow(std::uint64_t linear, AgentKind kind, unsigned chunk = 0) {
  return linear | std::uint64_t(kind) << 48 | std::uint64_t(chunk) << 56;
}
constexpr std::uint64_t sharedProxyBit = std::uint64_t(1) << 62, globalProxyBit = std::uint64_t(1) << 61;
/// What copies may see of writes to their tensor maps; and what has been released to them, but not yet acquired.
constexpr std::uint64_t mapProxyBit = std::uint64_t(1) << 63, releasedMapBits = mapProxyBit | sharedProxyBit;
constexpr std::uint64_t blockOfRow(std::uint64_t row) {
  return row & ((std::uint64_t(1) << 48) - 1);
}
constexpr AgentKind kindOfRow(std::uint64_t row) {
  return static_cast<AgentKind>(row >> 48 & 0xFF);
}
/// Whether the row is what another proxy may see of another row.
constexpr bool isProxyRow(std::uint64_t row) {
  return row & (sharedProxyBit | globalProxyBit | mapProxyBit);
}

using ClockRow = std::array<std::uint32_t, warpSize>;
inline void joinRow(ClockRow &into, const ClockRow &from) {
  for (unsigned i = 0; i < warpSize; ++i)
    into[i] = into[i] > from[i] ? into[i] : from[i];
}
inline bool coversRow(const ClockRow &a, const ClockRow &b) {
  bool less = false;
  for (unsigned i = 0; i < warpSize; ++i)
    less |= a[i] < b[i];
  return !less;
}

/// Rows by number, sorted.  There are few, and they are copied more often than they are looked for.
class Knowledge {
public:
  using Entry = std::pair<std::uint64_t, ClockRow>;
  /// Zeros if it is new.
  ClockRow &operator[](std::uint64_t row) {
    const auto at = place(row);
    return at != rows.end() && at->first == row ? at->second : rows.insert(at, {row, ClockRow{}})->second;
  }
  const ClockRow *find(std::uint64_t row) const {
    const auto at = const_cast<Knowledge *>(this)->place(row);
    return at != rows.end() && at->first == row ? &at->second : nullptr;
  }
  /// Whether the clock of agent `index` of the row has reached `clock`.
  bool reaches(std::uint64_t row, unsigned index, std::uint32_t clock) const {
    const ClockRow *known = find(row);
    return known && (*known)[index] >= clock;
  }
  void erase(std::uint64_t row) {
    if (const auto at = place(row); at != rows.end() && at->first == row)
      rows.erase(at);
  }
  bool empty() const { return rows.empty(); }
  void clear() { rows.clear(); }
  void join(const Knowledge &from);
  /// Whether `from` would add nothing; its row `except` does not count.
  bool covers(const Knowledge &from, std::uint64_t except = ~std::uint64_t(0)) const;
  auto begin() const { return rows.begin(); }
  auto end() const { return rows.end(); }

private:
  std::vector<Entry>::iterator place(std::uint64_t row) {
    auto at = rows.begin();
    while (at != rows.end() && at->first < row)
      ++at;
    return at;
  }
  std::vector<Entry> rows;
};
inline void joinKnowledge(Knowledge &into, const Knowledge &from) {
  into.join(from);
}

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACEKNOWLEDGE_H
