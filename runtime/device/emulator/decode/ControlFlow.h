//===- ControlFlow.h - Blocks and their order -----------------------------===//
//
// The basic blocks of a decoded function, and the order in which divergent splits should run so that they meet again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_CONTROLFLOW_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_CONTROLFLOW_H

#include "runtime/device/emulator/decode/Decoder.h"

namespace kiln::emulator {

/// Whether a branch counts for the loops that a split has gone through.  By the place in the text: every cycle has such
/// a branch.  By Program::order the edge that closes a loop may be no branch: a head that stands after its body is
/// reached by falling into it.
constexpr bool isBackward(std::uint32_t from, std::uint32_t to) {
  return to <= from;
}

/// The basic blocks of ops [begin, end): block i is [starts[i], starts[i + 1]), starts.back() is `end`.
struct FlowGraph {
  std::vector<std::uint32_t> starts;
  std::vector<std::vector<std::uint32_t>> successors;

  FlowGraph(std::span<const FlowEdge> flows, std::uint32_t begin, std::uint32_t end);
  std::size_t size() const { return successors.size(); }
  std::uint32_t blockOf(std::uint32_t op) const;
};

/// Blocks in an order where a loop's blocks are together and before what follows the loop, and both arms of a branch
/// are before the block where they meet (a weak topological order: Bourdoncle 1993).  Unreachable blocks come last.
std::vector<std::uint32_t> weakTopologicalOrder(const FlowGraph &graph);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_CONTROLFLOW_H
