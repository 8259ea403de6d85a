//===- Strided.h - Addresses in matrices and in strided arrays --------------===//
//
// Helpers that kernels record through.  Bases of tiles are 64-bit, columns inside a tile 32-bit where they are
// adjacent. What they record has the location of their caller.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_STRIDED_H
#define KILN_KERNELS_SUPPORT_STRIDED_H

#include "compiler/language/Language.h"

namespace kiln::kernels {

/// Rows of a matrix with any strides: those in `rows`, a tile of shape [R, 1].
template <language::Element T> class RowBlock {
public:
  using Pointer = language::Pointer<T>;
  using Index = language::Scalar<language::i64>;

  /// `adjacent`: the columns are known to be next to each other, and columnStride is not used.
  RowBlock(const Pointer &base, const language::Tile<language::i64> &rows, const Index &rowStride,
           const Index &columnStride, bool adjacent)
      : base(base), rows(rows), rowStride(rowStride), columnStride(columnStride), adjacent(adjacent) {}

  /// Addresses of the columns first + columns, `columns` of shape [1, C]: a tile of shape [R, C].
  language::Tile<Pointer> at(const Index &first, const language::Tile<language::i32> &columns,
                             language::Location loc = language::Location::current()) const {
    const language::LocationScope scope(loc);
    if (adjacent)
      return base + first + rows * rowStride + columns;
    return base + first * columnStride + rows * rowStride + language::cast<language::i64>(columns) * columnStride;
  }
  /// The same from column 0.
  language::Tile<Pointer> at(const language::Tile<language::i32> &columns,
                             language::Location loc = language::Location::current()) const {
    const language::LocationScope scope(loc);
    if (adjacent)
      return base + rows * rowStride + columns;
    return base + rows * rowStride + language::cast<language::i64>(columns) * columnStride;
  }

private:
  Pointer base;
  language::Tile<language::i64> rows;
  Index rowStride, columnStride;
  bool adjacent;
};

/// The rows of this program, [R, 1], as 64-bit numbers.
inline language::Tile<language::i64> rowsOfProgram(int count, language::Location loc = language::Location::current()) {
  const language::LocationScope scope(loc);
  using language::cast, language::i64;
  return language::expandDims(cast<i64>(language::programId()) * count + cast<i64>(language::range(0, count)), 1);
}

/// The columns of a tile, [1, C].
inline language::Tile<language::i32> columnsOfTile(int count, language::Location loc = language::Location::current()) {
  const language::LocationScope scope(loc);
  return language::expandDims(language::range(0, count), 0);
}

/// Calls `body` with the number of columns, in two variants at run time: a row that fills the tile needs no masks,
/// which saves the registers of its predicates and lets all its loads be issued at once.
template <typename F>
void forColumns(const language::Scalar<language::i32> &columns, int block, F &&body,
                language::Location loc = language::Location::current()) {
  language::Scalar<language::i32> full;
  language::Scalar<language::i1> whole;
  {
    const language::LocationScope scope(loc);
    full = language::constant<language::i32>(block);
    whole = columns == full;
  }
  language::when(whole, [&] { body(full); }, [&] { body(columns); }, loc);
}

/// Strides of a tensor of four dimensions, in elements.
struct Strides4 {
  language::Scalar<language::i64> s0, s1, s2, s3;
};

/// Where a block of the innermost dimension lies in tensors of extents [.., e1, e2, e3]: programs count blocks of one
/// row first.
class StridedBlock {
public:
  using Index = language::Scalar<language::i64>;

  StridedBlock(int block, const Index &e1, const Index &e2, const Index &e3,
               language::Location loc = language::Location::current()) {
    const language::LocationScope scope(loc);
    const auto program = language::cast<language::i64>(language::programId());
    const auto blocks = language::ceilDiv(e3, block);
    const auto row = program / blocks;
    const auto plane = row / e2;
    i2 = row % e2;
    i1 = plane % e1;
    i0 = plane / e1;
    i3 = (program % blocks) * block;
    inside = language::cast<language::i64>(language::range(0, block));
    mask = inside < e3 - i3;
  }

  template <language::Element T>
  language::Tile<language::Pointer<T>> at(const language::Pointer<T> &base, const Strides4 &s,
                                          language::Location loc = language::Location::current()) const {
    const language::LocationScope scope(loc);
    return base + (i0 * s.s0 + i1 * s.s1 + i2 * s.s2 + i3 * s.s3) + inside * s.s3;
  }

  language::Tile<language::i1> mask;

private:
  Index i0, i1, i2, i3;
  language::Tile<language::i64> inside;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_STRIDED_H
