// Accesses to the shared memory of a block that may have exited before them: section 3.5 of the emulator specification.
//
// A block's exit comes after what any of its warps knew when it left, and after every phase of the cluster's barrier
// that one of its threads waited for: an arrival tells that the warp has come so far, relaxed or not.
#include "runtime/device/emulator/async/Mbarrier.h"
#include "runtime/device/emulator/checks/RaceTouch.h"
#include "runtime/device/emulator/execute/Cluster.h"

#include <algorithm>

namespace kiln::emulator {

/// Notes an access to this block's shared memory by another one's warp, or by what such a warp issued.
void BlockRaces::noteOutsider(const Touch &t) {
  const Access &a = t.access;
  // A relaxed arrival tells its waiters nothing but that it was made, which is enough here.
  if (!a.async() && t.op.flags & mbarrierFlag::relaxed && (t.op.run == mbarrierArrive || t.op.run == mbarrierExpectTx))
    return;
  // Whoever has waited for a copy has waited for its use of the mbarrier; the copy itself is noted.
  if (t.completes)
    return;
  const ClusterArrivals &arrivals = t.w.block->clusterArrivals;
  OutsideUse &use = outsideUses[{a.row, a.warp}];
  use = {std::max(use.clock, a.clock), a.op, a.lanes, t.self.linear, t.w.index, ~std::uint64_t(0)};
  if (!a.async()) // what is asynchronous goes on across the barrier
    use.phase = t.w.block->cluster.phase + ((arrivals.arrived[t.w.index] & a.lanes) != 0);
}

void BlockRaces::checkExit() {
  if (outsideUses.empty())
    return;
  Knowledge known;
  for (const WarpState &w : block->warps) {
    known.join(everything(w));
    for (const WarpClocks::Side &s : clocks[w.index].sides) // a lane that waited is enough
      known.join(s.known);
  }
  for (const auto &[agent, use] : outsideUses) {
    if (known.reaches(agent.first, agent.second, use.clock) || block->clusterArrivals.phasesWaited > use.phase)
      continue;
    const auto from =
        std::find_if(peers.begin(), peers.end(), [&](const BlockRaces *p) { return p->linear == use.block; });
    if (from == peers.end())
      continue;
    WarpState &w = (*from)->block->warps[use.warp];
    const Op &op = w.program->ops[use.op];
    if (!countFinding(w, op, "cluster.exited_cta"))
      reportFinding(w, op, "cluster.exited_cta", use.lanes,
                    "accesses the shared memory of block " + blockText(linear, w.block->worker.launch.grid) +
                        " (rank " + std::to_string(block->rank) + "), which may have exited before, at " +
                        w.program->point(block->exitPc) +
                        ": it waits for nothing that comes after the access, a barrier.cluster for instance",
                    false);
  }
}

} // namespace kiln::emulator
