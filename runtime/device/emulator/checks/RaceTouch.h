//===- RaceTouch.h - One access on its way through the checks -------------===//
//
// Private to Races.cpp, AsyncRaces.cpp and RaceReports.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETOUCH_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETOUCH_H

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Executor.h"

namespace kiln::emulator {

/// Whether an earlier access comes before what a warp does now, or what the warps of a warpgroup issue now.
struct WarpOrder final : Order {
  WarpOrder(const WarpClocks &clocks, const WarpState &w) : block(w.block->linear), lanes(w.exec) { add(clocks, w); }
  WarpOrder(std::uint64_t block, std::uint32_t lanes) : block(block), lanes(lanes) {}
  void add(const WarpClocks &of, const WarpState &w) {
    clocks[count] = &of;
    syncs = w.syncs;
    strict = w.block->worker.launch.strictProxy;
    warps[count++] = static_cast<std::uint8_t>(w.index);
  }
  bool knows(std::uint64_t row, unsigned index, std::uint32_t clock) const {
    for (unsigned i = 0; i < count; ++i)
      if (!clocks[i]->knows(block, warps[i], lanes, row, index, clock))
        return false;
    return true;
  }
  bool before(const Access &then) const override { return knows(then.row, then.warp, then.clock); }
  bool apart(const Access &then) const override {
    if (count != 1 || then.warp != warps[0])
      return false;
    const WarpClocks &c = *clocks[0];
    if (then.row == block)
      return then.syncs == syncs && then.clock > c.met;
    return then.row == agentRow(block, AgentKind::CopyAsync) &&
           !(c.others && c.others->reaches(then.row, then.warp, then.clock)) &&
           lanes & ~c.lanesThatKnow(then.row, then.warp, then.clock, true);
  }
  bool visible(const Access &then) const override {
    for (unsigned i = 0; i < count; ++i)
      if (!clocks[i]->knows(block, warps[i], lanes, then.row | proxy, then.warp, then.clock))
        return false;
    return true;
  }
  bool mayOverwrite(const Access &then) const override { return !strict || visible(then); }
  static constexpr unsigned mostIssuers = 4;
  const WarpClocks *clocks[mostIssuers];
  std::uint64_t block, proxy = 0; ///< proxy: bit of the space that is accessed
  std::uint32_t lanes;            ///< that access it
  std::uint32_t syncs = 0;        ///< of the warp, if it is one
  std::uint8_t warps[mostIssuers], count = 0;
  bool strict = false; ///< EmulatorOptions::strictProxy
};

struct BlockRaces::Touch {
  BlockRaces &self; ///< of the block whose warp it is
  WarpState &w;
  const Op &op;
  const LaneAccess *m; ///< null: asynchronous
  Access access;
  WarpOrder order;
  BlockRaces *home = nullptr; ///< of the block whose shared memory is accessed
  std::uint64_t origin = 0;   ///< host address of offset 0
  std::uint32_t number = 0;
  const RaceTable *numberedBy = nullptr; ///< of global memory: whose number that is
  bool fresh = false;                    ///< has a number of its own in every table
  bool completes = false;                ///< ObjectUse::Complete
  bool sameLanes = false;                ///< shares its number with accesses of the same lanes only
  std::uint64_t numberedShards = 0;      ///< fresh: where it has that number by now
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACETOUCH_H
