//===- SequenceRows.h - Where the rows of a sequence lie -----------------------===//
//
// A sequence is a batch of a dense tensor [batch, row, ..], or a part of a packed one, [T, ..] with where each sequence
// begins; of both, only the first rows may count.  Rows after its end read as zero and are not written: they belong to
// another sequence, or to none.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_SEQUENCEROWS_H
#define KILN_KERNELS_ATTENTION_SEQUENCEROWS_H

#include "compiler/language/Language.h"

namespace kiln::kernels {

struct SequenceRows {
  language::Scalar<language::i64> batch, start; ///< where it begins
  language::Scalar<language::i32> rows;
  language::Scalar<language::i64> extent; ///< of the tensor's rows
  bool whole;                             ///< all of them

  /// [rows, columns] of what is left of a tensor at `batch` and a head.
  template <language::Element T>
  language::TensorView<T, 2> of(const language::TensorView<T, 2> &tensor,
                                const language::Scalar<language::i64> &columns) const {
    using namespace language;
    const auto all = tensor.withExtents(extent, columns);
    return whole ? all : all.narrow(along(0), start, rows);
  }
  /// [rows] of what every row has one number of.
  template <language::Element T> language::TensorView<T, 1> of(const language::TensorView<T, 1> &numbers) const {
    using namespace language;
    const auto all = numbers.withExtents(extent);
    return whole ? all : all.narrow(along(0), start, rows);
  }
};

/// Which sequence it is is in `batch`; `dense`: its rows if neither tensor says how many.
inline SequenceRows sequenceRows(const language::Scalar<language::i64> &extent,
                                 const language::Scalar<language::i32> &dense,
                                 const language::Scalar<language::i32> &batch,
                                 const language::TensorView<language::i32, 1> &starts,
                                 const language::TensorView<language::i32, 1> &used, bool isPacked, bool isUsed) {
  using namespace language;
  SequenceRows s{cast<i64>(batch), constant<i64>(0), dense, extent, !isPacked && !isUsed};
  if (isPacked) {
    const auto begin = load(starts.at(batch).pointer());
    s.rows = load(starts.at(batch + 1).pointer()) - begin;
    s.start = cast<i64>(begin);
    s.batch = constant<i64>(0);
  }
  if (isUsed)
    s.rows = load(used.at(batch).pointer());
  return s;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_SEQUENCEROWS_H
