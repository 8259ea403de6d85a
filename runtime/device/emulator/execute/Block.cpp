// A block: its warps' registers, shared and local memory.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/execute/RegisterPool.h"
#include "runtime/device/emulator/matrix/Wgmma.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include <algorithm>
#include <cstring>

namespace kiln::emulator {

/// Unwritten registers, shared and local memory hold this.
static constexpr std::uint32_t poison = 0xDEADBEEF;

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

BlockState::BlockState(Worker &worker, ClusterState &cluster, unsigned rank)
    : worker(worker), cluster(cluster), rank(rank) {
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
  sharedAddress = rank * sharedRankBytes;
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
  if (program.wgmma)
    wgmma = makeWgmmaState(program, count);
  if (program.usesRegisterPool)
    registerPool = std::make_shared<RegisterPool>();
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
    fill(w.registers, c.slot, c.bytes, c.isShared ? c.low + sharedAddress : c.low, c.high);
  const Dim3 n = launch.block, shape = launch.cluster;
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
        v = launch.grid.x;
        break;
      case Special::NctaidY:
        v = launch.grid.y;
        break;
      case Special::NctaidZ:
        v = launch.grid.z;
        break;
      case Special::NclusterIdX:
        v = launch.grid.x / shape.x;
        break;
      case Special::NclusterIdY:
        v = launch.grid.y / shape.y;
        break;
      case Special::NclusterIdZ:
        v = launch.grid.z / shape.z;
        break;
      case Special::ClusterCtaidX:
        v = rank % shape.x;
        break;
      case Special::ClusterCtaidY:
        v = rank / shape.x % shape.y;
        break;
      case Special::ClusterCtaidZ:
        v = rank / shape.x / shape.y;
        break;
      case Special::ClusterCtarank:
        v = rank;
        break;
      case Special::ClusterNctaidX:
        v = shape.x;
        break;
      case Special::ClusterNctaidY:
        v = shape.y;
        break;
      case Special::ClusterNctaidZ:
        v = shape.z;
        break;
      case Special::ClusterNctarank:
        v = shape.count();
        break;
      case Special::IsExplicitCluster:
        v = launch.explicitCluster ? ~0u : 0u;
        break;
      case Special::GridWorkspaceHigh:
        v = launch.gridWorkspace >> 32;
        break;
      case Special::GridWorkspaceLow:
        v = launch.gridWorkspace & 0xFFFFFFFF;
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
      case Special::TotalSmemSize: // in units of allocation, without the system's part
        v = roundUp(sharedEnd - sharedBegin, launch.target->sm < 80 ? 256 : 128);
        break;
      case Special::AggrSmemSize:
        v = sharedEnd;
        break;
      case Special::ReservedSmemEnd:
      case Special::ReservedSmemCap:
        v = sharedBegin;
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

void BlockState::start(Dim3 at, std::uint64_t clusterNumber) {
  const Launch &launch = worker.launch;
  const Program &program = *launch.program;
  index = at;
  linear = (std::uint64_t(at.z) * launch.grid.y + at.y) * launch.grid.x + at.x;
  place = {clusterNumber, linear};
  instructions = virtualTime = clockReads = 0;
  finished = false;
  timeline = nullptr;
  if (races)
    races->start(*this);
  if (launch.seeded())
    chooser.start(launch.schedule, RandomStream{launch.seed, launch.gridId, linear},
                  static_cast<unsigned>(warps.size()));
  if (async)
    startAsync(*this);
  if (wgmma)
    startWgmma(*wgmma);
  if (registerPool)
    startRegisterPool(*this);
  for (BarrierState &b : barriers)
    b.open = false;
  if (program.usesCluster)
    clusterArrivals = {};
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
        v = index.x;
        break;
      case Special::CtaidY:
        v = index.y;
        break;
      case Special::CtaidZ:
        v = index.z;
        break;
      case Special::ClusterIdX:
        v = index.x / launch.cluster.x;
        break;
      case Special::ClusterIdY:
        v = index.y / launch.cluster.y;
        break;
      case Special::ClusterIdZ:
        v = index.z / launch.cluster.z;
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
  if (launch.timeline && launch.timeline->wants(at)) {
    timeline = launch.timeline;
    timeline->start(*this);
  }
}

} // namespace kiln::emulator
