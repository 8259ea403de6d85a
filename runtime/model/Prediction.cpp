#include "runtime/model/Prediction.h"

#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace kiln::model {

namespace {

constexpr double schedulers = 4, lanes = 32, sharedBytesOfCycle = 128;
constexpr double sumOfWarpgroup = 64; ///< rows of a warpgroup's product

/// Bits of a factor's elements: the second type of a product's opcode, after that of the result.  (wmma has forms that
/// name two sums' types only, whose factors are f16.)
double factorBits(const std::vector<std::string_view> &words) {
  unsigned types = 0;
  for (std::string_view w : words) {
    const bool is8 = w == "e4m3" || w == "e5m2" || w == "s8" || w == "u8";
    const bool is4 = w == "s4" || w == "u4", is16 = w == "f16" || w == "bf16" || w == "f32";
    if ((is4 || is8 || is16 || w == "s32" || w == "tf32" || w == "f64" || w == "b1") && ++types == 2)
      return w == "b1" ? 1 : is4 ? 4 : is8 ? 8 : is16 ? 16 : w == "f64" ? 64 : 32;
  }
  return 16;
}

/// Cycles of a multiprocessor's units.
struct Units {
  double matrix = 0, shared = 0, special = 0, issued = 0, narrow = 0;
  double matrixFlops = 0; ///< as of 16 bits
  bool warpgroups = false;

  void add(const OpcodeCounts &o, const Hardware &h) {
    const std::vector<std::string_view> words = split(o.opcode, '.');
    const double n = static_cast<double>(o.counts.instructions);
    const std::string_view first = words[0];
    switch (o.kind) {
    case InstructionClass::Move: // the assembler's registers need most of them not
    case InstructionClass::Constant:
      return;
    case InstructionClass::Matrix: {
      const double bits = factorBits(words), flops = static_cast<double>(o.counts.matrixFlops);
      const bool wgmma = first == "wgmma";
      matrix += flops / h.matrix * bits / 16 / (wgmma ? 1 : h.syncShare);
      matrixFlops += flops * bits / 16;
      warpgroups |= wgmma;
      if (wgmma) // the second factor, once for the four warps; the first may lie in registers
        shared += flops / (2 * sumOfWarpgroup) * bits / 8 / sharedBytesOfCycle;
      break;
    }
    case InstructionClass::Special:
      special += n * lanes / h.special;
      break;
    case InstructionClass::Float:
      narrow += first == "max" || first == "min" ? n * lanes / h.narrow : 0;
      break;
    case InstructionClass::Integer:
    case InstructionClass::Compare:
    case InstructionClass::Convert:
      narrow += n * lanes / h.narrow;
      break;
    default:
      break;
    }
    issued += n / schedulers;
  }
};

double norm(double p, std::initializer_list<double> terms) {
  double sum = 0;
  for (double t : terms)
    sum += std::pow(t, p);
  return std::pow(sum, 1 / p);
}

} // namespace

std::string_view limiterName(Limiter limiter) {
  constexpr std::string_view names[] = {
#define KILN_LIMITER(id, name) name,
      KILN_LIMITERS
#undef KILN_LIMITER
  };
  return names[static_cast<unsigned>(limiter)];
}

Prediction predict(const LaunchCounters &c, const Target &target, const Hardware &h, unsigned multiprocessors,
                   double dramBytes) {
  Units units;
  for (const OpcodeCounts &o : c.opcodes)
    units.add(o, h);
  units.shared += static_cast<double>(c.total.sharedTotal().wavefronts);
  for (const AccessKind bulk : {AccessKind::BulkLoad, AccessKind::BulkStore})
    units.shared += static_cast<double>(c.total.shared[static_cast<unsigned>(bulk)].bytes) / sharedBytesOfCycle;

  const double blocks = static_cast<double>(c.grid[0]) * c.grid[1] * c.grid[2];
  const double ran = c.blocks.empty() ? blocks : static_cast<double>(c.blocks.size());
  const double scale = blocks / ran, sms = multiprocessors;
  const double issue = std::max(units.issued, units.narrow);
  // Products read shared memory while they multiply: the slower of the two counts.  mma.sync reads registers.
  const double one =
      (units.warpgroups ? norm(overlapOfWarpgroups, {std::max(units.matrix, units.shared), units.special, issue})
                        : norm(overlapOfWarps, {units.matrix, units.shared, units.special, issue})) /
      ran;

  Prediction out;
  const unsigned threads = c.block[0] * c.block[1] * c.block[2];
  out.resident = std::max(1u, residentBlocks(target, threads, c.sharedBytes, 0));
  out.waves = blocks / (sms * out.resident);
  const double alone = out.resident == 1 ? handOver : 0, mean = blocks * one / sms;
  const double rows = std::ceil(blocks / sms); // of the multiprocessor with the most blocks
  double chip = rows * (one + alone);
  if (!c.blocks.empty()) {
    const auto [least, most] = std::minmax_element(c.blocks.begin(), c.blocks.end());
    const auto sum = static_cast<double>(std::accumulate(c.blocks.begin(), c.blocks.end(), std::uint64_t(0)));
    const double longest = sum > 0 ? one * static_cast<double>(*most) * ran / sum : one;
    if (static_cast<double>(*most) >= 1.02 * static_cast<double>(*least))
      chip = (rows > 1 ? std::max(mean + longest / 2, longest) : longest) + rows * alone;
  }

  const double clock = (units.warpgroups ? h.productClock : h.clock) * 1e6; // cycles of a millisecond
  const auto set = [&](Limiter l, double ms) { out.alone[static_cast<unsigned>(l)] = ms; };
  const GlobalCounts global = c.total.globalTotal();
  const double l2Bytes = static_cast<double>(global.sectors) * 32 * scale;
  set(Limiter::Matrix, units.matrix * scale / sms / clock);
  set(Limiter::Shared, units.shared * scale / sms / clock);
  set(Limiter::Special, units.special * scale / sms / clock);
  set(Limiter::Issue, issue * scale / sms / clock);
  set(Limiter::L2, l2Bytes / h.l2 * 1e-6);
  set(Limiter::Dram, std::min(l2Bytes, dramBytes) / h.dram * 1e-6);
  set(Limiter::Power, units.warpgroups ? units.matrixFlops * scale / h.sustained * 1e-9 : 0);
  set(Limiter::Tail, (chip - mean) / clock);
  set(Limiter::Launch, overhead);
  const auto of = [&](Limiter l) { return out.alone[static_cast<unsigned>(l)]; };
  // Asynchronous copies go on under the blocks' work; warps that load by themselves wait for their bytes.
  const double work = chip / clock, moves = std::max(of(Limiter::L2), of(Limiter::Dram));
  const std::uint64_t stored = c.total.global[static_cast<unsigned>(AccessKind::Store)].bytes;
  const bool asynchronous = 2 * c.total.asyncBytes >= global.bytes - stored;
  out.milliseconds =
      std::max(asynchronous ? std::max(work, moves) : norm(overlapOfWarps, {work, moves}), of(Limiter::Power)) +
      of(Limiter::Launch);
  out.limiter = static_cast<Limiter>(std::max_element(out.alone.begin(), out.alone.end()) - out.alone.begin());
  return out;
}

} // namespace kiln::model
