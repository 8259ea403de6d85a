//===- AttentionTiling.h - Tiles of attention for a call --------------------------===//
//
// Rows of a program, keys of a step and warps, for the head dims, the options and the device.  None of the choices
// spills registers on sm_80 and sm_90 (tests/kernels/AssembleTest.cpp); which is the fastest was measured on an H200
// (docs/lab/2026-11.md).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONTILING_H
#define KILN_KERNELS_ATTENTION_ATTENTIONTILING_H

#include "compiler/target/Target.h"
#include "kernels/attention/Attention.h"

#include <algorithm>

namespace kiln::kernels {

/// What a call computes: rows of the longest sequences, at most, and heads of all sequences together.
struct AttentionExtent {
  std::int64_t queries, keys, heads;
  bool aligned = true; ///< keys and values lie in whole 16 bytes, so that copies can run during the computation
  DType element = DType::BF16;
};

/// Sets blockM, blockN and warps of a configuration whose dim, dimV, stages and options are set.  `code`: what the code
/// may use; `device`: what runs it, whose shared memory counts as well, with so many `multiprocessors`.
void chooseTiles(AttentionConfig &config, const AttentionExtent &extent, const Target &code, const Target &device,
                 std::int64_t multiprocessors);

/// Makes tiles smaller until they divide the blocks of a call's lists.
template <typename Config> void divideBlocks(Config &c) {
  if (!c.hooks.hasLists())
    return;
  const int before = c.blockM * c.blockN;
  while (c.hooks.blockRows % c.blockM)
    c.blockM /= 2;
  while (c.hooks.blockKeys % c.blockN)
    c.blockN /= 2;
  c.warps = std::max(1, c.warps * (c.blockM * c.blockN) / before);
}

/// Whether programs are to take tile after tile: where few rounds make a tile, and one program of two warpgroups fits a
/// multiprocessor, one of which stores while the other multiplies for the next tile.
bool takesSeveralTiles(const AttentionConfig &config, const AttentionExtent &extent, const Target &code,
                       std::int64_t multiprocessors);

/// Programs that `device` holds at the same time, by warps, shared memory and the configuration's registers.
std::int64_t residentPrograms(const AttentionConfig &config, DType element, const Target &device,
                              std::int64_t multiprocessors);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONTILING_H
