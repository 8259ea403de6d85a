// Of the passes that LLVM's code generator asks for, exactly those named are left out.
#include "compiler/codegen/BackEndPasses.h"
#include "CodegenHarness.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

struct Listing : llvm::legacy::PassManager {
  void add(llvm::Pass *pass) override {
    (BackEndPasses::keeps(*pass) ? kept : leftOut).push_back(pass->getPassName().str());
    llvm::legacy::PassManager::add(pass);
  }
  std::vector<std::string> kept, leftOut;
};

TEST(BackEndPasses, StrengthReductionAloneIsLeftOut) {
  ASSERT_TRUE(test::emit(test::sample("add.mlir"), "sm_90a").ok) << "registers the back end";
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backEnd = llvm::TargetRegistry::lookupTarget(triple, error);
  ASSERT_TRUE(backEnd) << error;
  const std::unique_ptr<llvm::TargetMachine> machine(
      backEnd->createTargetMachine(triple, "sm_90a", "+ptx80", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
                                   llvm::CodeGenOptLevel::Aggressive));
  Listing passes;
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  ASSERT_FALSE(machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
  EXPECT_EQ(passes.leftOut, std::vector<std::string>{"Straight line strength reduction"})
      << "if LLVM does not ask for it any more, BackEndPasses has done its work";
  EXPECT_NE(std::ranges::find(passes.kept, "NVPTX DAG->DAG Pattern Instruction Selection"), passes.kept.end());
}

} // namespace
