// A block: its warps' registers, shared and local memory, and the loop that runs its warps in turn.
#include "runtime/device/emulator/Async.h"
#include "runtime/device/emulator/DefinedBits.h"
#include "runtime/device/emulator/Executor.h"
#include "runtime/device/emulator/Races.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kiln::emulator {

/// Unwritten registers, shared and local memory hold this.
static constexpr std::uint32_t poison = 0xDEADBEEF;
/// Ops of one warp before the next warp of the block gets its turn.
static constexpr std::int64_t slice = 10'000;
static constexpr std::uint64_t livelockInstructions = 10'000'000;

static std::size_t roundUp(std::size_t v, std::size_t a) {
  return (v + a - 1) / a * a;
}

static void fill(std::byte *registers, Slot slot, unsigned bytes, std::uint64_t low, std::uint64_t high = 0) {
  if (bytes <= 4)
    std::fill_n(reinterpret_cast<std::uint32_t *>(registers + slot), warpSize, static_cast<std::uint32_t>(low));
  else
    std::fill_n(reinterpret_cast<std::uint64_t *>(registers + slot), warpSize, low);
  if (bytes == 16)
    std::fill_n(reinterpret_cast<std::uint64_t *>(registers + slot + 256), warpSize, high);
}

BlockState::BlockState(Worker &worker) : worker(worker) {
  const Launch &launch = worker.launch;
  const Program &program = *launch.program;
  const std::uint64_t threads = launch.block.count();
  const std::size_t count = (threads + warpSize - 1) / warpSize;
  warps.resize(count);
  // An odd number of lines apart: equal slots of different warps then lie in different cache sets.
  registerStride = roundUp(program.registerBytes, 128) + 64;
  registerMemory = std::make_unique<Reservation>();
  sharedBegin = program.sharedBegin;
  sharedEnd = sharedBegin + program.sharedStatic + launch.dynamicShared;
  sharedMemory = std::make_unique<Reservation>();
  bool good = registerMemory->reserve(count * registerStride) && sharedMemory->reserve(roundUp(sharedEnd, 64) + 64);
  if (launch.checks) {
    sharedBitWords.resize(sharedEnd / 64 + 2);
    sharedBits = sharedBitWords.data();
  }
  if (program.localBytes) {
    localStride = roundUp(program.localBytes, 64);
    localMemory = std::make_unique<Reservation>();
    good = good && localMemory->reserve(count * warpSize * localStride + 64);
    if (launch.checks) {
      localBitMemory = std::make_unique<Reservation>();
      good = good && localBitMemory->reserve(count * warpSize * localStride / 8 + 64);
    }
  }
  if (!good) {
    warps.clear();
    return;
  }
  shared = sharedMemory->data();
  if (localMemory)
    localBase = localMemory->data();
  if (localBitMemory)
    localBits = reinterpret_cast<std::uint64_t *>(localBitMemory->data());
  for (unsigned w = 0; w < count; ++w)
    prepareWarp(w);
  if (launch.races) {
    raceClocks = std::make_shared<BlockRaces>(*launch.races, count, sharedEnd);
    races = raceClocks.get();
  }
  if (program.usesAsync)
    async = makeAsyncState(count);
}

/// What stays the same from block to block.
void BlockState::prepareWarp(unsigned i) {
  const Launch &launch = worker.launch;
  const Program &program = *launch.program;
  WarpState &w = warps[i];
  w.registers = registerMemory->data() + i * registerStride;
  w.block = this;
  w.index = i;
  w.pool = program.pool.data();
  w.caches = worker.caches.data();
  w.program = &program;
  w.local = localBase ? localBase + std::size_t(i) * warpSize * localStride : nullptr;
  for (const ConstantSlot &c : program.constants)
    fill(w.registers, c.slot, c.bytes, c.low, c.high);
  const Dim3 n = launch.block;
  for (const SpecialSlot &s : program.specials) {
    const unsigned bytes = s.wide ? 8 : 4;
    for (unsigned l = 0; l < warpSize; ++l) {
      const std::uint64_t t = std::uint64_t(i) * warpSize + l;
      std::uint64_t v = 0;
      switch (s.special) {
      case Special::TidX:
        v = t % n.x;
        break;
      case Special::TidY:
        v = t / n.x % n.y;
        break;
      case Special::TidZ:
        v = t / n.x / n.y;
        break;
      case Special::NtidX:
        v = n.x;
        break;
      case Special::NtidY:
        v = n.y;
        break;
      case Special::NtidZ:
        v = n.z;
        break;
      case Special::NctaidX:
      case Special::NclusterIdX:
        v = launch.grid.x;
        break;
      case Special::NctaidY:
      case Special::NclusterIdY:
        v = launch.grid.y;
        break;
      case Special::NctaidZ:
      case Special::NclusterIdZ:
        v = launch.grid.z;
        break;
      case Special::LaneId:
        v = l;
        break;
      case Special::WarpId:
        v = i;
        break;
      case Special::NwarpId:
        v = warps.size();
        break;
      case Special::NsmId:
        v = launch.multiprocessors;
        break;
      case Special::GridId:
        v = launch.gridId;
        break;
      case Special::LanemaskEq:
        v = 1u << l;
        break;
      case Special::LanemaskLe:
        v = (1u << l) | ((1u << l) - 1);
        break;
      case Special::LanemaskLt:
        v = (1u << l) - 1;
        break;
      case Special::LanemaskGe:
        v = std::uint32_t(~((1u << l) - 1));
        break;
      case Special::LanemaskGt:
        v = std::uint32_t(~((1u << l) | ((1u << l) - 1)));
        break;
      case Special::DynamicSmemSize:
        v = launch.dynamicShared;
        break;
      case Special::TotalSmemSize:
      case Special::AggrSmemSize:
        v = sharedEnd;
        break;
      case Special::ReservedSmemEnd:
      case Special::ReservedSmemCap:
        v = sharedBegin;
        break;
      case Special::ClusterNctaidX:
      case Special::ClusterNctaidY:
      case Special::ClusterNctaidZ:
      case Special::ClusterNctarank:
        v = 1;
        break;
      default:
        break; // of the block, or 0
      }
      if (bytes == 8)
        reinterpret_cast<std::uint64_t *>(w.registers + s.slot)[l] = v;
      else
        reinterpret_cast<std::uint32_t *>(w.registers + s.slot)[l] = static_cast<std::uint32_t>(v);
    }
  }
}

