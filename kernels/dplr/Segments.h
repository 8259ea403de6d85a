//===- Segments.h - Long sequences in segments, as an operation launches them ------===//
//
// Walks of few sequences and heads take as long as a sequence has chunks, and leave most of the device idle.  Cut into
// segments (Dplr.h) they take a segment's chunks, twice, and as many steps as there are segments.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_SEGMENTS_H
#define KILN_KERNELS_DPLR_SEGMENTS_H

#include "kernels/dplr/SlotTensors.h"
#include "kernels/support/KernelTable.h"

namespace kiln::kernels {

/// Where sequences are cut, they are mostly cut into as many segments or more.
inline constexpr int fewestSegments = 8;

/// Chunks of a segment, for a call of these extents; 0: its sequences are walked along whole.  `c`: the chosen tiles.
int segmentOf(const Device &device, const DplrInputs &in, const DplrConfig &c);

/// The maps of a call's segments and the states at their ends: one part of its workspace.
class Segments {
public:
  Segments(const DplrInputs &in, const DplrConfig &c);
  std::size_t bytes() { return bytesOfSlots(shapes(), in.heads(), slots); }
  void place(DeviceAddress at) {
    if (c.segment)
      placeSlots(shapes(), in.heads(), slots, at);
  }

  const std::int64_t slots; ///< 0: no segments
  Tensor f, rt, rht, decay; ///< of every segment as of a chunk (Dplr.h), rt and rht f32; those that are walked with
  Tensor starts, ends;      ///< the state before it, the gradient of the state after it

private:
  std::array<SlotShape, 6> shapes();

  const DplrInputs &in;
  const DplrConfig c;
};

/// What lies between the chunks of a call and its walks; those that it has.
struct ChunkMaps {
  Tensor f = {}, rt = {}, rht = {}, decay = {};
  Tensor qh = {}, dO = {}; ///< of gradients with what was saved, in place of rht
};

class SegmentKernels {
public:
  /// Makes the maps of segments, walks along them: starts and ends are there, and of the states at the sequences' ends
  /// those that are wanted: `last` of a call without gradients, `dFirst` of one with them.
  Status launch(Plan &plan, Jit &jit, const char *operation, const DplrInputs &in, const DplrConfig &c,
                const Segments &segments, const ChunkMaps &chunks, const Tensor &dLast, const Tensor &last,
                const Tensor &dFirst);

private:
  KernelTable<DplrConfig> compose, chains;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_SEGMENTS_H
