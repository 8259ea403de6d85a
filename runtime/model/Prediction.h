//===- Prediction.h - A launch's time without a GPU -----------------------===//
//
// From what the emulator counted to milliseconds and to what limits them.  A pure function of counters and of a GPU's
// numbers:
//
//   unit    cycles of a multiprocessor that each unit works for a block: matrix unit, shared memory, special functions,
//           issue of instructions (by opcode: what each costs)
//   block   norm(matrix, shared, special, issue), norm(x, y, ..) = (x^p + y^p + ..)^(1/p): between units that overlap
//           whole (p infinite: the greatest) and not at all (p = 1: the sum), since the phases of a warp overlap in
//           part.  Products by wgmma read shared memory themselves: the greater of the two counts as one term
//   chip    equal blocks: as long as the multiprocessor with the most of them works; unequal ones: the mean over the
//           multiprocessors and half of the longest block, and no less than the longest; both with `handOver` for each
//           block where it is alone on its multiprocessor, so that nothing hides how it begins and ends
//   moves   the greater of L2's and DRAM's time
//   launch  the greater of chip and moves where asynchronous copies bring most of the bytes, else their norm
//           (overlapOfWarps); with products by wgmma at least what the power limit allows; plus `overhead`
//
// Latency of dependent instructions is not modelled: kernels of few warps that run one after another (chunk scans,
// decoding) take longer than it says.  Nor is L1: all sectors that a load asks for come from L2.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_MODEL_PREDICTION_H
#define KILN_RUNTIME_MODEL_PREDICTION_H

#include "kiln/Counters.h"
#include "runtime/model/Hardware.h"

#include <array>
#include <string_view>

namespace kiln::model {

/// What a launch's time can go to.  KILN_LIMITER(id, name)
#define KILN_LIMITERS                                                                                                  \
  KILN_LIMITER(Matrix, "matrix unit")                                                                                  \
  KILN_LIMITER(Shared, "shared memory")                                                                                \
  KILN_LIMITER(Special, "special functions")                                                                           \
  KILN_LIMITER(Issue, "issue slots")                                                                                   \
  KILN_LIMITER(L2, "L2 bytes")                                                                                         \
  KILN_LIMITER(Dram, "DRAM bytes")                                                                                     \
  KILN_LIMITER(Power, "power")                                                                                         \
  KILN_LIMITER(Tail, "tail and hand-over")                                                                             \
  KILN_LIMITER(Launch, "launch")

enum class Limiter : std::uint8_t {
#define KILN_LIMITER(id, name) id,
  KILN_LIMITERS
#undef KILN_LIMITER
};
constexpr unsigned limiters = static_cast<unsigned>(Limiter::Launch) + 1;
std::string_view limiterName(Limiter limiter);

struct Prediction {
  double milliseconds = 0;
  /// Milliseconds that the launch would take if nothing but this limited it; of Tail, those that blocks wait for others
  /// at the end of waves and that beginnings and ends of blocks take.
  std::array<double, limiters> alone{};
  Limiter limiter = Limiter::Launch; ///< the greatest of `alone`
  unsigned resident = 0;             ///< blocks of a multiprocessor, as shared memory and warps allow
  double waves = 0;                  ///< blocks for each place that there is
};

constexpr double handOver = 3000;  ///< cycles
constexpr double overhead = 0.003; ///< milliseconds between the starts of launches
/// p of kernels that multiply by wgmma, one block of few warps, and of all others.  Fitted to docs/performance.md.
constexpr double overlapOfWarpgroups = 1.25, overlapOfWarps = 1.5;

/// `dramBytes`: the most that can move between DRAM and L2, such as the bytes of all tensors and of the workspace; the
/// lesser of it and what the blocks ask L2 for counts.
Prediction predict(const LaunchCounters &counters, const Target &target, const Hardware &hardware,
                   unsigned multiprocessors, double dramBytes);

} // namespace kiln::model

#endif // KILN_RUNTIME_MODEL_PREDICTION_H
