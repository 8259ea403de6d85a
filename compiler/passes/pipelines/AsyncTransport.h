//===- AsyncTransport.h - What can copy a load's tile asynchronously ---------===//
//
// From global to shared memory, while the threads go on: by cp.async, each thread copies runs of 4, 8 or 16 bytes. What
// the copy engine can copy instead, TensorCopies.h says; lower-pipelines makes the waits of both.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_ASYNCTRANSPORT_H
#define KILN_PASSES_PIPELINES_ASYNCTRANSPORT_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {

struct AsyncCopy {
  analysis::VectorAccess run; ///< what one copy may move
  tile_gpu::LayoutAttr by;    ///< who copies what
};

bool hasAsyncCopies(const Target &target);

/// A tile.load or tile.load_view, which needs no layout yet, reads runs that are long enough to be copied.
bool mayCopyAsync(mlir::Operation *load, const analysis::AxisAnalysis &facts);

/// How a tile.load or tile.load_view may be copied; or why not, as a message for a remark.  With `widest`, in a layout
/// of the widest runs; else in the load's own, where that has runs that are wide enough.
Result<AsyncCopy> asyncCopyOf(mlir::Operation *load, const analysis::AxisAnalysis &facts, bool widest);

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_ASYNCTRANSPORT_H
