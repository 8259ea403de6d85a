#include "compiler/codegen/BackEndPasses.h"

#include "llvm/Pass.h"
#include "llvm/Transforms/Scalar.h"

#include <memory>

namespace kiln {

bool BackEndPasses::keeps(const llvm::Pass &pass) {
  // By the function that creates it: against an LLVM without the pass this does not link, where a stale name would
  // silently drop nothing.
  static const llvm::AnalysisID strengthReduction =
      std::unique_ptr<llvm::Pass>(llvm::createStraightLineStrengthReducePass())->getPassID();
  return pass.getPassID() != strengthReduction;
}

void BackEndPasses::add(llvm::Pass *pass) {
  if (keeps(*pass))
    llvm::legacy::PassManager::add(pass);
  else
    delete pass;
}

} // namespace kiln
