//===- Target.h - GPU targets and what they can do ------------------------===//
//
// One row a target, in Targets.def; nothing else in Kiln compares architecture numbers to decide what a GPU can do:
// passes, planner and emulator ask `has(Capability)`.  A target keeps its suffix everywhere ("sm_90a" is not "sm_90").
// Targets are plain values: a test may copy one and flip a capability.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_TARGET_H
#define KILN_TARGET_TARGET_H

#include "support/Status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

enum class Capability : unsigned char {
#define KILN_CAPABILITY(id, text, isa) id,
#include "compiler/target/Capabilities.def"
};

std::string_view capabilityName(Capability c);
/// The lowest PTX ISA whose text can say it, 78 for 7.8; 0 if it is not an instruction.
unsigned capabilityPtxIsa(Capability c);
std::span<const Capability> allCapabilities();

class CapabilitySet {
public:
  constexpr CapabilitySet() = default;
  constexpr CapabilitySet(std::initializer_list<Capability> list) {
    for (Capability c : list)
      insert(c);
  }
  constexpr bool has(Capability c) const { return bits >> static_cast<unsigned>(c) & 1; }
  constexpr void insert(Capability c) { bits |= 1u << static_cast<unsigned>(c); }
  constexpr void erase(Capability c) { bits &= ~(1u << static_cast<unsigned>(c)); }
  constexpr bool operator==(const CapabilitySet &) const = default;
  constexpr std::uint32_t raw() const { return bits; }

private:
  std::uint32_t bits = 0;
};

/// Sizes are bytes unless named otherwise; "block" is a CTA.
struct Target {
  std::string_view name;            ///< "sm_90a"
  unsigned sm = 0;                  ///< 90
  bool archSpecific = false;        ///< has the suffix 'a'
  unsigned ptxIsa = 0;              ///< lowest PTX ISA that knows the target, 78 for 7.8
  std::uint32_t sharedStatic = 0;   ///< shared memory a block may declare statically
  std::uint32_t sharedOptIn = 0;    ///< shared memory a block may use after opting in
  std::uint32_t sharedPerSm = 0;    ///< shared memory of one SM
  std::uint32_t sharedReserved = 0; ///< of it, taken by the system for each block
  std::uint32_t registersPerSm = 0; ///< 32-bit registers of one SM
  std::uint32_t registersPerThread = 0;
  std::uint32_t threadsPerBlock = 0;
  std::uint32_t warpsPerSm = 0;
  std::uint32_t blocksPerSm = 0;
  CapabilitySet capabilities;

  bool has(Capability c) const { return capabilities.has(c); }
};

/// Blocks of a cluster that every target with clusters takes; larger ones are an opt-in of some GPUs.
constexpr unsigned portableClusterBlocks = 8;

/// Every target, oldest first.
std::span<const Target> allTargets();

/// The target called `name`; a failure lists the targets that exist and the nearest names.
Result<const Target *> findTarget(std::string_view name);

/// "sm_75, sm_80, ..." for messages and help texts.
std::string targetNames();

/// Blocks of one SM that are resident together: limited by warps, shared memory and registers.
/// `registersPerThread` 0 means unknown (no limit).  0 if a single block does not fit.
unsigned residentBlocks(const Target &target, unsigned threads, std::uint64_t sharedBytes, unsigned registersPerThread);

/// Registers of a thread in a block of which some warps only copy.
struct RoleRegisters {
  unsigned copies = 0, computes = 0;
};
/// What warps that copy can do with, and what the others have then (setmaxnreg), of a block that has its multiprocessor
/// for itself.  None where registers cannot be handed on, in whole warpgroups, or where there are enough for all.
std::optional<RoleRegisters> roleRegisters(const Target &target, unsigned computeWarps, unsigned copyWarps);

} // namespace kiln

#endif // KILN_TARGET_TARGET_H
