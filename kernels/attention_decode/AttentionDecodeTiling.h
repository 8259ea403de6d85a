//===- AttentionDecodeTiling.h - Tiles and splits of attention over a cache ------===//
//
// Such a call moves keys and values and computes little: programs are to be as many as run at the same time, and each
// is to have copies in flight all the time.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODETILING_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODETILING_H

#include "compiler/target/Target.h"
#include "kernels/attention_decode/AttentionDecode.h"
#include "kernels/attention_decode/SplitCombine.h"

namespace kiln::kernels {

struct DecodeExtent {
  std::int64_t rows;      ///< tokens of all heads of a group
  std::int64_t newTokens; ///< of k_new
  DType element;
};

/// Sets blockM, blockN, blockNew, warps and stages of a configuration whose dim, dimV and options are set.
void chooseDecodeTiles(AttentionDecodeConfig &config, const DecodeExtent &extent, const Target &code,
                       const Target &device);

/// Whether the copy engine is to fetch whole blocks of cached rows, counted back from the last key: where several
/// warpgroups multiply.  Threads that copy meet in each round, and all of a program's warpgroups compute powers at the
/// same time.  Not with rows of padding, which lie before the first key.
bool copiesWholeBlocks(const AttentionDecodeConfig &config, const Target &code);

/// Programs that share the keys of a row, at most 256: `programs` there are without, for `keys` keys at most.  Depends
/// on nothing that only the device knows.
std::int64_t chooseSplits(const AttentionDecodeConfig &config, DType element, std::int64_t programs, std::int64_t keys,
                          const Target &device, std::int64_t multiprocessors);

/// Sets splits, step and rows of a configuration whose dimV is set; `rows`: of a key head.
void chooseCombineTiles(SplitCombineConfig &config, std::int64_t splits, std::int64_t rows);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODETILING_H
