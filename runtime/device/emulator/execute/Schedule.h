//===- Schedule.h - Who runs next, as a function of a seed ----------------===//
//
// A launch whose schedule is not in order runs on one host thread: a few blocks are resident, a *turn* lets one warp of
// one of them execute a number of observable ops (Program::observable: what other threads could notice), then the next
// choice is made.  Every choice comes from a RandomStream whose seed is a mixture of the user's seed, the number of the
// launch on its device and the number of the block; nothing else enters, so results, counts and findings repeat.
//
// Candidates are bits 0 to 31 of a mask, the warps of a block.  Asynchronous work (copies in flight, matrix products
// that have not been waited for) becomes candidates 32 and up: choosing one delivers it.  Whatever style starves a warp
// then delivers as late as a wait allows, whatever favours one delivers at once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_SCHEDULE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_SCHEDULE_H

#include "kiln/Device.h"

#include <cstdint>
#include <initializer_list>

namespace kiln::emulator {

/// SplitMix64: the same on every machine.
class RandomStream {
public:
  explicit RandomStream(std::initializer_list<std::uint64_t> seeds = {}) {
    for (std::uint64_t s : seeds) {
      state ^= s;
      state = next();
    }
  }
  std::uint64_t next() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 .. n - 1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }

private:
  std::uint64_t state = 0;
};

/// Chooses among the candidates of one block.
class Chooser {
public:
  static constexpr unsigned maxCandidates = 64;
  static constexpr std::uint64_t untilBlocked = ~std::uint64_t(0);

  void start(Schedule schedule, RandomStream seeded, unsigned warps);
  /// One of the candidates, of which there is at least one.
  unsigned choose(std::uint64_t candidates);
  /// Observable ops until the next choice, at least 1.
  std::uint64_t turn();
  /// Whether the lanes that run next in a diverged warp are picked among all, and which of `n`; n: the usual ones.
  unsigned pickSplit(unsigned n);

private:
  enum class Style : std::uint8_t {
    Uniform,    ///< any candidate
    Reversed,   ///< the last warp first, as far as it gets
    Starved,    ///< one runs only if no other can
    Favoured,   ///< one runs whenever it can
    Finest,     ///< round robin backwards, one observable op each
    Priorities, ///< a random order, in which the running one falls to the end at random points
  };
  unsigned chosenByStyle(std::uint64_t candidates);
  unsigned any(std::uint64_t candidates);

  RandomStream random;
  Style style = Style::Uniform;
  unsigned special = 0, last = 0;
  std::uint16_t passedOver[maxCandidates] = {}; ///< choices since it ran, while it could
  std::uint64_t mean = 1;
  std::uint8_t priority[maxCandidates] = {}; ///< the highest runs
};

/// The order in which the blocks of a grid start: a permutation of 0 .. count - 1.
class BlockOrder {
public:
  BlockOrder(Schedule schedule, RandomStream &random, std::uint64_t count);
  std::uint64_t at(std::uint64_t position) const;

private:
  std::uint64_t count, factor = 1, offset = 0;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_SCHEDULE_H
