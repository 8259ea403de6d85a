#include "compiler/codegen/WordPhis.h"
#include "tests/codegen/ParsedIr.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"

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
  const std::unique_ptr<llvm::Module> module = parsedIr(text, context);
  if (!module)
    return {};
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

/// A loop that carries two halves of type T; `upper` is the upper half of what a round yields, `first` what the first
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

/// What the only word of a block gets from its blocks before, in their order.
std::vector<std::string> wordsInto(llvm::Module &module, const char *block) {
  std::vector<std::string> out;
  for (const llvm::BasicBlock &b : *module.getFunction("k"))
    if (b.getName() == block)
      for (const llvm::PHINode &phi : b.phis())
        if (phi.getName().starts_with("word"))
          for (const llvm::Value *value : phi.incoming_values()) {
            while (const auto *cast = llvm::dyn_cast<llvm::BitCastInst>(value))
              value = cast->getOperand(0);
            const auto *number = llvm::dyn_cast<llvm::ConstantInt>(value);
            out.push_back(number ? std::to_string(number->getZExtValue()) : value->getName().str());
          }
  return out;
}

TEST(WordPhis, TheWordIsTheOneOfWhichTheHalvesAre) {
  for (const auto &[type, lower, upper, bits] : {std::tuple("i16", "1", "2", 0x00020001u),
                                                 {"half", "1.0", "-2.0", 0xc0003c00u},
                                                 {"i16", "-2", "undef", 0xfffeu},
                                                 {"bfloat", "undef", "1.0", 0x3f800000u}}) {
    llvm::LLVMContext context;
    std::string text = loopOf(plain, type, lower, "%pair, i64 1");
    text.replace(text.rfind(lower, text.find("[ %upper")), std::string(lower).size(), upper);
    const std::unique_ptr<llvm::Module> module = parsedIr(text, context);
    ASSERT_TRUE(module);
    carryWords(*module);
    EXPECT_EQ(wordsInto(*module, "loop"), (std::vector<std::string>{std::to_string(bits), "word"})) << text;
  }
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

/// Two ways back into a loop: halves that only carry each other go away, in whatever order.
TEST(WordPhis, HalvesThatCarryEachOther) {
  const char *text = R"(
define void @k(ptr %p, i32 %n, i1 %c, i1 %d) {
entry:
  br label %loop
loop:
  %l = phi half [ 0.0, %entry ], [ %a, %one ], [ %a, %two ]
  %l2 = phi half [ 0.0, %entry ], [ %l, %one ], [ %l2, %two ]
  %u = phi half [ 0.0, %entry ], [ %b, %one ], [ %b, %two ]
  %u2 = phi half [ 0.0, %entry ], [ %u, %one ], [ %u2, %two ]
  %v = insertelement <2 x half> poison, half %l2, i64 0
  %both = insertelement <2 x half> %v, half %u2, i64 1
  store <2 x half> %both, ptr %p
  %word = load <2 x half>, ptr %p
  %a = extractelement <2 x half> %word, i64 0
  %b = extractelement <2 x half> %word, i64 1
  br i1 %c, label %one, label %rest
rest:
  br i1 %d, label %two, label %exit
one:
  br label %loop
two:
  br label %loop
exit:
  ret void
}
)";
  EXPECT_EQ(carried(text), (Phis{0, 2}));
}

/// Two edges from one block bring one value.
TEST(WordPhis, SeveralEdgesFromOneBlock) {
  const char *text = R"(
define void @k(ptr %p, i32 %n) {
entry:
  %word = load <2 x half>, ptr %p
  %a = extractelement <2 x half> %word, i64 0
  %b = extractelement <2 x half> %word, i64 1
  switch i32 %n, label %other [ i32 0, label %join
                                i32 1, label %join ]
other:
  br label %join
join:
  %l = phi half [ %a, %entry ], [ %a, %entry ], [ 0.0, %other ]
  %u = phi half [ %b, %entry ], [ %b, %entry ], [ 0.0, %other ]
  %v = insertelement <2 x half> poison, half %l, i64 0
  %both = insertelement <2 x half> %v, half %u, i64 1
  store <2 x half> %both, ptr %p
  ret void
}
)";
  EXPECT_EQ(carried(text), (Phis{0, 1}));
}

TEST(WordPhis, AHalfThatIsUsedOnItsOwnKeepsBothApart) {
  std::string text = branched;
  text.replace(text.find("  %next"), 0, "  store i16 %nl, ptr %p\n");
  EXPECT_EQ(carried(text), (Phis{4, 1}));
}

} // namespace
} // namespace kiln::test
