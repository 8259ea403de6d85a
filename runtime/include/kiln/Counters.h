//===- Counters.h - What a launch did, in numbers -------------------------===//
//
// `Device::record({.counters = true})` makes the emulator count; `Device::takeCounters` gives one LaunchCounters a
// launch.  Counts are functions of the addresses and masks of the kernel's instructions alone: they are the same for
// any number of host threads, on any CPU, with checks or without, and repeat exactly unless the kernel's control flow
// depends on timing.  (Another schedule may run the parts of a diverged warp apart for longer.)
//
//===----------------------------------------------------------------------===//
#ifndef KILN_COUNTERS_H
#define KILN_COUNTERS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// KILN_CLASS(id, name, what it is)
#define KILN_INSTRUCTION_CLASSES                                                                                       \
  KILN_CLASS(Integer, "integer", "whole numbers, bits, addresses")                                                     \
  KILN_CLASS(Float, "float", "add, multiply, fma, min, max of floats")                                                 \
  KILN_CLASS(Special, "special", "division, roots, exponential, logarithm, sine")                                      \
  KILN_CLASS(Convert, "convert", "cvt")                                                                                \
  KILN_CLASS(Compare, "compare", "comparisons and selections")                                                         \
  KILN_CLASS(Move, "move", "copies of registers, addresses of other spaces")                                           \
  KILN_CLASS(Control, "control", "branches, calls, ends")                                                              \
  KILN_CLASS(Warp, "warp", "shuffles, votes, everything between lanes")                                                \
  KILN_CLASS(Constant, "constant", "loads of parameters and constants")                                                \
  KILN_CLASS(Load, "load", "loads")                                                                                    \
  KILN_CLASS(Store, "store", "stores")                                                                                 \
  KILN_CLASS(Atomic, "atomic", "atomics and reductions in memory")                                                     \
  KILN_CLASS(MatrixMove, "matrix move", "ldmatrix, stmatrix, movmatrix, wmma.load, wmma.store")                        \
  KILN_CLASS(Matrix, "matrix", "matrix products")                                                                      \
  KILN_CLASS(Async, "asynchronous", "asynchronous copies, their groups and waits")                                     \
  KILN_CLASS(Mbarrier, "mbarrier", "operations on mbarriers")                                                          \
  KILN_CLASS(Barrier, "barrier", "barriers of blocks and clusters")                                                    \
  KILN_CLASS(Fence, "fence", "fences")                                                                                 \
  KILN_CLASS(Other, "other", "hints and the like")

enum class InstructionClass : std::uint8_t {
#define KILN_CLASS(id, name, text) id,
  KILN_INSTRUCTION_CLASSES
#undef KILN_CLASS
};
constexpr unsigned instructionClasses = static_cast<unsigned>(InstructionClass::Other) + 1;

constexpr std::string_view instructionClassName(InstructionClass c) {
  constexpr std::string_view names[] = {
#define KILN_CLASS(id, name, text) name,
      KILN_INSTRUCTION_CLASSES
#undef KILN_CLASS
  };
  return names[static_cast<unsigned>(c)];
}

/// How an instruction uses memory.  Copy: cp.async, of which the source is global and the destination shared memory.
/// BulkLoad: what bulk and tensor copies read in global and write in shared memory; BulkStore: what they read in shared
/// and write or reduce in global memory.
enum class AccessKind : std::uint8_t { Load, Store, Atomic, Copy, BulkLoad, BulkStore };
constexpr unsigned accessKinds = 6;
constexpr std::string_view accessKindName(AccessKind k) {
  constexpr std::string_view names[] = {"loads", "stores", "atomics", "copies", "bulk loads", "bulk stores"};
  return names[static_cast<unsigned>(k)];
}

struct GlobalCounts {
  std::uint64_t requests = 0; ///< warp instructions of which a lane accesses global memory; bulk copies: each
  std::uint64_t sectors = 0;  ///< different 32-byte sectors of each request
  std::uint64_t bytes = 0;    ///< that lanes ask for: equal addresses count for each lane
  bool operator==(const GlobalCounts &) const = default;
};

struct SharedCounts {
  std::uint64_t requests = 0;
  std::uint64_t wavefronts = 0; ///< passes over the 32 banks; none of bulk copies
  std::uint64_t conflicts = 0;  ///< of them, those that bank conflicts add
  std::uint64_t bytes = 0;
  bool operator==(const SharedCounts &) const = default;
};

struct Counts {
  std::uint64_t instructions = 0; ///< warp instructions, also those that every lane's guard turns off
  std::uint64_t threads = 0;      ///< lanes that executed them
  GlobalCounts global[accessKinds];
  SharedCounts shared[accessKinds];
  std::uint64_t localRequests = 0, localBytes = 0; ///< of the threads' own memory
  std::uint64_t barriers = 0;                      ///< arrivals of warps at barriers of the block or cluster
  std::uint64_t matrixFlops = 0; ///< 2 m n k of every product, integer and sparse ones by their nominal shape
  std::uint64_t asyncBytes = 0;  ///< that asynchronous copies move: cp.async, bulk and tensor copies

  Counts &operator+=(const Counts &other);
  bool operator==(const Counts &) const = default;
  GlobalCounts globalTotal() const;
  SharedCounts sharedTotal() const;
};

/// The counts of one source line.
struct LineCounts {
  std::string file;  ///< of .loc; the PTX file's if the instructions have none
  unsigned line = 0; ///< in `file`
  Counts counts;
  bool operator==(const LineCounts &) const = default;
};

/// The counts of all instructions with one opcode.
struct OpcodeCounts {
  std::string opcode; ///< with all modifiers
  InstructionClass kind = InstructionClass::Other;
  Counts counts;
  bool operator==(const OpcodeCounts &) const = default;
};

struct LaunchCounters {
  std::string kernel;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t sharedBytes = 0; ///< of a block, static and dynamic
  Counts total;
  std::uint64_t byClass[instructionClasses] = {}; ///< warp instructions
  std::vector<LineCounts> lines;                  ///< by file and line
  std::vector<OpcodeCounts> opcodes;              ///< by opcode
  /// Warp instructions of each block that ran, rising; empty unless a sample was asked for (Recording::sampledBlocks).
  std::vector<std::uint64_t> blocks;
  bool operator==(const LaunchCounters &) const = default;
};

} // namespace kiln

#endif // KILN_COUNTERS_H
