// barrier.cluster: section 1.6 of the emulator specification.  Every thread of the cluster that has not exited arrives
// and then waits; one phase at a time.
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/LaneValues.h"

#include <utility>

namespace kiln::emulator {

namespace {

constexpr std::uint64_t noPhase = ~std::uint64_t(0);

/// The lanes, which need not execute now, have waited for the last phase.
void acquire(WarpState &w, std::uint32_t lanes) {
  w.block->clusterArrivals.phasesWaited = w.block->cluster.phase;
  if (!w.block->races)
    return;
  const std::uint32_t exec = std::exchange(w.exec, lanes);
  w.block->races->acquireFrom(w, w.block->cluster.released, false);
  w.exec = exec;
}

} // namespace

void recheckClusterBarrier(ClusterState &cluster) {
  bool any = false;
  for (const auto &b : cluster.blocks)
    for (const WarpState &w : b->warps) {
      const std::uint32_t arrived = b->clusterArrivals.arrived[w.index];
      if (w.alive & ~arrived)
        return;
      any |= arrived != 0;
    }
  if (!any)
    return;
  cluster.phase += 1;
  cluster.released = std::move(cluster.releasing);
  cluster.releasing.clear();
  ++cluster.worker.progress;
  for (const auto &b : cluster.blocks)
    for (WarpState &w : b->warps) {
      ClusterArrivals &a = b->clusterArrivals;
      a.arrived[w.index] = 0;
      std::uint32_t waited = 0;
      for (std::uint32_t i = 0; i < w.numSplits; ++i)
        if (Split &s = w.splits[i]; s.state == SplitState::Cluster) {
          waited |= s.mask;
          s.state = SplitState::Ready;
          s.pc += 1;
        }
      a.outstanding[w.index] &= ~waited;
      if (waited)
        acquire(w, waited);
    }
}

Next arriveAtCluster(WarpState &w, const Op &op) {
  ClusterState &cluster = w.block->cluster;
  ClusterArrivals &a = w.block->clusterArrivals;
  if (const std::uint32_t again = a.outstanding[w.index] & w.exec; again && !countFinding(w, op, "barrier.cluster"))
    reportFinding(w, op, "barrier.cluster", again,
                  "arrives at the cluster barrier again; it arrived at " + w.program->point(a.lastPc[w.index]) +
                      " and has not waited since",
                  false);
  if (w.block->races)
    w.block->races->releaseTo(w, cluster.releasing, op.flags & clusterRelaxed);
  a.outstanding[w.index] |= w.exec;
  a.arrived[w.index] |= w.exec;
  a.lastPc[w.index] = w.pc;
  eachLane(w.exec, [&](unsigned l) { a.lanePhase[w.index * warpSize + l] = cluster.phase; });
  ++w.block->worker.progress;
  recheckClusterBarrier(cluster);
  return Next::Advance;
}

Next waitForCluster(WarpState &w, const Op &op) {
  const ClusterState &cluster = w.block->cluster;
  ClusterArrivals &a = w.block->clusterArrivals;
  if (const std::uint32_t without = w.exec & ~a.outstanding[w.index]) {
    if (!countFinding(w, op, "barrier.cluster"))
      reportFinding(w, op, "barrier.cluster", without, "waits for the cluster barrier without having arrived", false);
    a.outstanding[w.index] |= without;
    eachLane(without, [&](unsigned l) { a.lanePhase[w.index * warpSize + l] = noPhase; }); // it waits for nothing
  }
  std::uint32_t passed = 0;
  eachLane(w.exec,
           [&](unsigned l) { passed |= std::uint32_t(a.lanePhase[w.index * warpSize + l] != cluster.phase) << l; });
  if (passed)
    acquire(w, passed);
  a.outstanding[w.index] &= ~passed;
  w.exec &= ~passed;
  if (!w.exec)
    return Next::Advance;
  detach(w, w.pc).state = SplitState::Cluster;
  return Next::Switch;
}

std::string describeClusterWait(const ClusterState &cluster) {
  std::uint64_t arrived = 0, alive = 0;
  std::string missing;
  for (const auto &b : cluster.blocks) {
    std::string warps;
    for (const WarpState &w : b->warps) {
      const std::uint32_t here = b->clusterArrivals.arrived[w.index];
      arrived += static_cast<unsigned>(__builtin_popcount(here));
      alive += static_cast<unsigned>(__builtin_popcount(w.alive | here));
      if (w.alive & ~here)
        warps += (warps.empty() ? "" : ",") + std::to_string(w.index);
    }
    if (warps.empty())
      continue;
    missing += missing.empty() ? "; missing: " : ", ";
    if (!cluster.isAlone())
      missing += "block " + blockText(b->linear, cluster.worker.launch.grid) + " ";
    missing += "warps " + warps;
  }
  return " waits barrier.cluster (" + std::to_string(arrived) + " of " + std::to_string(alive) + " threads arrived" +
         missing + ")";
}

} // namespace kiln::emulator
