//===- ChunkOptions.h - The options of calls by chunks, listed once ------------===//
//
// Of every arguments struct of the family, whose fields have these names: forward and backward, of every rule.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKOPTIONS_H
#define KILN_KERNELS_DPLR_CHUNKOPTIONS_H

#include "kernels/dplr/ChunkTiling.h"

namespace kiln::kernels {

/// What `scale` is if a call gives none; RWKV7 has its own.
inline constexpr const char *scaleText = "of the outputs; default 1 / sqrt(K)";
inline constexpr const char *scaleTextOfRwkv7 = "of the outputs; default 1";

/// `gated`: whether the rule has gates.
template <typename Arguments, typename Visitor>
void chunkOptions(Arguments &a, Visitor &&v, bool gated = true, const char *scale = scaleText) {
  v(CallOption{"scale", scale}, a.scale);
  v(CallOption{"chunk_size", "tokens of a chunk: 16, 32, 64; 0: chosen"}, a.chunkSize);
  ChunkTiling::options(a.tiling, v);
  v(CallOption{"segment_size", "chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen"},
    a.segmentSize);
  if (!gated)
    return;
  v(CallOption{"lower_bound", "no log decay is below this"}, a.lowerBound);
  v(CallOption{"safe_gate", "no log decay is below -5"}, a.safeGate);
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKOPTIONS_H
