#include "compiler/codegen/CheapValues.h"
#include "tests/codegen/ParsedIr.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// Three sums of one value, made before a loop that uses each; with or without the matrix unit in it.
std::string loopOf(bool matrices) {
  return std::string(R"(
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32, i32, i32, i32, i32, i32, float, float, float, float)
define void @k(ptr %p, i32 %x, i32 %n) {
entry:
  %a = add i32 %x, 128
  %b = add i32 %x, 256
  %c = xor i32 %x, 64
  %lonely = add i32 %n, 5
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = add i32 %a, %b
  %t = add i32 %s, %c
  %u = add i32 %t, %lonely
  store i32 %u, ptr %p
)") +
         (matrices
              ? "  %m = call {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32 %u, i32 %u, i32 %u, "
                "i32 %u, i32 %u, i32 %u, float 0.0, float 0.0, float 0.0, float 0.0) \"kiln-purpose\"=\"product\"\n"
              : "") +
         R"(
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";
}

/// Instructions of the first block, and of the loop, after the pass.
std::pair<size_t, size_t> sizes(bool matrices) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = parsedIr(loopOf(matrices), context);
  if (!module)
    return {};
  computeCheapValuesWhereUsed(*module);
  EXPECT_FALSE(llvm::verifyModule(*module));
  const llvm::Function &k = *module->getFunction("k");
  return {k.getEntryBlock().size(), std::next(k.begin())->size()};
}

TEST(CheapValues, GoIntoTheLoopThatUsesThem) {
  // The three sums of %x move; the only one of %n would keep as many values alive as it saves.
  EXPECT_EQ(sizes(true), (std::pair<size_t, size_t>{2, 12}));
}

TEST(CheapValues, StayInKernelsWithoutMatrices) {
  EXPECT_EQ(sizes(false), (std::pair<size_t, size_t>{5, 8}));
}

} // namespace
} // namespace kiln::test
