#include "runtime/model/Estimate.h"

#include "runtime/model/Prediction.h"

#include <algorithm>
#include <cmath>

namespace kiln::model {

/// Registers of a thread besides the tiles that are counted: addresses, operands, loops.
constexpr unsigned registersBesides = 40;
constexpr double slowedBySpills = 2;
constexpr unsigned schedulers = 4;
/// Cycles of a step's wait and barriers, about, in which other programs go on.
constexpr double stepCycles = 200;
/// Cycles that bytes of L2 take to shared memory, about.
constexpr double copyLatency = 700;

double estimateMilliseconds(const ProgramNeeds &n, const Target &target, const Hardware &hardware,
                            unsigned multiprocessors) {
  const unsigned threads = 32 * n.warps, registers = n.registers + registersBesides;
  const bool spills = registers > std::min(target.registersPerThread, target.registersPerSm / std::max(threads, 1u));
  const unsigned resident =
      std::max(1u, residentBlocks(target, threads, n.sharedBytes, std::min(registers, target.registersPerThread)));
  const double clock = (n.warpgroups ? hardware.productClock : hardware.clock) * 1e6; // cycles of a millisecond
  const double busy = std::min(1.0, static_cast<double>(n.warps * resident) / schedulers);
  const double share = n.warpgroups || !target.has(Capability::Wgmma) ? 1 : hardware.syncShare;
  const double product = n.flops / (hardware.matrix * n.rate * share * busy) + n.steps * stepCycles / resident;
  double rate = hardware.l2 * 1e6 / clock / multiprocessors; // bytes of a cycle
  if (n.overlapped)
    rate = 1 / (1 / rate + copyLatency / (static_cast<double>(n.sharedBytes) * resident));
  const double copies = n.bytes / rate, p = n.warpgroups ? overlapOfWarpgroups : overlapOfWarps;
  double cycles = n.overlapped ? std::pow(std::pow(product, p) + std::pow(copies, p), 1 / p) : product + copies;
  if (spills)
    cycles *= slowedBySpills;
  if (resident == 1)
    cycles += handOver;
  return std::ceil(n.programs / multiprocessors) * cycles / clock + overhead;
}

} // namespace kiln::model
