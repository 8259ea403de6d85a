//===- Walk.h - Programs that walk along chunks ------------------------------===//
//
// A program walks along all chunks of a sequence, or along those of a segment: `DplrConfig::segment` chunks, whose
// slots are found as those of chunks are (Chunks.h), a segment being so many tokens.  What it carries is a part of the
// state, transposed: [blockV, K].
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_WALK_H
#define KILN_KERNELS_DPLR_WALK_H

#include "kernels/dplr/ChunkMatrices.h"

namespace kiln::kernels {

struct Walk {
  language::Scalar<language::i32> n, head; ///< which sequence
  SequenceOfTokens sequence;
  language::Scalar<language::i32> segment;    ///< the slot of the segment; of whole sequences n
  language::Scalar<language::i32> first, end; ///< chunks, counted from the sequence's start; `end` may be below `first`

  /// `program`: (sequence or slot of a segment) * heads + head.
  static Walk of(const language::Scalar<language::i32> &program, const language::Scalar<language::i32> &heads,
                 const language::Scalar<language::i64> &tokens, const language::Scalar<language::i32> &sequences,
                 const Offsets &offsets, const DplrConfig &c) {
    using namespace language;
    const auto head = program % heads, rest = program / heads;
    if (!c.segment) {
      const SequenceOfTokens sequence = sequenceAt(rest, tokens, offsets, c.packed, c.chunk);
      return {rest, head, sequence, rest, constant<i32>(0), ceilDiv(sequence.rows, c.chunk)};
    }
    const int size = c.chunk * c.segment;
    const auto n = sequenceOfSlot(rest, tokens, sequences, offsets, c.packed, size);
    const SequenceOfTokens sequence = sequenceAt(n, tokens, offsets, c.packed, c.chunk);
    const auto first = (rest - sequenceAt(n, tokens, offsets, c.packed, size).slot) * c.segment;
    return {n, head, sequence, rest, first, min(first + c.segment, ceilDiv(sequence.rows, c.chunk))};
  }
  language::Scalar<language::i1> exists() const { return first < end; }

  /// `next` and what the gradient of the state gains from a chunk, (Qh^T dO) transposed: [blockV, K].  qh: of slots.
  template <language::Element T>
  ChunkTile withRht(const language::TensorView<T, 3> &qh, const language::TensorView<T, 4> &dO,
                    const language::Scalar<language::i32> &slot, const language::Scalar<language::i32> &column,
                    const ChunkTile &next, const DplrConfig &c) const {
    using namespace language;
    const auto out =
        loadView(sequence.of(dO, head).tiles({c.chunk, c.blockV}), {(slot - sequence.slot) * c.chunk, column});
    return dot(transpose(out), loadView(qh.at(head, all, all).tiles({c.chunk, c.dim}), {slot * c.chunk, 0}), next);
  }

  /// `step(chunk's slot, carried)` for each chunk in order.
  template <typename First, typename Step> auto forward(const First &start, const Step &step) const {
    using namespace language;
    return loop(over(first, end), start, [&](auto i, auto x) { return step(sequence.slot + i, x); });
  }
  /// The same from the last to the first.
  template <typename First, typename Step> auto backward(const First &start, const Step &step) const {
    using namespace language;
    return loop(over(0, end - first), start, [&](auto i, auto x) { return step(sequence.slot + (end - 1 - i), x); });
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_WALK_H
