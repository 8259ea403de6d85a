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

  /// `adjacent`: the columns are known to be next to each other, and their stride is not used.
  RowBlock(const language::TensorView<T, 2> &matrix, const language::Tile<language::i64> &rows, bool adjacent)
      : base(matrix.pointer()), rows(rows), rowStride(matrix.stride(0)), columnStride(matrix.stride(1)),
        adjacent(adjacent) {}

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

/// Where this program's block of the innermost dimension lies in tensors of four dimensions: programs count blocks of
/// one row first.
class StridedBlock {
public:
  using Index = language::Scalar<language::i64>;

  /// `like` has the shape.
  template <language::Element T>
  StridedBlock(int block, const language::TensorView<T, 4> &like,
               language::Location loc = language::Location::current()) {
    const language::LocationScope scope(loc);
    const Index e1 = like.extent(1), e2 = like.extent(2), e3 = like.extent(3);
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
  language::Tile<language::Pointer<T>> at(const language::TensorView<T, 4> &x,
                                          language::Location loc = language::Location::current()) const {
    const language::LocationScope scope(loc);
    return x.pointer() + (i0 * x.stride(0) + i1 * x.stride(1) + i2 * x.stride(2) + i3 * x.stride(3)) +
           inside * x.stride(3);
  }

  language::Tile<language::i1> mask;

private:
  Index i0, i1, i2, i3;
  language::Tile<language::i64> inside;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_STRIDED_H
