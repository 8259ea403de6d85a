//===- BackEndPasses.h - The code generator's passes, but for some ----------===//
//
// The pass manager that LLVM's code generator fills (TargetMachine::addPassesToEmitFile), without the passes whose time
// grows with the square of a kernel's length and that give kernels nothing.
//
// Straight-line strength reduction looks for an earlier product with the same factor, for each shift, addition and
// address, and walks the block for each that it finds: 24 s of 25 for a chunk of linear attention in one warp, whose
// precise `exp` has a shift an element.  The PTX of no kernel of the library differs without it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_BACKENDPASSES_H
#define KILN_CODEGEN_BACKENDPASSES_H

#include "llvm/IR/LegacyPassManager.h"

namespace kiln {

class BackEndPasses : public llvm::legacy::PassManager {
public:
  /// Takes the pass, or destroys it.
  void add(llvm::Pass *pass) override;
  static bool keeps(const llvm::Pass &pass);
};

} // namespace kiln

#endif // KILN_CODEGEN_BACKENDPASSES_H
