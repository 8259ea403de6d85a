//===- Visibility.h - Which keys a row sees ------------------------------------===//
//
// Row i of the queries stands at p = i + shift among the keys.  It sees key j if j < keys, p - window_left <= j
// (`left`) and j <= p + window_right (`right`).
//
// The same rule three times: for a pair; for a block of rows, the keys that some row of it sees; and whether some row
// of a block does not see all keys of a block.  The last two may say more than is so, never less: blocks of keys that
// no row sees are left out, and those that are not cut need no mask.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_VISIBILITY_H
#define KILN_KERNELS_ATTENTION_VISIBILITY_H

#include "compiler/language/Language.h"

namespace kiln::kernels {

/// What of the rule is there, and the blocks that are asked for.
struct VisibilityConfig {
  bool left = false, right = false;
  int rows = 1, keys = 1; ///< of a block
};

class Visibility {
public:
  using Number = language::Scalar<language::i32>;
  using Numbers = language::Tile<language::i32>;

  /// Row i stands at i + `shift` among the keys.
  Visibility(const VisibilityConfig &c, const Number &queryRows, const Number &keyRows, const Number &shift,
             const Number &windowLeft, const Number &windowRight)
      : c(c), queryRows(queryRows), keyRows(keyRows), windowLeft(windowLeft), windowRight(windowRight), shift(shift) {}

  /// Where rows stand among the keys.
  Numbers positionsOf(const Numbers &rows) const { return rows + shift; }

  /// Some row from `row0` on may see a key from `begin`, a multiple of the keys of a block, to before `end`.
  struct Keys {
    Number begin, end;
  };
  Keys seenBy(const Number &row0) const {
    const auto clamp = [&](const Number &x) { return max(min(x, keyRows), 0); };
    Keys out{keyRows * 0, keyRows};
    if (c.right)
      out.end = clamp(min(row0 + c.rows, queryRows) + shift + windowRight);
    if (c.left)
      out.begin = clamp(row0 + shift - windowLeft) / c.keys * c.keys;
    return out;
  }

  /// Whether some row of the block from `row0` on does not see all keys of the block from `key0` on.
  language::Scalar<language::i1> isCut(const Number &row0, const Number &key0) const {
    const auto next = key0 + c.keys;
    language::Scalar<language::i1> cut = next > keyRows;
    if (c.right)
      cut = cut | (next > row0 + shift + windowRight + 1);
    if (c.left)
      cut = cut | (key0 < row0 + c.rows - 1 + shift - windowLeft);
    return cut;
  }

  /// [rows, keys]: the pairs of rows at `positions`, [rows, 1], and `keys`, [1, keys].
  language::Tile<language::i1> sees(const Numbers &positions, const Numbers &keys) const {
    auto visible = broadcastTo(keys < keyRows, {c.rows, c.keys});
    if (c.right)
      visible = visible & (keys <= positions + windowRight);
    if (c.left)
      visible = visible & (keys >= positions - windowLeft);
    return visible;
  }

private:
  VisibilityConfig c;
  Number queryRows, keyRows, windowLeft, windowRight, shift;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_VISIBILITY_H
