//===- AttentionDecodeCall.h - A call of attention over a cache, on the host ----===//
//
// What parameters by name (q, k_cache, page_table, ..) say together: sizes, and from the values of the tables which
// rows of the cache are a sequence's keys.  The command checks them, and the reference computes with them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECALL_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECALL_H

#include "kernels/support/Callable.h"

namespace kiln::kernels {

/// Of all sequences together: keys that they attend to, new ones included.  A call's values have it.
constexpr std::string_view keysValue = "keys";

struct DecodeSizes {
  std::uint64_t batch = 0, tokens = 0, heads = 0, keyHeads = 0, dim = 0, dimV = 0;
  std::uint64_t parts = 0, rows = 0;      ///< of the cache: batches or pages, and rows of each
  std::uint64_t newTokens = 0, pages = 0; ///< pages: of a sequence, in the table
  std::uint64_t angles = 0;               ///< columns of rotary_cos
  bool paged = false;
  std::uint64_t capacity() const { return paged ? pages * rows : rows; } ///< of a sequence
};
/// Refuses ranks and shapes that do not fit each other.
Result<DecodeSizes> decodeSizes(const TensorTypes &inputs);

/// Where a sequence's keys lie: row t of them is row `rowOf[t]` of the cache, counted through all its parts.
struct DecodeSequence {
  std::uint64_t cached = 0, keys = 0;
  std::vector<std::uint64_t> rowOf;
};
/// From the values of the tables, or the first entry that is wrong.
Result<std::vector<DecodeSequence>> decodeSequences(const DecodeSizes &sizes, const HostTensors &tables);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECALL_H
