//===- Timeline.h - One block's time ---------------------------------------===//
//
// What every warp of one block did when, as the emulator ran it: `Device::record({.timeline = true})`,
// `Device::takeTimelines`.  The clock ticks once for an instruction of each warp that can run (in order), or once an
// instruction (schedules with a seed, which run one warp at a time): it shows who waits for whom, not how long a GPU
// takes.
//
// Time is divided into cells; a run that is too long for a tick each has several ticks a cell, so a Timeline has a
// bounded size.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TIMELINE_H
#define KILN_TIMELINE_H

#include "kiln/Counters.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

enum class WaitKind : std::uint8_t { Barrier, Cluster, Mbarrier, Group, Lanes };

struct TimelineWait {
  WaitKind kind = WaitKind::Barrier;
  std::string what; ///< "barrier 0", "mbarrier full+8", "cp.async groups"
};

struct TimelineCell {
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t instructions[instructionClasses] = {};
  std::uint32_t waiting = 0;                         ///< ticks
  std::uint32_t wait = none;                         ///< the last one: index into Timeline::waits
  std::uint32_t firstPlace = none, lastPlace = none; ///< of the instructions: indices into Timeline::places
};

/// An asynchronous operation, or several of one group or one cell.
struct TimelineWork {
  static constexpr std::uint64_t never = ~std::uint64_t(0);
  unsigned warp = 0;
  std::string opcode;
  std::uint32_t place = 0;
  std::uint64_t works = 0, bytes = 0;
  std::uint64_t issued = 0;        ///< the first one
  std::uint64_t delivered = never; ///< the last one's data had moved
  std::uint64_t observed = never;  ///< a wait that covers them was over
};

struct Timeline {
  std::string kernel;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, index[3] = {0, 0, 0}; ///< index: of the block in the grid
  bool inStep = true; ///< a tick is an instruction of each warp that can run
  std::uint64_t ticks = 0;
  std::uint64_t ticksPerCell = 1;
  std::vector<std::vector<TimelineCell>> warps;
  std::vector<std::uint64_t> ends; ///< by warp: when it left, or `ticks`
  std::vector<bool> left;          ///< by warp
  std::vector<TimelineWait> waits;
  std::vector<std::string> places; ///< "file:line", or "ptx line n"
  std::vector<TimelineWork> works;
};

} // namespace kiln

#endif // KILN_TIMELINE_H
