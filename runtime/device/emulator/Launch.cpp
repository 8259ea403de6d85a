// A launch: clusters of blocks over workers, then findings and status.
//
// Clusters whose results cannot depend on each other are taken by the workers from a counter.  A kernel whose results
// depend on the order of blocks (Program::inOrder) runs on one worker: cluster 0 to its end, then cluster 1; only when
// the running one polls in vain does the next one start, and then the resident ones take turns.  A seeded launch runs
// on one worker too, a few clusters at a time (Schedule.h).
#include "runtime/device/emulator/Cluster.h"
#include "runtime/device/emulator/Counting.h"
#include "runtime/device/emulator/Races.h"
#include "runtime/device/emulator/TimelineRecorder.h"
#include "runtime/device/emulator/WorkerPool.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

Worker::Worker(Launch &launch) : launch(launch), caches(launch.program->numCaches) {
  if (launch.traits)
    trace = std::make_shared<OpTrace>(*launch.traits);
}

namespace {

struct Run {
  Launch &launch;
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<bool> noMemory{false};
};

void runIndependent(void *context, unsigned index) {
  Run &run = *static_cast<Run *>(context);
  Worker &worker = *run.workers[index];
  Launch &launch = run.launch;
  ClusterState cluster(worker);
  if (!cluster.good()) {
    run.noMemory = true;
    return;
  }
  for (;;) {
    const std::uint64_t n = launch.nextCluster.fetch_add(1);
    if (n >= launch.clusters() || n > launch.firstFatal.load() || launch.outOfBudget.load())
      return;
    cluster.start(n);
    ClusterResult result;
    do
      result = runCluster(cluster);
    while (result == ClusterResult::Spinning);
    if (result != ClusterResult::Done)
      return;
  }
}

/// Clusters that a GPU of the target holds at the same time.
std::uint64_t residentLimit(const Launch &launch) {
  const unsigned occupancy = std::max(1u, residentBlocks(*launch.target, static_cast<unsigned>(launch.block.count()),
                                                         launch.program->sharedStatic + launch.dynamicShared, 0));
  const std::uint64_t most = std::uint64_t(occupancy) * launch.multiprocessors / launch.cluster.count();
  return std::clamp<std::uint64_t>(most, 1, launch.clusters());
}

void runInOrder(Run &run) {
  Launch &launch = run.launch;
  Worker &worker = *run.workers[0];
  const std::uint64_t most = residentLimit(launch);
  std::vector<std::unique_ptr<ClusterState>> resident, idle;
  std::size_t turn = 0;
  std::uint64_t started = 0;
  while (true) {
    if (turn >= resident.size()) {
      if (started < launch.clusters() && resident.size() < most) {
        if (idle.empty()) {
          idle.push_back(std::make_unique<ClusterState>(worker));
          if (!idle.back()->good()) {
            run.noMemory = true;
            return;
          }
        }
        resident.push_back(std::move(idle.back()));
        idle.pop_back();
        resident.back()->start(started++);
        turn = resident.size() - 1;
      } else if (resident.empty()) {
        return;
      } else {
        turn = 0;
      }
    }
    switch (runCluster(*resident[turn])) {
    case ClusterResult::Done:
      idle.push_back(std::move(resident[turn]));
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
      // Those that waited for this one go first.
      turn = 0;
      break;
    case ClusterResult::Spinning:
      ++turn;
      break;
    case ClusterResult::Paused: // never without a limit of turns
    case ClusterResult::Fault:
    case ClusterResult::OutOfBudget:
      return;
    }
  }
}

/// Clusters that are resident from the start; more start when all of them wait for others.
constexpr std::uint64_t seededWindow = 4;

void runSeeded(Run &run) {
  Launch &launch = run.launch;
  Worker &worker = *run.workers[0];
  const std::uint64_t most = residentLimit(launch);
  RandomStream random{launch.seed, launch.gridId};
  const BlockOrder order(launch.schedule, random, launch.clusters());
  struct Resident {
    std::unique_ptr<ClusterState> cluster;
    bool spins = false;
  };
  std::vector<Resident> resident;
  std::vector<std::unique_ptr<ClusterState>> idle;
  std::uint64_t started = 0, window = 1 + random.below(std::min(seededWindow, most));
  for (;;) {
    if (resident.size() < window && started < launch.clusters()) {
      if (idle.empty())
        idle.push_back(std::make_unique<ClusterState>(worker));
      if (!idle.back()->good()) {
        run.noMemory = true;
        return;
      }
      resident.push_back({std::move(idle.back())});
      idle.pop_back();
      resident.back().cluster->start(order.at(started++));
      continue;
    }
    if (resident.empty())
      return;
    const std::size_t i = random.below(resident.size());
    switch (runTurns(*resident[i].cluster, 1 + random.below(256))) {
    case ClusterResult::Done:
      idle.push_back(std::move(resident[i].cluster));
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
      for (Resident &r : resident) // they may have waited for this one
        r.spins = false;
      break;
    case ClusterResult::Paused:
      resident[i].spins = false;
      break;
    case ClusterResult::Spinning:
      resident[i].spins = true;
      if (window < most && std::all_of(resident.begin(), resident.end(), [](const Resident &r) { return r.spins; }))
        ++window;
      break;
    case ClusterResult::Fault:
    case ClusterResult::OutOfBudget:
      return;
    }
  }
}

std::string headline(const Finding &f) {
  std::string text = f.id + ": kernel " + f.kernel +
                     format(" block (%u,%u,%u) warp %u lanes 0x%08x", f.block.x, f.block.y, f.block.z, f.warp, f.lanes);
  if (!f.location.empty())
    text += " at " + f.location;
  text += " (ptx line " + std::to_string(f.ptxLine) + ", " + f.opcode + "): " + f.message;
  return text;
}

} // namespace

