//===- Visibility.h - Which keys a row sees ------------------------------------===//
//
// Row i of the queries stands at p = i + shift among the keys.  It sees key j if j < keys, p - window_left <= j
// (`left`) and j <= p + window_right (`right`).
//
// The same rule four times: for a pair; for a block of rows, the keys that some row of it sees; for a block of keys,
// the rows that see some key of it; and whether some row of a block does not see all keys of a block.  The last three
// may say more than is so, never less: blocks of keys that no row sees are left out, and those that are not cut need
// no mask.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_VISIBILITY_H
#define KILN_KERNELS_ATTENTION_VISIBILITY_H

#include "compiler/language/Language.h"

#include <algorithm>

namespace kiln::kernels {

/// What of the rule is there, and the blocks that are asked for.
struct VisibilityConfig {
  bool left = false, right = false;
  int rows = 1, keys = 1; ///< of a block
  bool onlyRows = false;  ///< rows after the last one see nothing; else what they would see if they were there
  bool before = false;    ///< blocks of keys may begin before key 0, and there are no keys
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

  /// Some key from `key0` on may be seen by a row from `begin`, a multiple of the rows of a block, to before `end`.
  struct Rows {
    Number begin, end;
  };
  Rows seeing(const Number &key0) const {
    const auto clamp = [&](const Number &x) { return max(min(x, queryRows), 0); };
    Rows out{queryRows * 0, queryRows};
    if (c.right)
      out.begin = clamp(key0 - shift - windowRight) / c.rows * c.rows;
    if (c.left)
      out.end = clamp(min(key0 + c.keys, keyRows) - shift + windowLeft);
    return out;
  }

  /// Whether some row of the block from `row0` on does not see all keys of the block from `key0` on.
  language::Scalar<language::i1> isCut(const Number &row0, const Number &key0) const {
    const auto next = key0 + c.keys;
    language::Scalar<language::i1> cut = next > keyRows;
    if (c.before)
      cut = cut | (key0 < 0);
    if (c.right)
      cut = cut | (next > row0 + shift + windowRight + 1);
    if (c.left)
      cut = cut | (key0 < row0 + c.rows - 1 + shift - windowLeft);
    if (c.onlyRows)
      cut = cut | (row0 + c.rows > queryRows);
    return cut;
  }

  /// The pairs of rows at `positions`, [rows, 1], and `keys`, [1, keys]; or turned, [1, rows] and [keys, 1].
  language::Tile<language::i1> sees(const Numbers &positions, const Numbers &keys) const {
    using namespace language;
    // As an unsigned number one below 0 is after all others.
    auto visible =
        broadcastTo(c.before ? cast<u32>(keys) < cast<u32>(keyRows) : keys < keyRows,
                    {std::max(positions.extent(0), keys.extent(0)), std::max(positions.extent(1), keys.extent(1))});
    if (c.right)
      visible = visible & (keys <= positions + windowRight);
    if (c.left)
      visible = visible & (keys >= positions - windowLeft);
    if (c.onlyRows)
      visible = visible & (positions < queryRows + shift);
    return visible;
  }

private:
  VisibilityConfig c;
  Number queryRows, keyRows, windowLeft, windowRight, shift;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_VISIBILITY_H
