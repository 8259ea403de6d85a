//===- SumOrder.h - Programs add to dq one after the other ---------------------===//
//
// In which order the blocks of keys add their parts of dq, so that sums have the same bits in every run: of a head in
// ascending order.  `dq_counts` [batch, head, group]: how many have added to the tile of rows that begins at that group
// of QuerySums.h; `dq_ticket` [1]: how many programs have started.
//
// Invariant: a program waits only for programs that have started before it, so that all of them end, however many run
// at the same time.  Programs take their number as they start, and among those of a head the number ascends with the
// block of keys.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_SUMORDER_H
#define KILN_KERNELS_ATTENTION_SUMORDER_H

#include "kernels/attention/AttentionFunctions.h"
#include "kernels/attention/QuerySums.h"
#include "kernels/attention/Visibility.h"

namespace kiln::kernels {

class SumOrder {
  using Number = language::Scalar<language::i32>;

public:
  /// Whether the blocks of keys that see a tile of rows are a range: those that lists name may be any.
  static bool isKnown(const AttentionHooks &hooks) { return !hooks.hasLists(); }

  /// What kernels have besides their parameters.
  static std::vector<language::TensorDeclaration> tensors() {
    return {{"dq_counts", DType::I32, 3, /*noalias=*/true}, {"dq_ticket", DType::I32, 1, /*noalias=*/true}};
  }
  /// Counters of a head.
  static constexpr std::int64_t countsOfHead(std::int64_t longest) {
    return (longest + QuerySums::groupRows - 1) / QuerySums::groupRows;
  }

  /// The counters of `rows` rows from `row0` on.
  static void clear(const Number &batch, const Number &head, const Number &row0, int rows) {
    using namespace language;
    const auto counts = declaredTensor<i32, 3>("dq_counts").at(batch, head, all);
    const auto group = row0 / QuerySums::groupRows + range(0, rows / QuerySums::groupRows);
    store(counts.pointer() + group, zeros<i32>({rows / QuerySums::groupRows}), cast<i64>(group) < counts.extent(0));
    store(declaredTensor<i32, 1>("dq_ticket").at(0).pointer(), 0, programId() == 0);
  }

  struct Program {
    Number pair, block; ///< sequence and key head, block of keys
  };
  /// Of `pairs` with `blocks` each.  Each program of a head follows the one before it by a few steps, and waits for it
  /// if they start together.  So programs of many heads start in turn, each head's longest first; of so many that what
  /// they read stays in the cache.
  static Program next(const Number &blocks, const Number &pairs) {
    using namespace language;
    constexpr int together = 16;
    const auto number = atomicAdd(declaredTensor<i32, 1>("dq_ticket").at(0).pointer(), 1);
    const auto first = number / (blocks * together) * together, size = min(pairs - first, together);
    const auto within = number - first * blocks;
    return {first + within % size, within / size};
  }

  /// Of a block of `keys` keys from `key0` on and a head.
  SumOrder(const Visibility &visibility, const Number &batch, const Number &head, const Number &key0, int keys)
      : visibility(visibility),
        counts(language::declaredTensor<language::i32, 3>("dq_counts").at(batch, head, language::all).pointer()),
        key0(key0), keys(keys) {}

  /// Those of `rows` that have counters: none is missing unless a sequence is longer than the call says.
  static Visibility::Rows counted(const Visibility::Rows &rows) {
    using namespace language;
    const auto groups = cast<i32>(declaredTensor<i32, 3>("dq_counts").extent(2));
    return {rows.begin, min(rows.end, groups * QuerySums::groupRows)};
  }

  /// Rows are walked over from the last tile to the first, while `at` goes from the first to the last.  Under a causal
  /// mask all programs of a head begin with the same tile then, and in a window each comes later than the one before it
  /// to the rows that both see.
  static Number row0(const Visibility::Rows &rows, const Number &at, int step) {
    return rows.begin + ((rows.end - 1 - rows.begin) / step * step - (at - rows.begin));
  }

  /// For the tile of rows from `row0` on, which the block of keys sees.  All blocks from the first that it sees to this
  /// one see it.
  QuerySums::After after(const Number &row0) const {
    return {(key0 - visibility.seenBy(row0).begin) / keys, counts + row0 / QuerySums::groupRows};
  }

private:
  Visibility visibility;
  language::Pointer<language::i32> counts;
  Number key0;
  int keys;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_SUMORDER_H
