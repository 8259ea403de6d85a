#include "CodegenHarness.h"
#include "runtime/ptx/Ast.h"
#include "runtime/ptx/Parser.h"
#include "support/Text.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

/// What `.loc` says of each instruction line of PTX: opcode -> lines; "" for those before any `.loc` of their function.
struct Lines {
  std::map<std::string, std::set<std::string>> ofOpcode;
  unsigned instructions = 0, without = 0, zero = 0;
};

Lines linesOf(std::string_view ptx) {
  std::map<std::string, std::string> files;
  for (std::string_view line : split(ptx, '\n'))
    if (std::size_t at = line.find(".file\t"); at != std::string_view::npos) {
      const std::size_t quote = line.find('"');
      files[std::string(line.substr(at + 6, line.find(' ', at) - at - 6))] =
          line.substr(quote + 1, line.rfind('"') - quote - 1);
    }
  Lines out;
  std::string current;
  bool inside = false;
  for (std::string_view line : split(ptx, '\n')) {
    while (!line.empty() && (line.front() == '\t' || line.front() == ' '))
      line.remove_prefix(1);
    if (line == "{") {
      inside = true;
      current.clear();
      continue;
    }
    if (line == "}")
      inside = false;
    if (!inside || line.empty() || line.front() == '$' || line.starts_with("//"))
      continue;
    if (line.starts_with(".loc")) {
      unsigned file, number, column;
      if (std::sscanf(std::string(line).c_str(), ".loc %u %u %u", &file, &number, &column) != 3)
        ADD_FAILURE() << line;
      out.zero += number == 0;
      current = files[std::to_string(file)] + ":" + std::to_string(number);
      continue;
    }
    if (line.front() == '.')
      continue; // a declaration
    ++out.instructions;
    out.without += current.empty();
    if (line.front() == '@')
      line.remove_prefix(line.find(' ') + 1);
    out.ofOpcode[std::string(line.substr(0, line.find_first_of(" \t;")))].insert(current);
  }
  return out;
}

Emitted emitWithLines(std::string_view text, std::string_view target = "sm_80",
                      std::string fileName = "folder/sample.mlir") {
  EmitOptions options;
  options.lineInfo = true;
  options.fileName = std::move(fileName);
  Emitted made = emit(text, target, options);
  EXPECT_TRUE(made.ok) << made.text();
  return made;
}

/// The line of `text` that contains `piece`, counted from 1.
unsigned lineOf(std::string_view text, std::string_view piece) {
  return static_cast<unsigned>(
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(piece)), '\n'));
}

} // namespace

TEST(Location, EveryInstructionHasALineAndNoneIsZero) {
  for (const Target &target : allTargets())
    for (const char *name : {"add.mlir", "mirror.mlir"}) {
      Lines lines = linesOf(emitWithLines(sample(name), target.name).ptx);
      EXPECT_GT(lines.instructions, 10u);
      EXPECT_EQ(lines.without, 0u) << target.name << " " << name;
      EXPECT_EQ(lines.zero, 0u) << target.name << " " << name;
    }
}

TEST(Location, LinesAreThoseOfTheOperations) {
  const std::string text = sample("mirror.mlir");
  Lines lines = linesOf(emitWithLines(text).ptx);
  using Set = std::set<std::string>;
  auto own = [&](std::string_view piece) { return "folder/sample.mlir:" + std::to_string(lineOf(text, piece)); };
  EXPECT_EQ(lines.ofOpcode["ld.global.nc.b32"], Set{"kernel.cc:41"}) << "the first file location of a fused one";
  EXPECT_EQ(lines.ofOpcode["st.shared.b32"], Set{"kernel.cc:42"}) << "a named location";
  EXPECT_EQ(lines.ofOpcode["ld.shared.b32"], Set{"kernel.cc:43"}) << "the callee of a call site";
  EXPECT_EQ(lines.ofOpcode["add.rn.f32"], Set{"kernel.cc:43"}) << "none of its own: the nearest before it";
  EXPECT_EQ(lines.ofOpcode["bar.sync"], (Set{own("nvvm.barrier"), "kernel.cc:43"}));
  EXPECT_EQ(lines.ofOpcode["st.global.b32"], Set{own("llvm.store %sum")});
}

TEST(Location, NoDebugSectionsAndNoDebugTarget) {
  const std::string ptx = emitWithLines(sample("mirror.mlir")).ptx;
  EXPECT_EQ(ptx.find(".section"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".target sm_80\n"), std::string::npos);
  EXPECT_EQ(ptx.find(", debug"), std::string::npos);
  EXPECT_NE(ptx.find("\"folder/sample.mlir\""), std::string::npos);
}

TEST(Location, OffNothingOfThemIsInThePtx) {
  const std::string text = sample("mirror.mlir");
  EmitOptions a, b;
  a.fileName = "one/place/a.mlir";
  b.fileName = "/another/much/longer/place/b.mlir";
  Emitted here = emit(text, "sm_80", a), there = emit("\n\n\n" + text, "sm_80", b);
  ASSERT_TRUE(here.ok && there.ok) << here.text();
  EXPECT_EQ(here.ptx, there.ptx);
  for (const char *piece : {".loc", ".file", ".section", ".mlir", "kernel.cc", "place"})
    EXPECT_EQ(here.ptx.find(piece), std::string::npos) << piece;
}

TEST(Location, LinesDoNotChangeTheInstructions) {
  const std::string text = sample("mirror.mlir");
  Emitted plain = emit(text, "sm_80");
  Lines with = linesOf(emitWithLines(text).ptx), without = linesOf(plain.ptx);
  EXPECT_EQ(with.instructions, without.instructions);
}

TEST(Location, TheEmulatorReadsThem) {
  auto module = ptx::parse(emitWithLines(sample("mirror.mlir")).ptx, "mirror.ptx");
  EXPECT_TRUE(module.ok()) << module.status().toString();
}

TEST(Location, AKernelWithoutAnyIsAccepted) {
  // Every location unknown: nothing to print, nothing to refuse.
  Emitted made = emitWithLines("module {\nllvm.func @k() attributes {nvvm.kernel} {\nllvm.return loc(unknown)\n} "
                               "loc(unknown)\n} loc(unknown)\n");
  EXPECT_EQ(linesOf(made.ptx).zero, 0u);
}
