//===- RaceTouch.h - One access on its way through the checks -------------===//
//
// Private to Races.cpp and RaceReports.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_RACETOUCH_H
#define KILN_RUNTIME_DEVICE_EMULATOR_RACETOUCH_H

#include "runtime/device/emulator/Executor.h"
#include "runtime/device/emulator/Races.h"

namespace kiln::emulator {

/// Whether an earlier access comes before what a warp does now.
struct WarpOrder final : Order {
  WarpOrder(const WarpClocks &clocks, const WarpState &w) : clocks(clocks), block(w.block->linear), warp(w.index) {}
  bool before(const Access &then) const override {
    if (then.block == block)
      return then.warp == warp || clocks.own[then.warp] >= then.clock;
    if (!clocks.others)
      return false;
    const auto known = clocks.others->find(then.block);
    return known != clocks.others->end() && known->second[then.warp] >= then.clock;
  }
  const WarpClocks &clocks;
  std::uint64_t block;
  unsigned warp;
};

struct BlockRaces::Touch {
  WarpState &w;
  const Op &op;
  const LaneAccess &m;
  Access access;
  WarpOrder order;
  std::uint64_t origin = 0; ///< host address of offset 0
  std::uint32_t number = 0;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_RACETOUCH_H
