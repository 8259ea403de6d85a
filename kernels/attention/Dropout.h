//===- Dropout.h - Which probabilities dropout keeps ----------------------------===//
//
// A pair of a row and a key, i and j of sequence b and query head h, is kept if 16 bits that are a function of
// (seed, offset, b, h, i, j) and of nothing else are no smaller than p * 2^16, rounded: p counts in steps of 2^-16.
//
// Philox4x32-10 makes 128 bits from a counter and a key, those of eight pairs.  The key, and what the sequence counts
// from, are words of the stream at the call's seed and offset.  Eight pairs of one counter are rows i, i + 8 and keys
// j, j + 1, j + 8, j + 9: in a tile of scores they are one thread's, whose accumulators lie so.
//
// Invariant: the bits of a pair are the same for ever, on the host (here) and in kernels (PairDropout.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DROPOUT_H
#define KILN_KERNELS_ATTENTION_DROPOUT_H

#include "support/Philox.h"

#include <cmath>

namespace kiln::kernels {

/// What a call's numbers become: kernels take these.
struct Dropout {
  std::uint32_t key0, key1, base;
  std::uint32_t below; ///< pairs whose bits are below it are dropped
  float factor;        ///< of those that are kept

  Dropout(float p, std::uint64_t seed, std::uint64_t offset)
      : below(static_cast<std::uint32_t>(std::lround(p * 0x1p16f))), factor(1 / (1 - p)) {
    const auto words = philox::words(seed, offset);
    key0 = words[0], key1 = words[1], base = words[2];
  }

  /// Of row `i` and key `j` of a sequence and a query head.
  bool keeps(std::uint32_t sequence, std::uint32_t head, std::uint32_t i, std::uint32_t j) const {
    const std::array<std::uint32_t, 4> counter = {j / 16 * 4 + j / 2 % 4, i / 16 * 8 + i % 8, head, base + sequence};
    const auto words = philox::rounds<philox::HostArithmetic>(counter, std::array{key0, key1});
    return (words[j / 8 % 2 * 2 + i / 8 % 2] >> 16 * (j % 2) & 0xFFFF) >= below;
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DROPOUT_H
