//===- Tiling.h - How a call is cut into programs, if the caller says so ------===//
//
// An operation chooses tiles, warps and stages for each call.  A caller who measured something better for his own
// sizes says so here; `kiln bench NAME --with warps=8` is how to measure it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_TILING_H
#define KILN_KERNELS_SUPPORT_TILING_H

#include "compiler/target/Target.h"
#include "kernels/support/Family.h"
#include "support/Text.h"

#include <bit>
#include <cmath>

namespace kiln::kernels {

/// 0: the operation chooses.
struct Tiling {
  int blockM = 0, blockN = 0, blockK = 0; ///< powers of two, 16 to 256
  int warps = 0;                          ///< a power of two, 1 to 32
  int stages = 0; ///< tiles in flight, 1 to 8; refused where a block's shared memory does not hold them
  bool given() const { return blockM || blockN || blockK || warps || stages; }
};

struct TilingField {
  const char *name;
  int Tiling::*field;
  int least, most;
  bool powerOfTwo;
  const char *description;
};
inline constexpr TilingField tilingFields[] = {
    {"block_m", &Tiling::blockM, 16, 256, true, "rows of a program's tile; 0: chosen"},
    {"block_n", &Tiling::blockN, 16, 256, true, "columns of a program's tile, attention: keys of a step; 0: chosen"},
    {"block_k", &Tiling::blockK, 16, 256, true, "depth of a step; 0: chosen"},
    {"warps", &Tiling::warps, 1, 32, true, "of a program; 0: chosen"},
    {"stages", &Tiling::stages, 1, 8, false, "tiles in flight; 0: chosen"}};

/// Refuses what no kernel takes, by name.
inline Status checkTiling(std::string_view operation, const Tiling &tiling) {
  for (const TilingField &f : tilingFields) {
    const int value = tiling.*f.field;
    if (value == 0)
      continue;
    if (value < f.least || value > f.most || (f.powerOfTwo && !std::has_single_bit(static_cast<unsigned>(value))))
      return Status::invalid(std::string(operation) + ": " + f.name + " = " + std::to_string(value) + ": " +
                                 (f.powerOfTwo ? "a power of two from " : "from ") + std::to_string(f.least) + " to " +
                                 std::to_string(f.most),
                             "give 0 to have it chosen");
  }
  return {};
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

/// The parameters of a command, without block_k where a kernel has none.
inline void addTilingParameters(std::vector<NumberParameter> &parameters, bool depth) {
  for (const TilingField &f : tilingFields)
    if (depth || f.field != &Tiling::blockK)
      parameters.push_back({f.name, {}, f.description});
}

inline Result<Tiling> tilingOf(std::string_view operation, const Numbers &numbers) {
  Tiling out;
  for (const TilingField &f : tilingFields) {
    const double value = numberOr(numbers, f.name, 0);
    if (value != std::floor(value) || !(std::abs(value) <= 1 << 20))
      return Status::invalid(format("%s: %s = %g", std::string(operation).c_str(), f.name, value),
                             "give a whole number, 0 to have it chosen");
    out.*f.field = static_cast<int>(value);
  }
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_TILING_H
