//===- TargetRules.h - What operations need of a target ----------------------===//
//
// An operation says by a trait which capability it needs (compiler/tile_gpu/Needs.h).  What depends on its types or
// attributes is a row of a table here.  verify-stage asks before LLVM sees the operation, which would abort.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_TARGETRULES_H
#define KILN_PASSES_TARGETRULES_H

#include "compiler/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// A failure names the operation, the target, what it lacks, and the targets that have it.
Status checkTarget(mlir::Operation *op, const Target &target);

/// Whether the target has what the kernel's launch needs: clusters, tensor maps.  At stage tile, tile_gpu or llvm.
Status checkLaunch(mlir::FunctionOpInterface kernel, const Target &target);
/// The blocks of the kernel's cluster, at any stage; ones: it asks for none.
std::array<int32_t, 3> clusterOf(mlir::FunctionOpInterface kernel);

} // namespace kiln

#endif // KILN_PASSES_TARGETRULES_H
