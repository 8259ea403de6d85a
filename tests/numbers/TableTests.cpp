// The table as a page, what is refused, and that guards cost nothing where they are not needed.
#include "tests/numbers/NumbersCases.h"
#include "tests/numbers/NumbersCompile.h"

#include "compiler/numbers/Numbers.h"
#include "compiler/passes/Passes.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A case with a result and operands of one type, compiled for a target.
CompiledNumbers compileBody(const std::string &body, const std::string &type, unsigned operands,
                            const std::string &output = "", const std::string &target = "sm_80") {
  NumbersCase c{"k", "", body, {}, {output.empty() ? type : output}, {}};
  c.inputs.assign(operands, DType{type});
  const NumbersCase *list[] = {&c};
  return compileNumbers(moduleText(list, target), /*keepLowered=*/true);
}

TEST(NumbersTable, PageIsTheTable) {
  std::ifstream file(std::string(KILN_SOURCE_DIR) + "/docs/numbers.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), numbers::numbersMarkdown())
      << "docs/numbers.md is what kiln-opt --kiln-lower-numbers=print-table prints";
}

TEST(NumbersTable, EveryRowIsFoundAndBounded) {
  for (const numbers::NumberRow &row : numbers::numberRows()) {
    EXPECT_EQ(numbers::findRow(row.op, row.type, row.grade), &row) << row.helper.str() << " stands twice";
    EXPECT_LE(row.low, row.high);
    if (row.placement == numbers::Placement::ViaF32) {
      const numbers::NumberRow *single = numbers::findRow(row.op, numbers::NumberType::F32, row.grade);
      ASSERT_NE(single, nullptr);
      EXPECT_NE(single->placement, numbers::Placement::Keep);
    }
  }
}

struct Refused {
  const char *body, *type;
  unsigned operands;
  const char *output, *message;
};

class NumbersRefused : public testing::TestWithParam<Refused> {};

TEST_P(NumbersRefused, SaysWhatExists) {
  const Refused &p = GetParam();
  const CompiledNumbers c = compileBody(p.body, p.type, p.operands, p.output);
  EXPECT_FALSE(c.ok);
  EXPECT_NE(c.errors.find(p.message), std::string::npos) << c.errors;
}

INSTANTIATE_TEST_SUITE_P(
    All, NumbersRefused,
    testing::Values(
        Refused{"%r = math.sin %a : f64", "f64", 1, "f64",
                "math.sin of f64 is not in the table of numbers: it exists for f16, bf16, f32;"},
        Refused{"%r = math.tan %a : f32", "f32", 1, "f32", "math.tan is not in the table of numbers"},
        Refused{"%r = math.atan2 %a, %b : f32", "f32", 2, "f32", "math.atan2 is not in the table of numbers"},
        Refused{"%r = arith.addf %a, %b : f8E4M3FN", "f8E4M3FN", 2, "f8E4M3FN",
                "arith.addf of f8E4M3FN is not in the table of numbers: it exists for f16, bf16, f32, f64;"},
        Refused{"%r = arith.sitofp %a : i32 to f8E5M2", "i32", 1, "f8E5M2",
                "arith.sitofp of f8E5M2 is not in the table of numbers"},
        Refused{
            "%x = arith.extsi %a : i64 to i128\n %y = arith.divsi %x, %x : i128\n %r = arith.trunci %y : i128 to i64",
            "i64", 1, "i64", "integers have at most 64 bits"},
        Refused{"%r = arith.truncf %a upward : f32 to f16", "f32", 1, "f16", "rounds to nearest even only"}));

TEST(NumbersTable, UnknownTarget) {
  const CompiledNumbers c = compileBody("%r = math.exp %a : f32", "f32", 1, "f32", "sm_42");
  EXPECT_FALSE(c.ok);
  EXPECT_NE(c.errors.find("sm_42"), std::string::npos) << c.errors;
}

/// Occurrences of `part` after the kernel's first block.
unsigned count(const std::string &text, const std::string &part) {
  unsigned n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

TEST(IntegerGuards, LiteralOperandsHaveNone) {
  for (const char *op : {"divsi", "divui", "remsi", "remui", "shli", "shrsi", "shrui"}) {
    const CompiledNumbers c =
        compileBody("%b = arith.constant 3 : i32\n %r = arith." + std::string(op) + " %a, %b : i32", "i32", 1);
    ASSERT_TRUE(c.ok) << c.errors;
    EXPECT_EQ(count(c.lowered, "llvm.select"), 0u) << op << "\n" << c.lowered;
    EXPECT_EQ(count(c.ptx, "selp"), 0u) << op << "\n" << c.ptx;
  }
}

TEST(IntegerGuards, MinusOneNeedsOnlyItsOwn) {
  const CompiledNumbers c = compileBody("%b = arith.constant -1 : i32\n %r = arith.divsi %a, %b : i32", "i32", 1);
  ASSERT_TRUE(c.ok) << c.errors;
  EXPECT_EQ(count(c.ptx, "div."), 0u) << c.ptx; // a negation
}

TEST(IntegerGuards, DivisorsAreGuarded) {
  const CompiledNumbers c = compileBody("%r = arith.divsi %a, %b : i32", "i32", 2);
  ASSERT_TRUE(c.ok) << c.errors;
  EXPECT_EQ(count(c.lowered, "llvm.select"), 2u) << c.lowered; // the divisor and the result
}

TEST(NumbersCode, HelpersLeaveNoFunctionBehind) {
  const CompiledNumbers c = compileBody("%r = math.exp %a : f32", "f32", 1);
  ASSERT_TRUE(c.ok) << c.errors;
  EXPECT_EQ(count(c.ptx, ".func"), 0u) << c.ptx;
  EXPECT_EQ(count(c.lowered, "math."), 0u);
  // The polynomial is fma; nothing is a library call.
  EXPECT_GE(count(c.ptx, "fma.rn.f32"), 8u);
}

TEST(NumbersCode, SlowPathsAreCalls) {
  const CompiledNumbers c = compileBody("%r = math.sin %a : f32", "f32", 1);
  ASSERT_TRUE(c.ok) << c.errors;
  EXPECT_EQ(count(c.ptx, "\n.func"), 2u) << c.ptx; // declared and defined
}

TEST(NumbersCode, ApproxIsOneInstruction) {
  for (const char *op : {"exp2", "log2", "sin", "cos", "tanh", "rsqrt", "sqrt"}) {
    const CompiledNumbers c = compileBody("%r = math." + std::string(op) + " %a fastmath<afn> : f32", "f32", 1);
    ASSERT_TRUE(c.ok) << c.errors;
    EXPECT_EQ(count(c.ptx, ".approx"), 1u) << op << "\n" << c.ptx;
    EXPECT_EQ(count(c.ptx, "fma"), 0u) << op << "\n" << c.ptx;
  }
}

TEST(NumbersCode, NotContractedUnlessAllowed) {
  const std::string body = "%m = arith.mulf %a, %b FLAG: f32\n %r = arith.addf %m, %a FLAG: f32";
  auto with = [&](const std::string &flag) {
    std::string text = body;
    for (std::size_t at; (at = text.find("FLAG")) != std::string::npos;)
      text.replace(at, 4, flag);
    return compileBody(text, "f32", 2);
  };
  const CompiledNumbers plain = with(""), fused = with("fastmath<contract> ");
  ASSERT_TRUE(plain.ok && fused.ok) << plain.errors << fused.errors;
  EXPECT_EQ(count(plain.ptx, "fma"), 0u) << plain.ptx;
  EXPECT_EQ(count(plain.ptx, "mul.rn.f32"), 1u) << plain.ptx; // ptxas fuses a mul without .rn
  EXPECT_EQ(count(fused.ptx, "fma.rn.f32"), 1u) << fused.ptx;
}

} // namespace
