//===- LocationScopes.h - One source line for every instruction -----------===//
//
// Makes locations of an LLVM-dialect module such that LLVM prints `.loc` for each instruction, without debug sections
// and without `.target ..., debug` (emission kind DebugDirectivesOnly):
//  - a fused, named or call-site location is cut to its first file location (LLVM would print line 0 for it);
//  - what has none takes that of the nearest preceding operation, else of the next one, else of its function;
//  - functions get a debug scope.
// Without line information the LLVM module loses them again before O3 (llvm::StripDebugInfo): diagnostics of the steps
// between still name a line, and the PTX does not depend on any.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_LOCATIONSCOPES_H
#define KILN_CODEGEN_LOCATIONSCOPES_H

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
}

namespace kiln {

/// The first file location within `location` that has a line, or a null one.
mlir::FileLineColLoc firstFileLocation(mlir::Location location);

mlir::LogicalResult addLocationScopes(mlir::ModuleOp module);

/// After O3: LLVM gives merged instructions line 0 or no location; each takes that of its nearest neighbour in the
/// block, else of its function.
void completeLocations(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_LOCATIONSCOPES_H
