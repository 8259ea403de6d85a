//===- TimelineRecorder.h - Writes down one block's time ------------------===//
//
// Of one launch; BlockState::timeline of the block that is drawn, null for all others.  Told of every op (traceAfter),
// of the end of each turn, of asynchronous works when they are made and destroyed, and of waits that are over.
// Memory is bounded: the number of cells is, and works whose cells fall together are joined.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_TIMELINERECORDER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_TIMELINERECORDER_H

#include "kiln/Timeline.h"
#include "runtime/device/emulator/execute/Executor.h"

#include <map>
#include <unordered_map>

namespace kiln::emulator {

class AsyncWork;
enum class AsyncKind : std::uint8_t;

class TimelineRecorder {
public:
  static constexpr std::uint32_t noFlight = ~0u;

  TimelineRecorder(Dim3 index, bool inStep) : wanted(index), inStep(inStep) {}
  bool wants(Dim3 index) const { return index == wanted; }
  bool started() const { return !out.warps.empty(); }

  void start(const BlockState &block);
  /// The warp has executed `op`, whose copies move `asyncBytes`.
  void ran(const WarpState &w, const Op &op, const OpTraits &traits, std::uint64_t asyncBytes);
  /// Whether the op that ran last prepared operands of the next one: no time of its own.
  bool ranHelper() const { return helper; }
  /// The warp's turn is over; does it wait?
  void settle(const WarpState &w);
  /// Every warp that can run has executed an instruction.
  void tick() { ++now; }

  /// A work has been made: what it flies with.
  std::uint32_t issued(const AsyncWork &work);
  /// It is gone, its data have moved.
  void delivered(std::uint32_t flight);
  /// Works of `kind` of the warp in groups below `limit` have been waited for.
  void observedGroups(unsigned warp, AsyncKind kind, std::uint32_t limit);
  /// The flight completes phase `phase` of the mbarrier at `offset`; a wait has seen that the phases below are over.
  void completes(std::uint32_t flight, std::uint32_t offset, std::uint64_t phase);
  void observedPhases(std::uint32_t offset, std::uint64_t below);

  /// Also of a launch that ended early: what waits then waits to the end.
  Timeline finish(const Launch &launch);

private:
  struct Flight {
    unsigned warp = 0;
    AsyncKind kind{};
    std::uint32_t group = 0, op = 0, pending = 0;
    std::uint64_t works = 0, bytes = 0, issued = 0, lastIssued = 0;
    std::uint64_t delivered = TimelineWork::never, observed = TimelineWork::never;
    bool hasPhase = false;
    std::uint32_t mbarrier = 0;
    std::uint64_t phase = 0;
  };
  struct WarpTime {
    std::uint64_t upTo = 0; ///< everything before is in the cells
    bool waits = false;
    std::uint32_t wait = 0;
    std::uint32_t lastFlight = noFlight;
  };

  TimelineCell &cell(unsigned warp, std::uint64_t time);
  void makeCoarser();
  void fillWait(unsigned warp, std::uint64_t until);
  std::uint32_t place(std::uint32_t op);
  std::uint32_t waitNumber(const WarpState &w);
  bool joins(const Flight &f, const AsyncWork &work) const;

  const Dim3 wanted;
  const bool inStep;
  const Program *program = nullptr;
  const BlockState *block = nullptr;
  bool helper = false;
  std::uint64_t now = 0;
  std::size_t maxCells = 0;
  std::vector<WarpTime> times;
  std::map<std::uint32_t, Flight> flights;
  std::uint32_t nextFlight = 0;
  std::unordered_map<std::string, std::uint32_t> placeNumbers, waitNumbers;
  std::vector<std::uint32_t> placeOf; ///< by op
  Timeline out;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_TIMELINERECORDER_H
