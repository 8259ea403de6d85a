// What the table of numbers (docs/numbers.md) lists compiles for every target; every other operation on floats is
// refused before the lowering, with its name, its type and a remedy.
#include "PipelineHarness.h"

#include "compiler/target/Target.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

using Table = std::map<std::string, std::set<std::string>>; // operation -> types

Table documented() {
  Table out;
  std::ifstream in(KILN_SOURCE_DIR "/docs/numbers.md");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `"))
      continue;
    const std::vector<std::string_view> cells = split(line, '|');
    const std::string_view name = cells[1].substr(2, cells[1].size() - 4);
    if (cells.size() > 6 && (name.starts_with("math.") || name.starts_with("arith.")))
      // From the right: meanings have bars of their own.
      out[std::string(name)].insert(std::string(cells[cells.size() - 5].substr(1, cells[cells.size() - 5].size() - 2)));
  }
  return out;
}

/// Operations on floats that MLIR has and the table lacks.
constexpr const char *unlisted[] = {"math.tan",   "math.sinh",  "math.cosh",  "math.asin",  "math.acos", "math.atan",
                                    "math.atan2", "math.asinh", "math.acosh", "math.atanh", "math.erfc"};

std::string kernelOf(const std::string &operation, const std::string &type) {
  const bool ternary = operation == "math.fma" || operation == "math.clampf";
  static const std::set<std::string> binary = {"arith.addf",     "arith.subf",     "arith.mulf",    "arith.divf",
                                               "arith.remf",     "math.powf",      "math.copysign", "math.atan2",
                                               "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"};
  const bool test = operation.starts_with("math.is"), power = operation == "math.fpowi";
  const std::string tile = "tensor<128x" + type + ">";
  std::string operands = "%x", types = tile;
  for (int i = 1; i < (ternary ? 3 : binary.count(operation) ? 2 : 1); ++i) {
    operands += i == 1 ? ", %z" : ", %x";
    types += ", " + tile;
  }
  if (power) {
    operands += ", %i";
    types += ", tensor<128xi32>";
  }
  std::string text = "func.func @k(%p: !tile.ptr<T>, %q: !tile.ptr<i1>) attributes {tile.kernel} {\n"
                     "  %i = tile.range 0 to 128 : tensor<128xi32>\n"
                     "  %b = tile.splat %p : !tile.ptr<T> to tensor<128x!tile.ptr<T>>\n"
                     "  %a = tile.addptr %b, %i : tensor<128x!tile.ptr<T>>, tensor<128xi32>\n"
                     "  %x = tile.load %a : tensor<128x!tile.ptr<T>>\n"
                     "  %next = arith.constant dense<128> : tensor<128xi32>\n"
                     "  %e = tile.addptr %a, %next : tensor<128x!tile.ptr<T>>, tensor<128xi32>\n"
                     "  %z = tile.load %e : tensor<128x!tile.ptr<T>>\n"
                     "  %y = \"" +
                     operation + "\"(" + operands + ") : (" + types + ") -> " + (test ? "tensor<128xi1>" : tile) + "\n";
  if (test)
    text += "  %c = tile.splat %q : !tile.ptr<i1> to tensor<128x!tile.ptr<i1>>\n"
            "  %d = tile.addptr %c, %i : tensor<128x!tile.ptr<i1>>, tensor<128xi32>\n"
            "  tile.store %d, %y : tensor<128x!tile.ptr<i1>>\n  return\n}\n";
  else
    text += "  tile.store %a, %y : tensor<128x!tile.ptr<T>>\n  return\n}\n";
  for (std::size_t at = text.find("<T>"); at != std::string::npos; at = text.find("<T>"))
    text.replace(at, 3, "<" + type + ">");
  return text;
}

} // namespace

TEST(NumbersStage, ListedCompilesAndUnlistedIsRefusedByVerifyStage) {
  Table table = documented();
  ASSERT_GT(table.size(), 30u);
  for (const char *operation : unlisted)
    ASSERT_TRUE(table.emplace(operation, std::set<std::string>{}).second) << operation;
  unsigned accepted = 0, refused = 0, turn = 0;
  for (const auto &[operation, types] : table)
    for (const char *type : {"f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"}) {
      const bool listed = types.contains(type);
      const std::string text = kernelOf(operation, type);
      for (std::size_t t = 0; t < allTargets().size(); ++t) {
        const Target &target = allTargets()[t];
        if (!isFullTier() && (turn % 3 != 0 || t != turn / 3 % allTargets().size()))
          continue;
        const std::string where = operation + " " + type + " " + std::string(target.name);
        // "tile" stops after verify-stage: a refusal comes no later.
        const Compiled c = compile(text, {.target = target.name, .emit = listed ? "ptx" : "tile"});
        if (listed) {
          EXPECT_EQ(c.status, KILN_COMPILE_OK) << where << ": " << c.diagnostics;
          ++accepted;
          continue;
        }
        EXPECT_EQ(c.status, KILN_COMPILE_REFUSED) << where;
        EXPECT_NE(c.diagnostics.find(operation), std::string::npos) << where << ": " << c.diagnostics;
        EXPECT_NE(c.diagnostics.find("table of numbers"), std::string::npos) << where << ": " << c.diagnostics;
        if (!types.empty())
          EXPECT_NE(c.diagnostics.find(type), std::string::npos) << where << ": " << c.diagnostics;
        ++refused;
      }
      ++turn;
    }
  std::printf("%u listed compiled, %u unlisted refused\n", accepted, refused);
  EXPECT_GT(accepted, 20u);
  EXPECT_GT(refused, 10u);
}
