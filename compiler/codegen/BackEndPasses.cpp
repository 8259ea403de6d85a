#include "compiler/codegen/BackEndPasses.h"

#include "llvm/Pass.h"
#include "llvm/Transforms/Scalar.h"

#include <memory>

namespace kiln {

bool BackEndPasses::keeps(const llvm::Pass &pass) {
  // By what makes it: an LLVM without the pass does not link, where a name that is no longer right would drop nothing.
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
