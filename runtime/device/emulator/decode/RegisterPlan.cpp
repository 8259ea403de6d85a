#include "runtime/device/emulator/decode/RegisterPlan.h"

#include "runtime/device/emulator/decode/DecodeState.h"

#include <algorithm>
#include <queue>

namespace kiln::emulator {

namespace {

constexpr std::uint32_t none = ~0u;

/// The ops from the first to the last at which a register may be live.
struct Interval {
  std::uint32_t first = none, last = 0;
  void cover(std::uint32_t op) {
    first = std::min(first, op);
    last = std::max(last, op);
  }
};

/// Which registers are live at the start of each block: a bit matrix, blocks by registers.
class Liveness {
public:
  Liveness(const FlowGraph &graph, std::size_t registers)
      : graph(graph), words((registers + 63) / 64), live(words * graph.size()), kill(words * graph.size()) {}

  static bool tooLarge(const FlowGraph &graph, std::size_t registers) {
    return (registers + 63) / 64 * graph.size() > std::size_t(1) << 24; // words: twice 128 MiB
  }
  /// In program order, the reads of an op before its writes.
  void access(std::uint32_t block, std::uint32_t r, bool write, bool whole) {
    const std::size_t word = block * words + r / 64;
    const std::uint64_t bit = std::uint64_t(1) << r % 64;
    if (write)
      kill[word] |= whole ? bit : 0;
    else if (!(kill[word] & bit))
      live[word] |= bit;
  }
  void solve() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = graph.size(); b-- > 0;)
        for (std::uint32_t s : graph.successors[b])
          for (std::size_t w = 0; w < words; ++w)
            if (const std::uint64_t more = live[s * words + w] & ~kill[b * words + w] & ~live[b * words + w]) {
              live[b * words + w] |= more;
              changed = true;
            }
    }
  }
  template <typename Fn> void eachLiveAtStart(std::uint32_t block, Fn f) const {
    for (std::size_t w = 0; w < words; ++w)
      for (std::uint64_t bits = live[block * words + w]; bits; bits &= bits - 1)
        f(static_cast<std::uint32_t>(w * 64 + static_cast<unsigned>(__builtin_ctzll(bits))));
  }

private:
  const FlowGraph &graph;
  std::size_t words;
  std::vector<std::uint64_t> live, kill;
};

/// Gives each interval a slot of its width that no overlapping interval has.
void assign(const std::vector<Interval> &intervals, std::span<const std::pair<Slot, unsigned>> registers,
            unsigned width, std::vector<Slot> &places) {
  std::vector<std::uint32_t> wanted;
  std::vector<Slot> free;
  for (std::uint32_t r = 0; r < registers.size(); ++r)
    if (registers[r].second == width) {
      free.push_back(registers[r].first);
      if (intervals[r].first != none)
        wanted.push_back(r);
    }
  std::sort(free.rbegin(), free.rend()); // taken from the back: the lowest first, then what was used last
  std::stable_sort(wanted.begin(), wanted.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return intervals[a].first < intervals[b].first; });
  using End = std::pair<std::uint32_t, Slot>;
  std::priority_queue<End, std::vector<End>, std::greater<>> active;
  for (std::uint32_t r : wanted) {
    while (!active.empty() && active.top().first < intervals[r].first) {
      free.push_back(active.top().second);
      active.pop();
    }
    places[r] = free.back();
    free.pop_back();
    active.emplace(intervals[r].last, places[r]);
  }
}

} // namespace

RegisterPlan planRegisters(const FlowGraph &graph, std::span<const SlotAccess> accesses,
                           std::span<const std::pair<Slot, unsigned>> registers) {
  RegisterPlan plan;
  auto poison = [&](Slot slot, unsigned bytes) {
    for (unsigned u = 0; u < slotUnits(bytes); ++u)
      plan.unwritten.push_back(slot + 128 * u);
  };
  if (Liveness::tooLarge(graph, registers.size())) {
    for (const auto &[slot, bytes] : registers) {
      plan.places.push_back(slot);
      poison(slot, bytes);
    }
    return plan;
  }
  std::unordered_map<Slot, std::uint32_t> numbers;
  for (std::uint32_t r = 0; r < registers.size(); ++r)
    numbers[registers[r].first] = r;
  const std::uint32_t begin = graph.starts.front(), end = graph.starts.back();
  std::vector<Interval> intervals(registers.size());
  Liveness liveness(graph, registers.size());
  std::vector<const SlotAccess *> mine;
  for (const SlotAccess &a : accesses)
    if (a.op >= begin && a.op < end && numbers.count(a.slot))
      mine.push_back(&a);
  std::stable_sort(mine.begin(), mine.end(), [](const SlotAccess *a, const SlotAccess *b) {
    return a->op != b->op ? a->op < b->op : !a->write && b->write;
  });
  for (const SlotAccess *a : mine) {
    const std::uint32_t r = numbers[a->slot];
    intervals[r].cover(a->op);
    liveness.access(graph.blockOf(a->op), r, a->write, a->whole);
  }
  liveness.solve();
  for (std::uint32_t b = 0; b < graph.size(); ++b) {
    liveness.eachLiveAtStart(b, [&](std::uint32_t r) { intervals[r].cover(graph.starts[b]); });
    for (std::uint32_t s : graph.successors[b])
      liveness.eachLiveAtStart(s, [&](std::uint32_t r) { intervals[r].cover(graph.starts[b + 1] - 1); });
  }
  plan.places.assign(registers.size(), trashSlot);
  for (unsigned width : {4u, 8u, 16u})
    assign(intervals, registers, width, plan.places);
  liveness.eachLiveAtStart(0, [&](std::uint32_t r) { poison(plan.places[r], registers[r].second); });
  return plan;
}

} // namespace kiln::emulator
