// Of the PTX of every library kernel, at least 95 % of the instructions carry a line of a file in that kernel's folder;
// none carries line 0.
#include "PipelineHarness.h"

#include "compiler/target/Target.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Lines {
  unsigned instructions = 0, own = 0, zero = 0;
  std::map<std::string, unsigned> foreign; ///< file, or "" before any .loc of a function
};

Lines linesOf(std::string_view ptx, std::string_view file) {
  std::map<std::string, std::string> files; // the table comes last
  for (std::string_view line : split(ptx, '\n'))
    if (line.starts_with("\t.file\t")) {
      const std::size_t quote = line.find('"');
      files[std::string(line.substr(7, line.find(' ', 7) - 7))] = line.substr(quote + 1, line.rfind('"') - quote - 1);
    }
  Lines out;
  std::string current;
  int depth = 0;
  for (std::string_view line : split(ptx, '\n')) {
    while (!line.empty() && (line.front() == '\t' || line.front() == ' '))
      line.remove_prefix(1);
    if (line.empty() || line.starts_with("//") || line.starts_with("$"))
      continue;
    if (line.starts_with("{")) {
      if (depth++ == 0)
        current.clear();
      continue;
    }
    if (line.starts_with("}")) {
      --depth;
      continue;
    }
    if (depth == 0)
      continue;
    if (line.starts_with(".loc")) {
      unsigned number = 0, row = 0, column = 0;
      EXPECT_EQ(std::sscanf(std::string(line).c_str(), ".loc %u %u %u", &number, &row, &column), 3) << line;
      out.zero += row == 0;
      current = files[std::to_string(number)];
      continue;
    }
    if (line.front() == '.')
      continue; // a declaration
    ++out.instructions;
    // A family that is made of another's parts is named after it.
    const std::string from = std::filesystem::path(current).parent_path().string(),
                      of = std::filesystem::path(file).parent_path().string();
    if (from == of || (!from.empty() && of.starts_with(from + "_")))
      ++out.own;
    else
      ++out.foreign[current];
  }
  return out;
}

} // namespace

TEST(Lines, InstructionsCarryTheLinesOfTheirKernel) {
  double least = 101;
  std::string where;
  unsigned kernels = 0, turn = 0;
  for (const Target &target : allTargets())
    for (const LibraryKernel &k : libraryKernels(isFullTier())) {
      if (!isFullTier() && turn++ % 20 != 0)
        continue;
      const Compiled c = compile(k.text, {.target = target.name, .lineInfo = true});
      ASSERT_EQ(c.status, KILN_COMPILE_OK) << k.name << " " << target.name << ": " << c.diagnostics;
      const Lines lines = linesOf(c.output, k.file);
      ASSERT_GT(lines.instructions, 10u) << k.name;
      const double percent = 100.0 * lines.own / lines.instructions;
      std::string others;
      for (const auto &[file, count] : lines.foreign)
        others += format(" %u of '%s'", count, file.c_str());
      EXPECT_GE(percent, 95) << k.name << " " << target.name << ": " << lines.own << " of " << lines.instructions << ";"
                             << others;
      EXPECT_EQ(lines.zero, 0u) << k.name << " " << target.name;
      if (percent < least) {
        least = percent;
        where = k.name + " for " + std::string(target.name);
      }
      ++kernels;
    }
  std::printf("%u kernels; the least: %.1f %%, %s\n", kernels, least, where.c_str());
}
