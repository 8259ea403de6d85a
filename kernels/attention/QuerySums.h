//===- QuerySums.h - dq in fp32, while programs add to it ---------------------===//
//
// dq_sums [batch, head, group, 16 dim]: a group has 16 rows of a sequence, in the order in which the matrix units leave
// sums in registers (m16n8 and m64nN, PTX ISA).  `Order::Vectors`: a lane's four of rows r and r + 8, columns c and
// c + 1 are neighbours, and so are the 32 lanes'; a warp adds 512 bytes in a row by one operation.  `Order::Numbers`,
// where atomics have no vectors: one number of each lane, 128 bytes in a row.
//
// Groups of packed sequences lie one after the other: sequence b begins at group (start + 16 b) / 16, rounded down, so
// that none has rows of two.  Rows of a group after the sequence's last are added to, and never read.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_QUERYSUMS_H
#define KILN_KERNELS_ATTENTION_QUERYSUMS_H

#include "kernels/attention/SequenceRows.h"

#include <bit>
#include <optional>

namespace kiln::kernels {

class QuerySums {
  using Numbers = language::Tile<language::f32>;
  template <typename T> using Scalar = language::Scalar<T>;

public:
  static constexpr int groupRows = 16;

  /// Of all of a tensor's rows: `rows` of each batch, or of `sequences` that are packed.
  static constexpr std::int64_t groups(std::int64_t rows, std::int64_t sequences, bool isPacked) {
    return isPacked ? rows / groupRows + sequences : (rows + groupRows - 1) / groupRows;
  }

  enum class Order { Vectors, Numbers };
  /// Whether numbers lie in an order: extents that are no power of two stay whole (docs/design.md, section 3), and rows
  /// lie as they are then.
  static constexpr bool isOrdered(int columns) { return std::has_single_bit(static_cast<unsigned>(columns)); }

  /// Of a head of the sequence `batch`, whose rows `mine` says, in tiles of `rows` x `columns`.
  QuerySums(const language::TensorView<language::f32, 4> &sums, const SequenceRows &mine,
            const Scalar<language::i32> &batch, const Scalar<language::i32> &head, bool isPacked, int rows, int columns,
            Order order)
      : sums(sums.at(mine.batch, head, language::all, language::all)), mine(mine), rows(rows), columns(columns),
        order(order) {
    using namespace language;
    if (isPacked)
      first = (mine.start + cast<i64>(batch) * groupRows) / groupRows;
  }

  /// How many programs add to a tile before this one, and who counts them.
  struct After {
    Scalar<language::i32> before;
    language::Pointer<language::i32> counter;
  };
  /// To the tile of which `row0` is the first row; a multiple of 16.
  void add(const Scalar<language::i32> &row0, const Numbers &part, const std::optional<After> &after) const {
    const Place at = placeOf(row0);
    if (after)
      language::atomicAddAfter(after->before, after->counter, at.pointers, inOrder(part), at.exist);
    else
      language::atomicAdd(at.pointers, inOrder(part), at.exist);
  }
  void clear(const Scalar<language::i32> &row0) const {
    const Place at = placeOf(row0);
    language::store(at.pointers, language::zeros<language::f32>(shape()), at.exist);
  }
  Numbers load(const Scalar<language::i32> &row0) const {
    const Place at = placeOf(row0);
    return inRows(language::load(at.pointers, at.exist, 0.0f));
  }

private:
  struct Place {
    language::Tile<language::Pointer<language::f32>> pointers;
    language::Tile<language::i1> exist; ///< by group
  };

  bool isOrdered() const { return isOrdered(columns); }
  language::Shape shape() const {
    return isOrdered() ? language::Shape{rows / groupRows, groupRows * columns} : language::Shape{rows, columns};
  }
  Numbers inOrder(const Numbers &x) const {
    using namespace language;
    if (!isOrdered())
      return x;
    const Numbers parts = reshape(x, {rows / groupRows, 2, 8, columns / 8, 4, 2});
    return reshape(
        order == Order::Vectors ? transpose(parts, {0, 3, 2, 4, 1, 5}) : transpose(parts, {0, 3, 1, 5, 2, 4}), shape());
  }
  Numbers inRows(const Numbers &x) const {
    using namespace language;
    if (!isOrdered())
      return x;
    const Numbers parts = order == Order::Vectors
                              ? transpose(reshape(x, {rows / groupRows, columns / 8, 8, 4, 2, 2}), {0, 4, 2, 1, 3, 5})
                              : transpose(reshape(x, {rows / groupRows, columns / 8, 2, 2, 8, 4}), {0, 2, 4, 1, 5, 3});
    return reshape(parts, {rows, columns});
  }

  Place placeOf(const Scalar<language::i32> &row0) const {
    using namespace language;
    const int each = isOrdered() ? groupRows : 1; // rows of a line of the tile
    const auto line = range(0, rows / each);
    const auto group = row0 / groupRows + (isOrdered() ? line : line / groupRows);
    auto at = (first + cast<i64>(group)) * sums.stride(0);
    if (!isOrdered())
      at = at + cast<i64>(line % groupRows * columns);
    return {sums.pointer() + expandDims(at, 1) + cast<i64>(expandDims(range(0, each * columns), 0)),
            broadcastTo(expandDims(group * groupRows < mine.rows, 1), shape())};
  }

  language::TensorView<language::f32, 2> sums;
  SequenceRows mine;
  int rows, columns;
  Order order;
  Scalar<language::i64> first = language::constant<language::i64>(0);
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_QUERYSUMS_H
