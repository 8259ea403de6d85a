#include "compiler/target/Target.h"

#include "support/Text.h"

#include <algorithm>
#include <array>
#include <vector>

namespace kiln {

static constexpr std::string_view capabilityNames[] = {
#define KILN_CAPABILITY(id, text, isa) text,
#include "compiler/target/Capabilities.def"
};
static constexpr unsigned capabilityIsas[] = {
#define KILN_CAPABILITY(id, text, isa) isa,
#include "compiler/target/Capabilities.def"
};
static constexpr Capability capabilityList[] = {
#define KILN_CAPABILITY(id, text, isa) Capability::id,
#include "compiler/target/Capabilities.def"
};
static_assert(std::size(capabilityList) <= 32, "CapabilitySet holds 32 bits");

static constexpr std::uint32_t KiB = 1024;
static constexpr Target targetTable[] = {
#define KILN_TARGET(name, sm, suffix, isa, fixed, optIn, perSm, reserved, regs, regsThread, threads, warps, blocks,    \
                    ...)                                                                                               \
  {name,     sm,   suffix,     isa,     fixed * KiB, optIn * KiB, perSm * KiB,                                         \
   reserved, regs, regsThread, threads, warps,       blocks,      CapabilitySet{__VA_ARGS__}},
#include "compiler/target/Targets.def"
};

std::string_view capabilityName(Capability c) {
  return capabilityNames[static_cast<unsigned>(c)];
}
unsigned capabilityPtxIsa(Capability c) {
  return capabilityIsas[static_cast<unsigned>(c)];
}
std::span<const Capability> allCapabilities() {
  return capabilityList;
}
std::span<const Target> allTargets() {
  return targetTable;
}

static std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Target &t : targetTable)
    out.emplace_back(t.name);
  return out;
}

std::string targetNames() {
  return join(names());
}

Result<const Target *> findTarget(std::string_view name) {
  for (const Target &t : targetTable)
    if (t.name == name)
      return &t;
  std::vector<std::string> near = nearest(name, names());
  return Status(StatusCode::NotFound, "unknown target '" + std::string(name) + "'; known targets: " + targetNames(),
                near.empty() ? "choose one of them" : "did you mean " + join(near, " or ") + "?");
}

std::optional<RoleRegisters> roleRegisters(const Target &target, unsigned computeWarps, unsigned copyWarps) {
  constexpr unsigned unit = 8, least = 24, most = 240, warp = 32, warpgroup = 4;
  if (!copyWarps || computeWarps % warpgroup || copyWarps % warpgroup || !target.has(Capability::Setmaxnreg))
    return std::nullopt;
  const unsigned computes = computeWarps * warp, copies = copyWarps * warp, threads = computes + copies;
  const unsigned each = target.registersPerSm / threads / unit * unit; // as the block begins
  if (each >= most || each < least)
    return std::nullopt;
  RoleRegisters out;
  out.computes = std::min(most, (each * threads - copies * least) / computes / unit * unit);
  out.copies = std::min(each, (each * threads - computes * out.computes) / copies / unit * unit);
  return out;
}

unsigned residentBlocks(const Target &target, unsigned threads, std::uint64_t sharedBytes,
                        unsigned registersPerThread) {
  if (threads == 0 || threads > target.threadsPerBlock || sharedBytes > target.sharedOptIn)
    return 0;
  const unsigned warps = (threads + 31) / 32;
  std::uint64_t blocks = std::min<std::uint64_t>(target.blocksPerSm, target.warpsPerSm / warps);
  // Shared memory is handed out in units of 128 bytes.
  const std::uint64_t shared = (sharedBytes + 127) / 128 * 128 + target.sharedReserved;
  if (shared)
    blocks = std::min(blocks, target.sharedPerSm / shared);
  if (registersPerThread) {
    // Registers are handed out a warp at a time, in units of 256.
    const std::uint64_t warpRegisters = (std::uint64_t(registersPerThread) * 32 + 255) / 256 * 256;
    blocks = std::min(blocks, target.registersPerSm / warpRegisters / warps);
  }
  return static_cast<unsigned>(blocks);
}

} // namespace kiln
