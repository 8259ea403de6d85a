#include "runtime/device/emulator/execute/Cluster.h"

#include <algorithm>

namespace kiln::emulator {

ClusterState::ClusterState(Worker &worker) : worker(worker) {
  const auto count = static_cast<unsigned>(worker.launch.cluster.count());
  for (unsigned rank = 0; rank < count; ++rank) {
    blocks.push_back(std::make_unique<BlockState>(worker, *this, rank));
    if (blocks.back()->warps.empty()) {
      blocks.clear();
      return;
    }
  }
}

void ClusterState::start(std::uint64_t n) {
  const Launch &launch = worker.launch;
  const Dim3 shape = launch.cluster;
  const std::uint64_t acrossX = launch.grid.x / shape.x, acrossY = launch.grid.y / shape.y;
  const auto x = static_cast<std::uint32_t>(n % acrossX), y = static_cast<std::uint32_t>(n / acrossX % acrossY),
             z = static_cast<std::uint32_t>(n / acrossX / acrossY);
  number = n;
  phase = 0;
  releasing.clear();
  released.clear();
  round = {};
  roundExecuted = 0;
  deliversFirst = false;
  if (launch.seeded() && !isAlone())
    chooser.start(launch.schedule, RandomStream{launch.seed, launch.gridId, ~n}, static_cast<unsigned>(blocks.size()));
  for (const auto &b : blocks)
    b->start({x * shape.x + b->rank % shape.x, y * shape.y + b->rank / shape.x % shape.y,
              z * shape.z + b->rank / shape.x / shape.y},
             n);
  if (!launch.races || isAlone())
    return;
  std::vector<BlockRaces *> races;
  for (const auto &b : blocks)
    races.push_back(b->races);
  for (BlockRaces *r : races)
    r->joinCluster(races);
}

bool ClusterState::finished() const {
  return std::all_of(blocks.begin(), blocks.end(), [](const auto &b) { return b->finished; });
}

bool reportIfExited(WarpState &w, const Op &op, std::uint32_t lanes, const BlockState &owner) {
  if (owner.warpsAlive)
    return false;
  reportFinding(w, op, "cluster.exited_cta", lanes,
                "accesses the shared memory of block " + blockText(owner.linear, owner.worker.launch.grid) + " (rank " +
                    std::to_string(owner.rank) + "), which exited at " + w.program->point(owner.exitPc),
                true);
  return true;
}

} // namespace kiln::emulator
