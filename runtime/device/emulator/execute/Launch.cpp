// A launch: clusters of blocks over workers, then findings and status.
//
// Clusters are taken by the workers from a counter.  A kernel whose results depend on the order of blocks
// (Program::inOrder) runs on one worker: cluster 0 to its end, then cluster 1; only when the running one polls in vain
// does the next one start, and then the resident ones take turns.  A seeded launch runs on one worker too, a few
// clusters at a time (Schedule.h).
//
// In every schedule more clusters become resident when those that are do not come to an end, up to what a GPU holds.
#include "runtime/device/emulator/checks/FloatBirths.h"
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/WorkerPool.h"
#include "runtime/device/emulator/observe/Counting.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"
#include "support/Names.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

Worker::Worker(Launch &launch) : launch(launch), caches(launch.program->numCaches) {
  if (launch.traits)
    trace = std::make_shared<OpTrace>(*launch.traits);
  if (launch.floats)
    births = std::make_shared<FloatBirths>(*launch.floats);
}

namespace {

struct Run {
  Launch &launch;
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<bool> noMemory{false};
};

} // namespace

std::uint64_t residentLimit(const Launch &launch) {
  const unsigned occupancy = std::max(1u, residentBlocks(*launch.target, static_cast<unsigned>(launch.block.count()),
                                                         launch.program->sharedStatic + launch.dynamicShared, 0));
  const std::uint64_t most = std::uint64_t(occupancy) * launch.multiprocessors / launch.cluster.count();
  return std::clamp<std::uint64_t>(most, 1, launch.clusters());
}

namespace {

/// Warp instructions without a cluster coming to its end after which as many again become resident; of a launch with a
/// seed also steps, of up to `seededTurns` turns.  A GPU has all of them resident at once: whoever waits for one that
/// has not started, in a way that is not seen as waiting, must not wait for ever.  Where blocks have no proper way to
/// wait for each other, they do so by plain loads only.
constexpr std::uint64_t patience = 1 << 21, improperPatience = 1 << 22, seededPatience = 1 << 19, seededSteps = 1 << 10,
                        seededTurns = 256;

/// The clusters that a worker runs.  Each goes to its end before the next starts, unless it waits for others.
class WorkersShare {
public:
  WorkersShare(Run &run, unsigned index, std::uint64_t most)
      : run(run), launch(run.launch), worker(*run.workers[index]), most(most) {}

  void operator()() {
    std::size_t turn = 0;
    std::uint64_t starts = 1; // when each has had its turn
    for (;;) {
      if (turn >= resident.size()) {
        turn = resident.size();
        while (starts && resident.size() < most && startNext())
          --starts;
        if (turn == resident.size())
          turn = 0;
        starts = 1;
        if (resident.empty() || run.noMemory)
          return;
      }
      switch (runCluster(*resident[turn], ordered() ? patience : improperPatience)) {
      case ClusterResult::Done:
        if (launch.countsBlocks)
          for (const auto &block : resident[turn]->blocks)
            worker.blocks.push_back(block->instructions);
        idle.push_back(std::move(resident[turn]));
        resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
        turn = 0; // those that waited for this one go first
        break;
      case ClusterResult::Spinning:
        turn += ordered(); // else no other cluster is waited for
        break;
      case ClusterResult::Paused:
        ++turn;
        starts = resident.size();
        break;
      case ClusterResult::Fault:
        if (ordered())
          return;
        // Clusters before the one with the fatal finding are part of the report.
        resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
        std::erase_if(resident, [&](const auto &c) { return c->number > launch.firstFatal.load(); });
        turn = 0;
        break;
      case ClusterResult::OutOfBudget:
        return;
      }
    }
  }

private:
  bool ordered() const { return launch.program->inOrder; }
  bool startNext() {
    if (launch.outOfBudget.load())
      return false;
    if (idle.empty())
      idle.push_back(std::make_unique<ClusterState>(worker));
    if (!idle.back()->good()) {
      run.noMemory = true;
      return false;
    }
    const std::uint64_t n = launch.nextCluster.fetch_add(1);
    if (n >= launch.clustersToRun() || launch.clusterToRun(n) > launch.firstFatal.load())
      return false;
    resident.push_back(std::move(idle.back()));
    idle.pop_back();
    resident.back()->start(launch.clusterToRun(n));
    return true;
  }

  Run &run;
  Launch &launch;
  Worker &worker;
  const std::uint64_t most;
  std::vector<std::unique_ptr<ClusterState>> resident, idle;
};

void runShare(void *context, unsigned index) {
  Run &run = *static_cast<Run *>(context);
  const std::uint64_t workers = run.workers.size();
  WorkersShare(run, index, (residentLimit(run.launch) + workers - 1) / workers)();
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
  std::uint64_t steps = 0, since = 0; // since a cluster started or ended: steps; the instructions before
  const auto restart = [&] {
    steps = 0;
    since = worker.warpInstructions;
  };
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
      restart();
      continue;
    }
    if (resident.empty())
      return;
    if (++steps > seededSteps || worker.warpInstructions - since > seededPatience) {
      window = std::min(most, 2 * window);
      restart();
    }
    const std::size_t i = random.below(resident.size());
    switch (runTurns(*resident[i].cluster, 1 + random.below(seededTurns))) {
    case ClusterResult::Done:
      idle.push_back(std::move(resident[i].cluster));
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
      restart();
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

Status outOfBudget(const Launch &launch, const LaunchStatistics &spent) {
  const bool time = spent.warpInstructions <= launch.instructionBudget;
  const std::string limit = time ? format("%g seconds", launch.secondsBudget)
                                 : std::to_string(launch.instructionBudget) + " warp instructions";
  return Status(StatusCode::DeviceError,
                "budget: kernel " + shortName(launch.program->info.name) + " was ended by the limit of " + limit +
                    " a launch, after " + std::to_string(spent.warpInstructions) + " warp instructions and " +
                    format("%.1f seconds", spent.seconds) + " (schedule " + std::string(scheduleName(launch.schedule)) +
                    ")",
                std::string("look for a loop that does not end, or raise the limit: ") +
                    (time ? "--timeout S of the command (0: none), EmulatorOptions::secondsBudget"
                          : "--instruction-budget N of the command, EmulatorOptions::instructionBudget"));
}

} // namespace

LaunchResult runLaunch(Launch &launch, WorkerPool &pool) {
  launch.started = std::chrono::steady_clock::now();
  Run run{launch, {}, {}};
  const std::uint64_t useful = std::min<std::uint64_t>(pool.size(), launch.clustersToRun());
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
  else
    pool.run(count, runShare, &run);

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
    result.status = Status(StatusCode::OutOfMemory,
                           "the host has no memory for the blocks of kernel " + shortName(launch.program->info.name));
  else if (launch.outOfBudget)
    result.status = outOfBudget(launch, result.statistics);
  for (auto &worker : run.workers)
    if (result.status.ok() && !worker->printProblem.ok())
      result.status = std::move(worker->printProblem);
  if (launch.traits && result.status.ok()) {
    std::vector<const OpTrace *> traces;
    for (auto &worker : run.workers)
      traces.push_back(worker->trace.get());
    result.counters = mergeCounts(traces, launch);
    for (auto &worker : run.workers)
      result.counters->blocks.insert(result.counters->blocks.end(), worker->blocks.begin(), worker->blocks.end());
    std::sort(result.counters->blocks.begin(), result.counters->blocks.end());
  }
  return result;
}

} // namespace kiln::emulator
