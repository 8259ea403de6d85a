#include "compiler/codegen/BesideLoops.h"
#include "tests/codegen/ParsedIr.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// A loop of products with a conditional part, `rare`, and code after it.  Before it are computed: %main, which every
/// round stores, %mask for the rare part, %end for the code after the loop, %both for these two, %loaded from memory,
/// %place the same for all threads.
constexpr const char *text = R"(
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32, i32, i32, i32, i32, i32, float, float, float, float)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define void @k(ptr %p, i32 %n, i1 %c) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %main = mul i32 %t, 3
  %mask = add i32 %t, 7
  %half = udiv i32 %b, %n
  %place = shl i32 %half, 5
  %end = add i32 %t, %place
  %both = xor i32 %t, 9
  %loaded = load i32, ptr %p
  %kept = add i32 %loaded, 1
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  store i32 %main, ptr %p
  %m = call {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32 %i, i32 %i, i32 %i, i32 %i, i32 %i, i32 %i, float 0.0, float 0.0, float 0.0, float 0.0) "kiln-purpose"="product"
  br i1 %c, label %rare, label %latch
rare:
  store i32 %mask, ptr %p
  store i32 %both, ptr %p
  store i32 %place, ptr %p
  br label %latch
latch:
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  store i32 %end, ptr %p
  store i32 %both, ptr %p
  store i32 %kept, ptr %p
  ret void
}
)";

struct BesideLoops : testing::Test {
  void run(std::string source) {
    module = parsedIr(source, context);
    ASSERT_TRUE(module);
    recomputeBesideLoops(*module);
    ASSERT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  }
  /// The block's values, in the order in which it stores them, each with the block that computes it.
  std::vector<std::string> stored(llvm::StringRef name) const {
    std::vector<std::string> out;
    for (const llvm::BasicBlock &block : *module->getFunction("k"))
      if (block.getName() == name)
        for (const llvm::Instruction &i : block)
          if (const auto *store = llvm::dyn_cast<llvm::StoreInst>(&i))
            out.push_back(llvm::cast<llvm::Instruction>(store->getValueOperand())->getParent()->getName().str());
    return out;
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

TEST_F(BesideLoops, RareRoundsAndTheCodeBehind) {
  ASSERT_NO_FATAL_FAILURE(run(text));
  EXPECT_EQ(stored("loop"), std::vector<std::string>{"entry"});
  // %place is the same for all threads, and stays.
  EXPECT_EQ(stored("rare"), (std::vector<std::string>{"rare", "rare", "entry"}));
  // A load is not repeated.
  EXPECT_EQ(stored("exit"), (std::vector<std::string>{"exit", "exit", "entry"}));
}

/// Two values that follow from one that was read: that one lives on instead.
TEST_F(BesideLoops, WhatWasReadLivesOnWhereItTakesFewerRegisters) {
  std::string source = text;
  const std::string kept = "%kept = add i32 %loaded, 1";
  source.replace(source.find(kept), kept.size(), kept + "\n  %wide = zext i32 %loaded to i64");
  const std::string store = "  store i32 %kept, ptr %p";
  source.replace(source.find(store), store.size(), store + "\n  store i64 %wide, ptr %p");
  ASSERT_NO_FATAL_FAILURE(run(source));
  EXPECT_EQ(stored("exit"), (std::vector<std::string>{"exit", "exit", "exit", "exit"}));
  unsigned loads = 0;
  for (const llvm::BasicBlock &block : *module->getFunction("k"))
    loads += static_cast<unsigned>(llvm::count_if(block, llvm::IsaPred<llvm::LoadInst>));
  EXPECT_EQ(loads, 1u);
}

/// Divisions, and what LLVM freezes before it divides by it.
TEST_F(BesideLoops, FrozenDivisors) {
  std::string source = text;
  const std::string half = "%half = udiv i32 %b, %n";
  source.replace(source.find(half), half.size(), "%sure = freeze i32 %n\n  %half = udiv i32 %b, %sure");
  ASSERT_NO_FATAL_FAILURE(run(source));
  EXPECT_EQ(stored("exit"), (std::vector<std::string>{"exit", "exit", "entry"}));
}

/// Otherwise the next pass would merge them with the first.
TEST_F(BesideLoops, SpecialRegistersAreReadOnceAPlace) {
  ASSERT_NO_FATAL_FAILURE(run(text));
  for (const auto &[name, readings] : {std::pair("rare", 1), std::pair("exit", 2)})
    for (const llvm::BasicBlock &block : *module->getFunction("k"))
      if (block.getName() == name)
        EXPECT_EQ(llvm::count_if(block,
                                 [](const llvm::Instruction &i) {
                                   const auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
                                   return call && call->isInlineAsm() && call->mayHaveSideEffects();
                                 }),
                  readings)
            << name;
}

TEST_F(BesideLoops, NothingWithoutProducts) {
  std::string source = text;
  const size_t at = source.find("  %m = call"), end = source.find('\n', at);
  source.erase(at, end - at);
  ASSERT_NO_FATAL_FAILURE(run(source));
  EXPECT_EQ(stored("exit"), (std::vector<std::string>{"entry", "entry", "entry"}));
}

} // namespace
} // namespace kiln::test
