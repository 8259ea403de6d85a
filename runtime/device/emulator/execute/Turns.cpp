// The loops that run the warps of a cluster in turn: in order, or as a seed has it.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/RegisterPool.h"
#include "runtime/device/emulator/observe/DevicePrints.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include <algorithm>
#include <optional>

namespace kiln::emulator {

/// Ops of one warp before the next warp of the cluster gets its turn.
static constexpr std::int64_t slice = 10'000;
static constexpr std::uint64_t livelockInstructions = 10'000'000;

/// The block's warps have left.
static Next finishBlock(BlockState &block) {
  block.finished = true;
  if (block.prints)
    block.prints->flush();
  if (block.registerPool)
    checkRegistersAtExit(block);
  if (block.races && !block.cluster.isAlone())
    block.races->checkExit();
  return block.async ? finishAsync(block) : Next::Advance;
}

/// Runs a warp until it blocks, spins, leaves or has executed `most` ops; false after a fatal finding.
static bool runWarp(WarpState &w, Next (*run)(WarpState &), std::int64_t most = slice) {
  w.slice = most;
  const std::uint64_t before = w.executed;
  bool good = true;
  do {
    if (run(w) == Next::Fault) {
      good = false;
      break;
    }
  } while (w.slice > 0 && !w.spinning && w.numSplits && pickSplit(w));
  BlockState &block = *w.block;
  block.worker.warpInstructions += w.executed - before;
  block.instructions += w.executed - before;
  block.worker.threadInstructions += w.threadsExecuted;
  w.threadsExecuted = 0;
  if (block.timeline)
    block.timeline->settle(w);
  return good && (block.warpsAlive || finishBlock(block) != Next::Fault);
}

/// Something to blame a finding on that concerns the whole cluster: its first warp that is still there.
static void reportCluster(ClusterState &cluster, const char *id, const std::string &message) {
  for (const auto &block : cluster.blocks)
    for (WarpState &w : block->warps)
      if (!w.exited() && w.numSplits) {
        reportFinding(w, w.program->ops[w.splits[0].pc], id, w.splits[0].mask, message, true);
        return;
      }
}

/// Adds what the worker executed to the launch's account now and then; true if a budget is spent.
static bool overBudget(Worker &worker) {
  Launch &launch = worker.launch;
  const std::uint64_t unreported = worker.warpInstructions - worker.reported;
  if (unreported > 1'000'000 ||
      launch.instructions.load(std::memory_order_relaxed) + unreported > launch.instructionBudget) {
    launch.instructions += unreported;
    worker.reported = worker.warpInstructions;
    if (launch.instructions.load() > launch.instructionBudget)
      launch.outOfBudget = true;
  }
  // Looking at the clock costs about as much as 20 instructions.
  if (launch.secondsBudget > 0 && ++worker.rounds % 64 == 0 &&
      std::chrono::duration<double>(std::chrono::steady_clock::now() - launch.started).count() > launch.secondsBudget)
    launch.outOfBudget = true;
  return launch.outOfBudget.load(std::memory_order_relaxed);
}

/// Streams of the block's asynchronous work that could be delivered.
static std::uint32_t deliverable(const BlockState &block) {
  return block.async ? block.async->queue.deliverable() : 0;
}

/// No warp can run: lets some go on that may, false if there are none.
static bool wake(ClusterState &cluster) {
  bool waits = false, woken = false;
  for (const auto &block : cluster.blocks)
    if (waitsForMbarrier(*block)) {
      waits = true;
      woken |= wakeMbarrierWaits(*block);
    }
  if (waits)
    return woken;
  return std::any_of(cluster.blocks.begin(), cluster.blocks.end(), [](const auto &b) { return forceParked(*b); });
}

static std::string describeWaiting(const ClusterState &cluster) {
  std::string text;
  for (const auto &block : cluster.blocks)
    if (const std::string one = describeWaiting(*block); !one.empty())
      text += (text.empty() ? "" : "; ") + one;
  return text;
}

/// What the round of a cluster came to; nothing: the next one follows.
static std::optional<ClusterResult> finishRound(ClusterState &cluster, const Round &round, bool allSpin) {
  Worker &worker = cluster.worker;
  if (overBudget(worker))
    return ClusterResult::OutOfBudget;
  if (cluster.finished())
    return ClusterResult::Done;
  if (!round.ran) {
    if (wake(cluster))
      return {};
    reportCluster(cluster, "deadlock", "no warp can run: " + describeWaiting(cluster));
    return ClusterResult::Fault;
  }
  if (worker.launch.firstFatal.load(std::memory_order_relaxed) < cluster.number)
    return ClusterResult::Fault;
  if (!allSpin || worker.progress != round.progress) {
    worker.idleInstructions = 0;
    return {};
  }
  for (const auto &block : cluster.blocks)
    block->virtualTime += 1000;
  worker.idleInstructions += worker.warpInstructions - round.instructions;
  if (worker.idleInstructions > livelockInstructions) {
    reportCluster(cluster, "livelock",
                  "no state changed in " + std::to_string(worker.idleInstructions) +
                      " instructions while every warp polls: " + describeWaiting(cluster));
    return ClusterResult::Fault;
  }
  return ClusterResult::Spinning;
}

/// An instruction of each warp in turn until none can run, or as many turns as a slice has: a round of a cluster that
/// is drawn.  False after a fatal finding.
static bool runInStep(ClusterState &cluster, Round &round, bool &allSpin) {
  const auto run = cluster.worker.launch.program->table->runTraced;
  for (const auto &block : cluster.blocks)
    for (WarpState &w : block->warps)
      w.spinning = false;
  bool ran = true;
  for (std::int64_t left = slice; ran && left > 0; --left) {
    ran = false;
    for (const auto &block : cluster.blocks) {
      for (WarpState &w : block->warps)
        while (!w.exited() && !w.spinning && pickSplit(w)) {
          ran = round.ran = true;
          if (!runWarp(w, run, 1))
            return false;
          if (!block->timeline || !block->timeline->ranHelper())
            break;
        }
      if (block->timeline && ran)
        block->timeline->tick();
    }
  }
  allSpin = !ran;
  return true;
}

/// A round of the usual kind: each warp as far as it gets.
static bool runFar(ClusterState &cluster, Round &round, bool &allSpin) {
  const InstructionTable &table = *cluster.worker.launch.program->table;
  const auto run = cluster.worker.trace ? table.runTraced : table.run;
  allSpin = true;
  for (const auto &block : cluster.blocks)
    for (WarpState &w : block->warps) {
      w.spinning = false;
      if (w.exited() || !pickSplit(w))
        continue;
      round.ran = true;
      if (!runWarp(w, run))
        return false;
      allSpin &= w.spinning || w.exited();
    }
  return true;
}

ClusterResult runCluster(ClusterState &cluster, std::uint64_t instructions) {
  const Worker &worker = cluster.worker;
  const std::uint64_t begin = worker.warpInstructions;
  const bool drawn =
      std::any_of(cluster.blocks.begin(), cluster.blocks.end(), [](const auto &b) { return b->timeline != nullptr; });
  for (;;) {
    bool allSpin = false;
    Round round{worker.progress, worker.warpInstructions, true, false};
    if (!(drawn ? runInStep : runFar)(cluster, round, allSpin))
      return ClusterResult::Fault;
    if (const auto result = finishRound(cluster, round, allSpin))
      return *result;
    if (worker.warpInstructions - begin > instructions)
      return ClusterResult::Paused;
  }
}

/// The warps that could run, but for those that poll in vain, as candidates of the chooser.
static std::uint64_t runnableWarps(const BlockState &block, bool &anySpins) {
  std::uint64_t out = 0;
  for (const WarpState &w : block.warps) {
    anySpins |= w.spinning;
    for (std::uint32_t i = 0; i < w.numSplits && !w.spinning; ++i)
      if (w.splits[i].state == SplitState::Ready)
        out |= std::uint64_t(1) << w.index;
  }
  return out;
}

/// The candidates of the next choice in a block, given the warps among them: asynchronous work as the seed has it.
/// `anyRuns`: a warp of the cluster could run.
static std::uint64_t withDeliveries(const BlockState &block, std::uint64_t runnable, bool anyRuns) {
  const std::uint64_t streams = std::uint64_t(deliverable(block)) << warpSize;
  if (!streams)
    return runnable;
  switch (block.async->queue.timing()) {
  case AsyncQueue::Timing::Late:
    return anyRuns ? runnable : streams;
  case AsyncQueue::Timing::Early:
    return streams;
  case AsyncQueue::Timing::Any:
    break;
  }
  return runnable | streams;
}

namespace {

/// What could happen next in a cluster.
struct Candidates {
  std::uint64_t of[maxClusterBlocks] = {}; ///< by block: as its chooser takes them
  std::uint64_t blocks = 0;                ///< those with any
  bool anySpins = false;
};

Candidates candidatesOf(const ClusterState &cluster) {
  Candidates c;
  bool anyRuns = false;
  for (const auto &b : cluster.blocks)
    if (!b->finished)
      anyRuns |= (c.of[b->rank] = runnableWarps(*b, c.anySpins)) != 0;
  anyRuns &= !cluster.deliversFirst;
  for (const auto &b : cluster.blocks)
    if (!b->finished) {
      c.of[b->rank] = withDeliveries(*b, c.of[b->rank], anyRuns);
      c.blocks |= std::uint64_t(c.of[b->rank] != 0) << b->rank;
    }
  return c;
}

} // namespace

/// Instructions of a round for each warp of the cluster: more than a loop takes to be seen as polling, as long as it
/// has no more than a thousand instructions.
static constexpr std::uint64_t roundInstructions = 1 << 16;

/// A warp that waits without being seen to poll (its loop changes something) would keep those that have polled in vain,
/// and copies that come as late as they may, waiting for ever: the round ends, and the next one begins with the copies.
static void endLongRound(ClusterState &cluster) {
  const std::uint64_t warps = cluster.blocks.size() * cluster.blocks[0]->warps.size();
  const bool isLong = cluster.roundExecuted > roundInstructions * warps;
  if (!isLong && !cluster.deliversFirst)
    return;
  cluster.round.begun &= !isLong;
  cluster.deliversFirst = std::any_of(cluster.blocks.begin(), cluster.blocks.end(),
                                      [](const auto &b) { return !b->finished && deliverable(*b); });
}

// A round ends when no warp can run but those that have polled in vain since it began, or when it is long.
ClusterResult runTurns(ClusterState &cluster, std::uint64_t turns) {
  Worker &worker = cluster.worker;
  Round &round = cluster.round;
  const InstructionTable &table = *worker.launch.program->table;
  const auto run = worker.trace ? table.runSeededTraced : table.runSeeded;
  for (;;) {
    endLongRound(cluster);
    if (!round.begun) {
      round = {worker.progress, worker.warpInstructions, true, false};
      cluster.roundExecuted = 0;
      for (const auto &block : cluster.blocks)
        for (WarpState &w : block->warps)
          w.spinning = false;
    }
    const Candidates candidates = candidatesOf(cluster);
    if (candidates.blocks) {
      if (turns-- == 0)
        return ClusterResult::Paused;
      BlockState &block = *cluster.blocks[cluster.isAlone() ? 0 : cluster.chooser.choose(candidates.blocks)];
      const unsigned chosen = block.chooser.choose(candidates.of[block.rank]);
      if (chosen >= warpSize) {
        if (deliverAsync(block, chosen - warpSize) == Next::Fault)
          return ClusterResult::Fault;
        continue;
      }
      WarpState &w = block.warps[chosen];
      w.observations = block.chooser.turn();
      round.ran = true;
      const std::uint64_t before = worker.warpInstructions;
      if (pickSplit(w) && !runWarp(w, run))
        return ClusterResult::Fault;
      cluster.roundExecuted += worker.warpInstructions - before;
      if (overBudget(worker))
        return ClusterResult::OutOfBudget;
      if (cluster.finished())
        return ClusterResult::Done;
      continue;
    }
    round.begun = false;
    if (const auto result = finishRound(cluster, round, candidates.anySpins))
      return *result;
  }
}

} // namespace kiln::emulator
