//===- Rows.h - Kernels that work row by row ----------------------------------===//
//
// What softmax, layer_norm and cumsum share: a tensor seen as rows and columns, and the tile for a row length.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_ROWS_H
#define KILN_KERNELS_SUPPORT_ROWS_H

#include "kernels/support/Callable.h"
#include "kernels/support/Grid.h"
#include "kernels/support/Traffic.h"

#include <bit>

namespace kiln::kernels {

/// A tensor of rank 1 (one row) or 2.  Strides in elements.
struct Rows {
  std::int64_t rows = 1, columns = 0, rowStride = 0, columnStride = 0;
  explicit Rows(const Tensor &t)
      : rows(t.rank == 2 ? t.shape[0] : 1), columns(t.shape[t.rank - 1]), rowStride(t.rank == 2 ? t.strides[0] : 0),
        columnStride(t.strides[t.rank - 1]) {}
  bool adjacent() const { return columnStride == 1 || columns == 1; }
};

/// The tensor as a matrix; of rank 1 its one row.
inline Tensor asMatrix(const Tensor &t) {
  return t.rank == 1 ? withDim(t, 0, 1, 0) : t;
}

struct RowTile {
  int block, rowsPerProgram, warps;
  bool looping; ///< rows are longer than a tile
};

/// About 32 elements a thread; rows up to `longest` in one tile.  Depends on the length's power of two only, so that
/// many lengths share one compiled kernel.
inline RowTile rowTile(std::int64_t columns, std::int64_t longest = 16384, int loopBlock = 4096) {
  if (columns > longest)
    return {loopBlock, 1, 8, true};
  const int block = static_cast<int>(std::max<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns)), 32));
  if (block <= 1024)
    return {block, 1024 / block, 4, false};
  return {block, 1, std::min(block / 1024, 16), false};
}

/// Whether a row of the tile is spread over several warps, which then meet at barriers: a warp's lanes have 16 bytes of
/// it each, or one element if rows do not start at multiples of 16 bytes.
inline bool spansWarps(const RowTile &tile, std::uint64_t columns, std::uint64_t elementBytes) {
  return static_cast<std::uint64_t>(tile.block) > 32 * elementsOfLane(columns, elementBytes);
}

/// Of a kernel that reads each row of x `reads` times and writes it once, whole vectors or none.  `meetings`: how often
/// the warps that share a row meet.  The wavefronts of these meetings are not stated: how many copies of a partial
/// result are exchanged is the choice of the layout planner.
inline Traffic rowTraffic(std::string kernel, const TensorType &x, const RowTile &tile, std::uint64_t reads,
                          std::uint64_t meetings) {
  const std::uint64_t columns = x.shape.back(), rows = x.shape.size() == 2 ? x.shape[0] : 1;
  const std::uint64_t size = dtypeBytes(x.dtype), bytes = rows * columns * size;
  const std::uint64_t lane = elementsOfLane(columns, size);
  const std::uint64_t together = lane == 1 ? 1
                                           : std::clamp<std::uint64_t>(32 * lane / static_cast<unsigned>(tile.block), 1,
                                                                       static_cast<unsigned>(tile.rowsPerProgram));
  const std::uint64_t sectors = sectorsOfRows(rows, columns, size, 32 * lane, together);
  const std::uint64_t programs = (rows + tile.rowsPerProgram - 1) / tile.rowsPerProgram;
  Traffic t{std::move(kernel), reads * sectors, sectors, reads * bytes, bytes, 0, {}};
  if (spansWarps(tile, columns, size))
    t.barriers = programs * static_cast<unsigned>(tile.warps) * meetings;
  else
    t.wavefronts = 0;
  return t;
}

/// Shared by the three families' check: x of rank 1 or 2, out like it.
inline Status checkRows(const Device &device, const Tensor &x, const Tensor &out) {
  KILN_TRY(checkTensor("x", x).on(device).dtype({DType::F32, DType::F16, DType::BF16}).rankBetween(1, 2).status());
  return checkTensor("out", out).on(device).dtypeOf("x", x).shapeOf("x", x).writable().notOverlapping("x", x).status();
}

/// The host's view of rows.
struct HostRows {
  std::size_t rows, columns;
  explicit HostRows(const HostTensor &t)
      : rows(t.shape.size() == 2 ? t.shape[0] : 1), columns(t.shape.empty() ? 1 : t.shape.back()) {}
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ROWS_H
