//===- PairDropout.h - Which pairs of a block dropout keeps ----------------------===//
//
// Dropout.h defines it.  Of a block of [rows, keys] a thread makes a counter's bits once for its eight pairs; of one of
// [keys, rows] half of them, since two of the keys are another thread's there.
//
// Invariant: blocks begin at multiples of 16 rows and keys, and their extents are such.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIRDROPOUT_H
#define KILN_KERNELS_ATTENTION_PAIRDROPOUT_H

#include "compiler/language/Language.h"

#include <optional>

namespace kiln::kernels {

class PairDropout {
  using Word = language::Scalar<language::u32>;
  using Words = language::Tile<language::u32>;
  using Number = language::Scalar<language::i32>;

public:
  using Kept = language::Tile<language::i1>;
  using Factor = language::Scalar<language::f32>;
  struct Arguments {
    Word key0, key1, base, below;
    Factor factor; ///< of those that are kept
  };

  /// None: all pairs are kept.
  PairDropout() = default;
  PairDropout(const Arguments &arguments, const Number &sequence, const Number &head)
      : given(arguments), head(language::cast<language::u32>(head)),
        sequence(arguments.base + language::cast<language::u32>(sequence)) {}

  /// Of the block from `row0` and `key0` on; nothing if all are kept.
  std::optional<Kept> ofRows(const Number &row0, int rows, const Number &key0, int keys) const {
    using namespace language;
    if (!given)
      return std::nullopt;
    const Words ofKeys = expandDims(cast<u32>(key0 / 4 + range(0, keys / 4)), 0),
                ofRows = expandDims(cast<u32>(row0 / 2 + range(0, rows / 2)), 1);
    const std::array<Words, 4> words = wordsOf(ofKeys, ofRows, {rows / 2, keys / 4});
    const auto halves = [&](const Words &w) { return join(w & 0xFFFFu, w >> 16); };
    // [rows / 2, keys / 16, 4, key % 2, key / 8 % 2].
    const auto ofRow = [&](unsigned row) {
      const Words pairs = reshape(join(halves(words[row]), halves(words[2 + row])), {rows / 2, keys / 16, 4, 2, 2});
      return reshape(transpose(pairs, {0, 1, 4, 2, 3}), {rows / 2, keys});
    };
    return woven(ofRow(0), ofRow(1), rows, keys) >= given->below;
  }
  /// The same turned, [keys, rows].
  std::optional<Kept> ofKeys(const Number &row0, int rows, const Number &key0, int keys) const {
    using namespace language;
    if (!given)
      return std::nullopt;
    const auto key = range(0, keys / 2);
    const Words ofKeys = expandDims(cast<u32>(key0 / 4 + key / 8 * 4 + key / 2 % 4), 1),
                ofRows = expandDims(cast<u32>(row0 / 2 + range(0, rows / 2)), 0),
                shift = expandDims(cast<u32>(key % 2 * 16), 1);
    const std::array<Words, 4> words = wordsOf(ofKeys, ofRows, {keys / 2, rows / 2});
    // [keys / 2, rows / 16, 8, row / 8 % 2].
    const auto ofKey = [&](unsigned key) {
      const Words pairs = reshape(join(words[2 * key], words[2 * key + 1]), {keys / 2, rows / 16, 8, 2});
      return reshape(transpose(pairs, {0, 1, 3, 2}), {keys / 2, rows}) >> shift & 0xFFFFu;
    };
    return woven(ofKey(0), ofKey(1), keys, rows) >= given->below;
  }

private:
  std::array<Words, 4> wordsOf(const Words &ofKeys, const Words &ofRows, const language::Shape &shape) const {
    using namespace language;
    const std::array<Words, 4> counter = {broadcastTo(ofKeys, shape), broadcastTo(ofRows, shape),
                                          full<u32>(shape, head), full<u32>(shape, sequence)};
    return philox4x32(counter, {given->key0, given->key1});
  }
  /// Rows 0 .. 7 of every 16 from `upper`, the others from `lower`.
  static Words woven(const Words &upper, const Words &lower, int rows, int columns) {
    using namespace language;
    const Words both = reshape(join(upper, lower), {rows / 16, 8, columns, 2});
    return reshape(transpose(both, {0, 3, 1, 2}), {rows, columns});
  }

  std::optional<Arguments> given;
  Word head, sequence;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_PAIRDROPOUT_H
