//===- RandomLayouts.h - Random layouts and pairs for the fuzzers ---------===//
//
// Fixed seeds give fixed sequences on every machine: Random draws from mt19937_64 with its own arithmetic, not with the
// distributions of the standard library.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LAYOUT_RANDOMLAYOUTS_H
#define KILN_TESTS_LAYOUT_RANDOMLAYOUTS_H

#include "compiler/layout/Encodings.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/layout/SharedEncodings.h"
#include "compiler/target/Target.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kiln::test {

class Random {
public:
  explicit Random(std::uint64_t seed) : engine(seed) {}

  std::uint64_t bits() { return engine(); }
  unsigned below(unsigned n) { return static_cast<unsigned>(engine() % n); }
  /// low .. high, both included.
  unsigned between(unsigned low, unsigned high) { return low + below(high - low + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[below(static_cast<unsigned>(list.size()))];
  }
  template <typename T> void shuffle(std::vector<T> &list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(static_cast<unsigned>(i))]);
  }

private:
  std::mt19937_64 engine;
};

struct LayoutPair {
  layout::LinearLayout source, destination;
  std::string kind; ///< how it was made, for messages
};

/// A random rank-2 encoding for 2^warpBits warps; every one lowers on every shape of rank 2.
layout::Encoding randomEncoding(Random &random, unsigned warpBits);

/// Accumulator or dot operand of mma v2 (with transposes), for pairs that mma_to_mma can serve.
layout::Encoding randomFragment(Random &random, unsigned warpBits);

/// Every coordinate bit at a random place; lanes, warps and blocks that get none replicate.
layout::LinearLayout randomPermutation(Random &random, unsigned tensorBits, unsigned warpBits, unsigned blockBits,
                                       std::span<const std::uint32_t> shape);

/// What kinds of pairs randomPair makes.
enum class PairKind : unsigned char {
  Any,      ///< the mix of all below
  Same,     ///< the destination is the source
  Renamed,  ///< registers permuted, nothing else
  InWarp,   ///< registers and lanes exchanged
  Fragment, ///< two fragments of one mma
  Free,     ///< two encodings, or two random permutations, unrelated
};

/// Two layouts of one random shape, warps and blocks.  0..10 tensor bits, 1..16 warps, 1..4 blocks; except for Same and
/// Renamed each may be sheared by an invertible map of the coordinate bits, and may have overlapping hardware bits.
LayoutPair randomPair(Random &random, PairKind kind = PairKind::Any, unsigned maxTensorBits = 10);

unsigned randomWidth(Random &random);

/// One of all targets; one that has clusters if `clusters`.
const Target &randomTarget(Random &random, bool clusters);

/// 1 KiB .. 48 KiB, the default in half of the cases.
std::uint64_t randomScratch(Random &random);

/// A swizzled or tma buffer for a tensor of that (rank 2) shape.
layout::SharedEncoding randomSharedEncoding(Random &random, std::uint32_t rows, std::uint32_t columns, unsigned bits);

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_RANDOMLAYOUTS_H