void BlockState::start(std::uint64_t number) {
  const Launch &launch = worker.launch;
  const Program &program = *launch.program;
  linear = number;
  index = {static_cast<std::uint32_t>(number % launch.grid.x),
           static_cast<std::uint32_t>(number / launch.grid.x % launch.grid.y),
           static_cast<std::uint32_t>(number / launch.grid.x / launch.grid.y)};
  instructions = virtualTime = clockReads = 0;
  round = {};
  if (races)
    races->start(*this);
  if (launch.seeded())
    chooser.start(launch.schedule, RandomStream{launch.seed, launch.gridId, number},
                  static_cast<unsigned>(warps.size()));
  if (async)
    startAsync(*this);
  for (BarrierState &b : barriers)
    b.open = false;
  if (program.usesCluster)
    cluster = {};
  for (std::uint32_t i = sharedBegin / 4; i < (sharedEnd + 3) / 4; ++i)
    std::memcpy(shared + std::size_t(i) * 4, &poison, 4);
  if (sharedBits)
    std::fill(sharedBitWords.begin(), sharedBitWords.end(), 0);
  warpsAlive = warps.size() == 32 ? fullMask : (1u << warps.size()) - 1;
  const std::uint64_t threads = launch.block.count();
  const std::uint64_t frame = program.functions[0].frameBytes;
  for (WarpState &w : warps) {
    const std::uint64_t first = std::uint64_t(w.index) * warpSize;
    w.alive = threads - first >= warpSize ? fullMask : (1u << (threads - first)) - 1;
    w.numSplits = 0;
    addSplit(w, program.functions[0].entry, w.alive, 0);
    w.executed = w.threadsExecuted = 0;
    w.uncounted = 0;
    w.spinning = false;
    w.progressMark = worker.progress;
    w.pollMark = worker.polls;
    std::memset(w.registers + carrySlot, 0, 128);
    fill(w.registers, frameSlot, 8, 0);
    fill(w.registers, stackSlot, 8, frame);
    for (Slot slot : program.poisoned)
      fill(w.registers, slot, 4, poison);
    for (const SpecialSlot &s : program.specials) {
      std::uint64_t v;
      switch (s.special) {
      case Special::CtaidX:
      case Special::ClusterIdX:
        v = index.x;
        break;
      case Special::CtaidY:
      case Special::ClusterIdY:
        v = index.y;
        break;
      case Special::CtaidZ:
      case Special::ClusterIdZ:
        v = index.z;
        break;
      case Special::SmId:
        v = linear % launch.multiprocessors;
        break;
      default:
        continue;
      }
      fill(w.registers, s.slot, s.wide ? 8 : 4, v);
    }
    if (frame)
      for (unsigned l = 0; l < warpSize; ++l) {
        for (std::uint64_t i = 0; i < frame; i += 4)
          std::memcpy(w.local + l * localStride + i, &poison, 4);
        if (localBits)
          clearDefined(localBits, static_cast<std::uint64_t>(w.local - localBase) + l * localStride, frame);
      }
  }
}

/// Runs a warp until it blocks, spins, leaves or has used its slice; false after a fatal finding.
static bool runWarp(WarpState &w, Next (*run)(WarpState &)) {
  w.slice = slice;
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
  return good;
}

