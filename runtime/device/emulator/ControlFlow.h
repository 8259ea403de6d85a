//===- ControlFlow.h - Order and liveness of decoded ops ------------------===//
//
// Two questions about one function's ops: in which order should divergent splits run so that they meet again, and which
// register pieces may be read before they are written.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CONTROLFLOW_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CONTROLFLOW_H

#include "runtime/device/emulator/Decoder.h"

namespace kiln::emulator {

/// The basic blocks of ops [begin, end): block i is [starts[i], starts[i + 1]), starts.back() is `end`.
struct FlowGraph {
  std::vector<std::uint32_t> starts;
  std::vector<std::vector<std::uint32_t>> successors;

  FlowGraph(std::span<const FlowEdge> flows, std::uint32_t begin, std::uint32_t end);
  std::size_t size() const { return successors.size(); }
  std::uint32_t blockOf(std::uint32_t op) const;
};

/// Blocks in an order where a loop's blocks are together and before what follows the loop, and both arms of a branch are
/// before the block where they meet (a weak topological order: Bourdoncle 1993).  Unreachable blocks come last.
std::vector<std::uint32_t> weakTopologicalOrder(const FlowGraph &graph);

/// The 128-byte register pieces (slot / 128) that may be read before they are written in the ops of `graph`.
std::vector<std::uint32_t> readBeforeWritten(const FlowGraph &graph, std::span<const SlotAccess> accesses, std::size_t pieces);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CONTROLFLOW_H