LaunchResult runLaunch(Launch &launch, WorkerPool &pool) {
  launch.started = std::chrono::steady_clock::now();
  Run run{launch, {}, {}};
  const std::uint64_t useful = std::min<std::uint64_t>(pool.size(), launch.clusters());
  const bool single = launch.program->inOrder || launch.seeded();
  const unsigned count = single ? 1 : static_cast<unsigned>(useful);
  if (launch.races) {
    launch.races->start(count);
    if (launch.races->wornOut)
      launch.memory->forgetRaceCells();
  }
  for (unsigned i = 0; i < count; ++i)
    run.workers.push_back(std::make_unique<Worker>(launch));
  if (launch.seeded())
    runSeeded(run);
  else if (launch.program->inOrder)
    runInOrder(run);
  else
    pool.run(count, runIndependent, &run);

  LaunchResult result;
  std::vector<FindingSink *> sinks;
  for (auto &worker : run.workers) {
    sinks.push_back(&worker->findings);
    result.statistics.warpInstructions += worker->warpInstructions;
    result.statistics.threadInstructions += worker->threadInstructions;
  }
  if (launch.timeline && launch.timeline->started())
    result.timeline = launch.timeline->finish(launch);
  result.findings = mergeFindings(sinks, *launch.program, launch.grid, launch.firstFatal.load());
  result.statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - launch.started).count();
  for (const Finding &f : result.findings)
    if (f.fatal) {
      result.status = Status(StatusCode::DeviceError, headline(f));
      return result;
    }
  if (run.noMemory)
    result.status =
        Status(StatusCode::OutOfMemory, "the host has no memory for the blocks of kernel " + launch.program->info.name);
  else if (launch.outOfBudget)
    result.status = Status(StatusCode::DeviceError,
                           "budget: kernel " + launch.program->info.name + " was ended after " +
                               std::to_string(result.statistics.warpInstructions) + " warp instructions and " +
                               format("%.1f seconds", result.statistics.seconds),
                           "raise the budget of instructions or seconds, or look for a loop that does not end");
  if (launch.traits && result.status.ok()) {
    std::vector<const OpTrace *> traces;
    for (auto &worker : run.workers)
      traces.push_back(worker->trace.get());
    result.counters = mergeCounts(traces, launch);
  }
  return result;
}

} // namespace kiln::emulator
