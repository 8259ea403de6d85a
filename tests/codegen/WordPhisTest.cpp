#include "compiler/codegen/WordPhis.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// Phis of a module after the pass, by their width.
struct Phis {
  unsigned halves = 0, words = 0;
  bool operator==(const Phis &o) const { return halves == o.halves && words == o.words; }
};
void PrintTo(const Phis &p, std::ostream *os) {
  *os << p.halves << " halves, " << p.words << " words";
}

Phis carried(const std::string &text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (!module) {
    ADD_FAILURE() << problem.getMessage().str();
    return {};
  }
  carryWords(*module);
  std::string why;
  llvm::raw_string_ostream os(why);
  EXPECT_FALSE(llvm::verifyModule(*module, &os)) << why;
  Phis out;
  for (const llvm::Function &function : *module)
    for (const llvm::BasicBlock &block : function)
      for (const llvm::PHINode &phi : block.phis())
        ++(phi.getType()->getScalarSizeInBits() == 16 ? out.halves : out.words);
  return out;
}

/// A loop that carries two halves of type T; `upper` is the upper half of what a round hands on, `first` what the first
/// round gets.
std::string loopOf(std::string text, const std::string &type, const std::string &first, const std::string &upper) {
  const auto replace = [&](const std::string &what, const std::string &by) {
    for (size_t at; (at = text.find(what)) != std::string::npos;)
      text.replace(at, what.size(), by);
  };
  replace("FIRST", first);
  replace("UPPER", upper);
  replace("TYPE", type);
  return text;
}

constexpr const char *plain = R"(
define void @k(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %l = phi TYPE [ FIRST, %entry ], [ %lower, %loop ]
  %u = phi TYPE [ FIRST, %entry ], [ %upper, %loop ]
  %v = insertelement <2 x TYPE> poison, TYPE %l, i64 0
  %both = insertelement <2 x TYPE> %v, TYPE %u, i64 1
  store <2 x TYPE> %both, ptr %p
  %word = load i32, ptr %p
  %other = load i32, ptr %p
  %pair = bitcast i32 %word to <2 x TYPE>
  %otherPair = bitcast i32 %other to <2 x TYPE>
  %lower = extractelement <2 x TYPE> %pair, i64 0
  %upper = extractelement <2 x TYPE> UPPER
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";

TEST(WordPhis, HalvesOfOneWordAreCarriedAsIt) {
  for (const auto &[type, zero] : {std::pair("half", "0.0"), std::pair("bfloat", "0.0"), std::pair("i16", "7")})
    for (const char *first : {zero, "poison"})
      EXPECT_EQ(carried(loopOf(plain, type, first, "%pair, i64 1")), (Phis{0, 2})) << type << ' ' << first;
}

TEST(WordPhis, HalvesOfDifferentWordsStayTwo) {
  EXPECT_EQ(carried(loopOf(plain, "half", "0.0", "%otherPair, i64 1")), (Phis{2, 1}));
  EXPECT_EQ(carried(loopOf(plain, "half", "0.0", "%pair, i64 0")), (Phis{2, 1})); // one half twice
}

TEST(WordPhis, ConstantsKeepTheirBits) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(loopOf(plain, "i16", "-2", "%pair, i64 1"), problem, context);
  ASSERT_TRUE(module);
  carryWords(*module);
  const llvm::BasicBlock &loop = *std::next(module->getFunction("k")->begin());
  bool found = false;
  for (const llvm::PHINode &phi : loop.phis())
    if (const auto *first =
            llvm::dyn_cast<llvm::ConstantInt>(phi.getIncomingValueForBlock(&module->getFunction("k")->getEntryBlock())))
      found |= first->getZExtValue() == 0xfffefffeu;
  EXPECT_TRUE(found);
}

/// As O3 leaves what a branch in a loop reads: shifted and truncated, through a phi of the branch, and kept as they are
/// where the branch is not taken.
constexpr const char *branched = R"(
define void @k(ptr %p, i32 %n, i1 %c) {
entry:
  %start = load i32, ptr %p
  %sl = trunc i32 %start to i16
  %ss = lshr i32 %start, 16
  %su = trunc nuw i32 %ss to i16
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %l = phi i16 [ %sl, %entry ], [ %nl, %latch ]
  %u = phi i16 [ %su, %entry ], [ %nu, %latch ]
  %v = insertelement <2 x i16> poison, i16 %l, i64 0
  %both = insertelement <2 x i16> %v, i16 %u, i64 1
  store <2 x i16> %both, ptr %p
  br i1 %c, label %read, label %latch
read:
  %word = load i32, ptr %p
  %rl = trunc i32 %word to i16
  %rs = lshr i32 %word, 16
  %ru = trunc nuw i32 %rs to i16
  br label %latch
latch:
  %nl = phi i16 [ %rl, %read ], [ %l, %loop ]
  %nu = phi i16 [ %ru, %read ], [ %u, %loop ]
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";

TEST(WordPhis, ThroughBranchesAndRoundLoops) {
  EXPECT_EQ(carried(branched), (Phis{0, 3}));
}

TEST(WordPhis, AHalfThatIsUsedOnItsOwnKeepsBothApart) {
  std::string text = branched;
  text.replace(text.find("  %next"), 0, "  store i16 %nl, ptr %p\n");
  EXPECT_EQ(carried(text), (Phis{4, 1}));
}

} // namespace
} // namespace kiln::test
