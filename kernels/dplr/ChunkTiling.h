//===- ChunkTiling.h - How a call by chunks is cut into programs, if the caller says so --===//
//
// Of programs that work on one chunk and of those that walk along chunks (Dplr.h).  The sizes of chunks and of segments
// are no part of it: other sizes round differently, and what a forward call saves depends on its chunks.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKTILING_H
#define KILN_KERNELS_DPLR_CHUNKTILING_H

#include "kernels/support/CallOptions.h"

namespace kiln::kernels {

/// 0: the operation chooses.  `options` says what else each may be.
struct ChunkTiling {
  int warps = 0;
  int blockV = 0, chainWarps = 0, stages = 0;
  bool given() const { return warps || blockV || chainWarps || stages; }

  template <typename Self, typename Visitor> static void options(Self &t, Visitor &&v) {
    v(CallOption{.name = "warps",
                 .text = "of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen",
                 .values = powersOfTwo(4, 16).tuned()},
      t.warps);
    v(CallOption{.name = "block_v",
                 .text = "columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen",
                 .values = powersOfTwo(16, 64).tuned()},
      t.blockV);
    v(CallOption{.name = "chain_warps",
                 .text = "of such a program: 1 to 8; 0: chosen",
                 .values = powersOfTwo(1, 8).tuned()},
      t.chainWarps);
    v(CallOption{.name = "stages",
                 .text = "chunks that it has in flight: 1 to 4; 0: chosen",
                 .values = between(1, 4).tuned()},
      t.stages);
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKTILING_H
