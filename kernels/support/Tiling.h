//===- Tiling.h - How a call is cut into programs, if the caller says so ------===//
//
// An operation chooses tiles, warps and stages for each call.  A caller who measured something better for his own
// sizes says so here; `kiln bench NAME --with warps=8` is how to measure it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_TILING_H
#define KILN_KERNELS_SUPPORT_TILING_H

#include "compiler/target/Target.h"
#include "kernels/support/CallOptions.h"
#include "kiln/Operation.h"

namespace kiln::kernels {

/// 0: the operation chooses.  `options` says what else each may be.
struct Tiling {
  int blockM = 0, blockN = 0, blockK = 0, warps = 0;
  int stages = 0; ///< refused where a block's shared memory does not hold them
  bool given() const { return blockM || blockN || blockK || warps || stages; }

  /// `depth`: whether the kernel has steps of a depth.
  template <typename Self, typename Visitor> static void options(Self &t, Visitor &&v, bool depth = true) {
    constexpr Values tile = powersOfTwo(16, 256).tuned();
    v(CallOption{.name = "block_m", .text = "rows of a program's tile; 0: chosen", .values = tile}, t.blockM);
    v(CallOption{.name = "block_n",
                 .text = "columns of a program's tile, attention: keys of a step; 0: chosen",
                 .values = tile},
      t.blockN);
    if (depth)
      v(CallOption{.name = "block_k", .text = "depth of a step; 0: chosen", .values = tile}, t.blockK);
    v(CallOption{.name = "warps", .text = "of a program; 0: chosen", .values = powersOfTwo(1, 32).tuned()}, t.warps);
    v(CallOption{.name = "stages", .text = "tiles in flight; 0: chosen", .values = between(1, 8).tuned()}, t.stages);
  }
};

/// Refuses a value that is not among the option's, by name; 0 has it chosen.
inline Status checkTile(std::string_view operation, const CallOption &option, int value) {
  const Values &values = option.values;
  if (value == 0 || values.take(value))
    return {};
  return Status::invalid(std::string(operation) + ": " + option.name + " = " + std::to_string(value) + ": " +
                             (values.step ? "" : "a power of two ") + "from " + std::to_string(values.least) + " to " +
                             std::to_string(values.most),
                         "give 0 to have it chosen");
}

/// Refuses what no kernel takes, by name.
inline Status checkTiling(std::string_view operation, const Tiling &tiling) {
  Status problem;
  Tiling::options(tiling, [&](const CallOption &option, int value) {
    if (problem.ok())
      problem = checkTile(operation, option, value);
  });
  return problem;
}

/// Bytes of shared memory that a block may use: what the device has, and what code for `codeTarget` may ask for.
inline Result<std::int64_t> sharedBytesOf(const Jit &jit) {
  KILN_ASSIGN(const Target *code, findTarget(jit.codeTarget()));
  const Target *const device = jit.device().info().target;
  return std::min<std::int64_t>(code->sharedOptIn, device ? device->sharedOptIn : code->sharedOptIn);
}

/// Refuses stages that the shared memory of a block does not hold; the compiler would make fewer than were asked for.
/// `tiles` says whose `bytesOfStage` these are.  Code without asynchronous copies has no stages.
inline Status checkStages(const Jit &jit, std::string_view operation, int stages, std::int64_t bytesOfStage,
                          const std::string &tiles) {
  KILN_ASSIGN(const Target *code, findTarget(jit.codeTarget()));
  KILN_ASSIGN(const std::int64_t available, sharedBytesOf(jit));
  const std::int64_t needed = stages * bytesOfStage;
  if (stages == 1 || needed <= available || !code->has(Capability::CpAsync))
    return {};
  const std::int64_t most = available / bytesOfStage;
  return Status::invalid(std::string(operation) + ": stages = " + std::to_string(stages) + " of " + tiles + " need " +
                             std::to_string(needed) + " bytes of shared memory; a block of " +
                             jit.device().info().name + " has " + std::to_string(available),
                         (most > 1 ? "give at most " + std::to_string(most) + " stages, or smaller tiles"
                                   : std::string("give smaller tiles, or 1 stage")) +
                             "; 0 has them chosen");
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_TILING_H
