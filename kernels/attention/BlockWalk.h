//===- BlockWalk.h - The blocks that a block's lists name, tile by tile -----------===//
//
// Of a block of rows its lists name blocks of keys, of a block of keys (the lists the other way round) blocks of rows:
// `counts` [batch, head, block] and `blocks` [batch, head, block, most].  A program walks over the named blocks in one
// loop, a tile of each step, so that the next tiles are copied across the borders of blocks too: first those of the
// partial list, in which the mask function is asked, then those of the full one.
//
// Invariant: nothing outside the lists is read, whatever they hold.  Counts are cut to 0 .. most; a block after the
// sequence's end, where nothing is visible, is walked: lists may be those of the longest sequence.  So is one that no
// sequence can have, which checked kernels refuse.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_BLOCKWALK_H
#define KILN_KERNELS_ATTENTION_BLOCKWALK_H

#include "kernels/attention/AttentionFunctions.h"

namespace kiln::kernels {

class BlockWalk {
  using Number = language::Scalar<language::i32>;

public:
  /// Of `block`, which has lists.  The named blocks are `size` long, `step` divides that; `length` reaches to the
  /// sequence's end, `room` to that of the tensor.
  BlockWalk(const AttentionHooks &hooks, const Number &batch, const Number &head, const Number &block, int size,
            int step, const Number &length, const language::Scalar<language::i64> &room)
      : size(size), step(step), isChecked(hooks.isChecked), known(ceilDiv(length, size)), room(room) {
    if (hooks.hasPartialBlocks)
      partial.emplace("partial", *this, batch, head, block);
    if (hooks.hasFullBlocks)
      full.emplace("full", *this, batch, head, block);
  }

  /// Steps of the walk.
  Number rounds() const {
    const Number blocks = partial && full ? partial->count + full->count : partial ? partial->count : full->count;
    return blocks * (size / step);
  }

  struct Tile {
    Number first; ///< of its rows or keys
    /// The mask function is to be asked; none: in all tiles.
    std::optional<language::Scalar<language::i1>> isPartial;
  };
  /// The tile of a round.
  Tile at(const Number &round) const {
    using namespace language;
    const int steps = size / step;
    const Number entry = round / steps, within = round % steps;
    Number block;
    std::optional<Scalar<i1>> isPartial;
    if (partial && full) {
      const auto isFirst = entry < partial->count;
      block = select(isFirst, load(partial->first + entry, isFirst),
                     load(full->first + (entry - partial->count), !isFirst));
      isPartial = isFirst;
    } else {
      block = load((partial ? partial : full)->first + entry);
    }
    const auto exists = (block >= 0) & (block < known);
    if (isChecked)
      deviceAssert((block >= 0) & (cast<i64>(block) * size < room),
                   "attention: a list of blocks names a block that no sequence has");
    return {select(exists, block, known) * size + within * step, isPartial};
  }

private:
  struct List {
    language::Pointer<language::i32> first;
    Number count;
    List(const std::string &name, const BlockWalk &walk, const Number &batch, const Number &head, const Number &block) {
      using namespace language;
      const auto blocks = declaredTensor<i32, 4>(name + "_blocks").at(batch, head, block, all);
      const auto given = load(declaredTensor<i32, 3>(name + "_counts").at(batch, head, block).pointer());
      const auto most = cast<i32>(blocks.extent(0));
      if (walk.isChecked)
        deviceAssert((given >= 0) & (given <= most),
                     "attention: a count of blocks is below 0 or above the list's length");
      first = blocks.pointer();
      count = max(min(given, most), 0);
    }
  };

  int size, step;
  bool isChecked;
  Number known; ///< blocks that the sequence has
  language::Scalar<language::i64> room;
  std::optional<List> partial, full;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_BLOCKWALK_H
