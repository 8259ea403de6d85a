#include "runtime/model/Estimate.h"

#include "runtime/model/Prediction.h"

#include <algorithm>
#include <cmath>

namespace kiln::model {

/// Registers of a thread besides the tiles that are counted: addresses, operands, loops.
constexpr unsigned registersBesides = 40;
constexpr double slowedBySpills = 2;
constexpr unsigned schedulers = 4;
/// Cycles that bytes of L2 take to shared memory, about.
constexpr double copyLatency = 700;
constexpr double sharedBytesOfCycle = 128;
/// What other programs and warpgroups do not hide of special functions, about.
constexpr double specialBetween = 0.8;

double estimateMilliseconds(const ProgramNeeds &n, const Target &target, const Hardware &hardware,
                            unsigned multiprocessors) {
  const unsigned threads = 32 * n.warps, registers = n.registers + n.carried + registersBesides;
  const bool spills = registers > std::min(target.registersPerThread, target.registersPerSm / std::max(threads, 1u));
  const unsigned resident =
      std::max(1u, residentBlocks(target, threads, n.sharedBytes, std::min(registers, target.registersPerThread)));
  const double clock = (n.warpgroups ? hardware.productClock : hardware.clock) * 1e6; // cycles of a millisecond
  const double busy = std::min(1.0, static_cast<double>(n.warps * resident) / schedulers);
  const double share = n.warpgroups || !target.has(Capability::Wgmma) ? 1 : hardware.syncShare;
  const double product = n.flops / (hardware.matrix * n.rate * share * busy) + n.steps * n.latency / resident;
  double rate = hardware.l2 * 1e6 / clock / multiprocessors; // bytes of a cycle
  if (n.overlapped)
    rate = 1 / (1 / rate + copyLatency / (static_cast<double>(n.sharedBytes) * resident));
  const double copies = n.bytes / rate, p = n.warpgroups ? overlapOfWarpgroups : overlapOfWarps;
  const auto norm = [&](double a, double b) { return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p); };
  const double work = norm(product, n.operands / sharedBytesOfCycle) + specialBetween * n.special / hardware.special;
  double cycles = n.overlapped ? norm(work, copies) : work + copies;
  if (spills)
    cycles *= slowedBySpills;
  if (resident == 1)
    cycles += handOver;
  return std::ceil(n.programs / multiprocessors) * cycles / clock + overhead;
}

} // namespace kiln::model
