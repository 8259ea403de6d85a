#include "compiler/codegen/RoundLast.h"
#include "tests/codegen/ParsedIr.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// The one choice of a function after the pass: its type, and all of the function as text.
struct Choice {
  std::string type, text;
};

Choice rounded(const std::string &body) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module =
      parsedIr("define void @k(ptr %p, i1 %c, float %x, float %y, double %d) {\n" + body + "  ret void\n}\n", context);
  Choice out;
  if (!module)
    return out;
  roundAfterChoices(*module);
  llvm::raw_string_ostream os(out.text);
  EXPECT_FALSE(llvm::verifyModule(*module, &os)) << out.text;
  out.text.clear();
  for (llvm::Instruction &i : llvm::instructions(*module->getFunction("k")))
    if (llvm::isa<llvm::SelectInst>(i)) {
      llvm::raw_string_ostream type(out.type);
      i.getType()->print(type);
    }
  module->getFunction("k")->print(os);
  return out;
}

unsigned count(const std::string &text, const std::string &what) {
  unsigned n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(RoundLast, AChoiceOfWhatWasRoundedIsMadeBeforeIt) {
  const Choice zero = rounded("  %h = fptrunc float %x to half\n  %s = select i1 %c, half %h, half 0xH0000\n"
                              "  store half %s, ptr %p\n");
  EXPECT_EQ(zero.type, "float") << zero.text;
  EXPECT_NE(zero.text.find("select i1 %c, float %x, float 0.000000e+00"), std::string::npos) << zero.text;
  EXPECT_EQ(count(zero.text, "fptrunc"), 1u) << zero.text;

  const Choice both = rounded("  %h = fptrunc float %x to bfloat\n  %g = fptrunc float %y to bfloat\n"
                              "  %s = select i1 %c, bfloat %h, bfloat %g\n  store bfloat %s, ptr %p\n");
  EXPECT_EQ(both.type, "float") << both.text;
  EXPECT_EQ(count(both.text, "fptrunc"), 1u) << both.text;
}

TEST(RoundLast, HalvesAsIntegersAreTheSame) {
  // 0x3F80 is 1 in bf16.
  const Choice bits = rounded("  %h = fptrunc float %x to bfloat\n  %b = bitcast bfloat %h to i16\n"
                              "  %s = select i1 %c, i16 16256, i16 %b\n  store i16 %s, ptr %p\n");
  EXPECT_EQ(bits.type, "float") << bits.text;
  EXPECT_NE(bits.text.find("select i1 %c, float 1.000000e+00, float %x"), std::string::npos) << bits.text;
  EXPECT_NE(bits.text.find("bitcast bfloat"), std::string::npos) << bits.text;
}

TEST(RoundLast, OthersStay) {
  // NaN's bits would not come back; another rounding; no rounding at all; f64, which is rounded twice else.
  for (const char *body : {"  %h = fptrunc float %x to half\n  %s = select i1 %c, half %h, half 0xH7E01\n"
                           "  store half %s, ptr %p\n",
                           "  %h = fptrunc float %x to half\n  %a = bitcast half %h to i16\n"
                           "  %g = fptrunc float %y to bfloat\n  %b = bitcast bfloat %g to i16\n"
                           "  %s = select i1 %c, i16 %a, i16 %b\n  store i16 %s, ptr %p\n",
                           "  %l = load half, ptr %p\n  %s = select i1 %c, half %l, half 0xH0000\n"
                           "  store half %s, ptr %p\n",
                           "  %h = fptrunc double %d to half\n  %s = select i1 %c, half %h, half 0xH0000\n"
                           "  store half %s, ptr %p\n"}) {
    const Choice kept = rounded(body);
    EXPECT_TRUE(kept.type == "half" || kept.type == "i16") << kept.text;
  }
}

TEST(RoundLast, ArmsThatAreOneValue) {
  const Choice one = rounded("  %h = fptrunc float %x to half\n  %s = select i1 %c, half %h, half %h\n"
                             "  store half %s, ptr %p\n");
  EXPECT_EQ(one.type, "half") << one.text;
  const Choice through = rounded("  %h = fptrunc float %x to half\n  %a = bitcast half %h to i16\n"
                                 "  %f = bitcast i16 %a to half\n  %b = bitcast half %f to i16\n"
                                 "  %s = select i1 %c, i16 %a, i16 %b\n  store i16 %s, ptr %p\n");
  EXPECT_EQ(through.type, "float") << through.text;
  EXPECT_EQ(count(through.text, "fptrunc"), 1u) << through.text;
}

TEST(RoundLast, NoRoundingMovesIntoALoop) {
  const Choice loop = rounded("  %h = fptrunc float %x to half\n  br label %l\nl:\n"
                              "  %s = select i1 %c, half %h, half 0xH0000\n  store half %s, ptr %p\n"
                              "  br i1 %c, label %l, label %e\ne:\n");
  EXPECT_EQ(loop.type, "half") << loop.text;
}

} // namespace
} // namespace kiln::test
