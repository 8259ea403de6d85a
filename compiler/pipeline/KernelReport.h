//===- KernelReport.h - What the compiler made of a kernel, for `kiln explain` ===//
//
// Read off a kernel at the end of the tile_gpu stage: nothing is decided here.  Plans are asked of the planner with the
// questions that lowering asks, so what is reported is what the code does.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_KERNELREPORT_H
#define KILN_PIPELINE_KERNELREPORT_H

#include "compiler/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace kiln {

/// The JSON object "explain" of CompilerTable.h's metadata.  A part that the planner refuses to answer about has its
/// "error" instead.
std::string reportKernel(mlir::func::FuncOp kernel, const Target &target);

} // namespace kiln

#endif // KILN_PIPELINE_KERNELREPORT_H