/// Something to blame a finding on that concerns the whole block: its first warp that is still there.
static void reportBlock(BlockState &block, const char *id, const std::string &message) {
  for (WarpState &w : block.warps)
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

/// All warps have left.
static BlockResult finishBlock(BlockState &block) {
  return block.async && finishAsync(block) == Next::Fault ? BlockResult::Fault : BlockResult::Done;
}

/// Streams of the block's asynchronous work that could be delivered.
static std::uint32_t deliverable(const BlockState &block) {
  return block.async ? block.async->queue.deliverable() : 0;
}

/// What the round of a block came to; nothing: the next one follows.
static std::optional<BlockResult> finishRound(BlockState &block, const Round &round, bool allSpin) {
  Worker &worker = block.worker;
  if (overBudget(worker))
    return BlockResult::OutOfBudget;
  if (block.warpsAlive == 0)
    return finishBlock(block);
  if (!round.ran) {
    const bool waits = waitsForMbarrier(block);
    if (waits ? wakeMbarrierWaits(block) : forceParked(block))
      return {};
    reportBlock(block, "deadlock", "no warp can run: " + describeWaiting(block));
    return BlockResult::Fault;
  }
  if (worker.launch.firstFatal.load(std::memory_order_relaxed) < block.linear)
    return BlockResult::Fault;
  if (!allSpin || worker.progress != round.progress) {
    worker.idleInstructions = 0;
    return {};
  }
  block.virtualTime += 1000;
  worker.idleInstructions += worker.warpInstructions - round.instructions;
  if (worker.idleInstructions > livelockInstructions) {
    reportBlock(block, "livelock",
                "no state changed in " + std::to_string(worker.idleInstructions) +
                    " instructions while every warp polls: " + describeWaiting(block));
    return BlockResult::Fault;
  }
  return BlockResult::Spinning;
}

BlockResult runBlock(BlockState &block) {
  const Worker &worker = block.worker;
  const InstructionTable &table = *worker.launch.program->table;
  const auto run = worker.trace ? table.runTraced : table.run;
  for (;;) {
    bool allSpin = true;
    Round round{worker.progress, worker.warpInstructions, true, false};
    for (WarpState &w : block.warps) {
      w.spinning = false;
      if (w.exited() || !pickSplit(w))
        continue;
      round.ran = true;
      if (!runWarp(w, run))
        return BlockResult::Fault;
      allSpin &= w.spinning || w.exited();
    }
    if (const auto result = finishRound(block, round, allSpin))
      return *result;
  }
}

/// The warps that could run, but for those that poll in vain, as candidates of the chooser.
static std::uint64_t runnableWarps(const BlockState &block, bool &anySpins) {
  std::uint64_t out = 0;
  anySpins = false;
  for (const WarpState &w : block.warps) {
    anySpins |= w.spinning;
    for (std::uint32_t i = 0; i < w.numSplits && !w.spinning; ++i)
      if (w.splits[i].state == SplitState::Ready)
        out |= std::uint64_t(1) << w.index;
  }
  return out;
}

/// The candidates of the next choice, given the warps among them: asynchronous work as the seed has it.
static std::uint64_t withDeliveries(const BlockState &block, std::uint64_t runnable) {
  const std::uint64_t streams = std::uint64_t(deliverable(block)) << warpSize;
  if (!streams)
    return runnable;
  switch (block.async->queue.timing()) {
  case AsyncQueue::Timing::Late:
    return runnable ? runnable : streams;
  case AsyncQueue::Timing::Early:
    return streams;
  case AsyncQueue::Timing::Any:
    break;
  }
  return runnable | streams;
}

// A round ends when no warp can run but those that have polled in vain since it began.
BlockResult runTurns(BlockState &block, std::uint64_t turns) {
  Worker &worker = block.worker;
  Round &round = block.round;
  const InstructionTable &table = *worker.launch.program->table;
  const auto run = worker.trace ? table.runSeededTraced : table.runSeeded;
  for (;;) {
    if (!round.begun) {
      round = {worker.progress, worker.warpInstructions, true, false};
      for (WarpState &w : block.warps)
        w.spinning = false;
    }
    bool anySpins = false;
    if (const std::uint64_t candidates = withDeliveries(block, runnableWarps(block, anySpins))) {
      if (turns-- == 0)
        return BlockResult::Paused;
      const unsigned chosen = block.chooser.choose(candidates);
      if (chosen >= warpSize) {
        if (deliverAsync(block, chosen - warpSize) == Next::Fault)
          return BlockResult::Fault;
        continue;
      }
      WarpState &w = block.warps[chosen];
      w.observations = block.chooser.turn();
      round.ran = true;
      if (pickSplit(w) && !runWarp(w, run))
        return BlockResult::Fault;
      if (overBudget(worker))
        return BlockResult::OutOfBudget;
      if (block.warpsAlive == 0)
        return finishBlock(block);
      continue;
    }
    round.begun = false;
    if (const auto result = finishRound(block, round, anySpins))
      return *result;
  }
}

} // namespace kiln::emulator
