//===- StagingBuffer.h - Where tiles lie on their way through shared memory -===//
//
// A staged tile is written in runs of 4, 8 or 16 bytes along its contiguous dimension (cp.async) and read in the
// layouts of its users.  The buffer's encoding decides both: runs must stay whole, and rows are swizzled so that
// readers, ldmatrix above all, meet no bank conflicts.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_STAGINGBUFFER_H
#define KILN_LAYOUT_STAGINGBUFFER_H

#include "compiler/layout/Encodings.h"
#include "compiler/layout/TileLayout.h"
#include "compiler/target/Target.h"

namespace kiln::layout {

/// The most neighbours along `dim`, a power of two, that lie side by side in the buffer, aligned to their size.  1 in
/// padded buffers.
std::uint32_t contiguousRun(const SharedTile &buffer, unsigned dim);

/// The blocked encoding in which each thread copies `run` neighbours along `dim`, and the next threads the next ones:
/// for loads whose own layout would copy them in shorter runs.  Threads that the tile has no run for hold copies, which
/// nobody moves.
Result<Blocked> copyEncoding(std::span<const std::int64_t> shape, unsigned dim, std::uint32_t run, unsigned warps);

/// The swizzled encoding that keeps runs of `run` elements along `dim` whole and is the cheapest to read for all
/// `readers`, by the costs of planLocalAccess.  `shape`, `bits`: of the tile.  Fails where no buffer has the shape.
Result<Swizzled> stagingEncoding(std::span<const std::int64_t> shape, unsigned dim, std::uint32_t run, unsigned bits,
                                 std::span<const TileLayout> readers, const Target &target);

} // namespace kiln::layout

#endif // KILN_LAYOUT_STAGINGBUFFER_H
