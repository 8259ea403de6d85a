// Every library kernel, in every type, for every target of the table: compiled, and assembled where an assembler is
// found.
#include "PipelineHarness.h"

#include "compiler/codegen/Assembler.h"
#include "compiler/codegen/CubinReader.h"
#include "compiler/target/Target.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

/// In the default tier every third kernel is assembled for one target, every third as code of sm_80.  Neighbours in
/// the table differ in a type or a tile.
bool isOfFirstTest(std::size_t kernel) {
  return kernel % 3 == 1;
}
bool isOfSecondTest(std::size_t kernel) {
  return kernel % 3 == 2;
}

/// kernel x target; the sample visits every target.
template <typename Body> void forEachPair(Body body) {
  const std::vector<LibraryKernel> kernels = libraryKernels(isFullTier());
  std::size_t turn = 0;
  for (std::size_t t = 0; t < allTargets().size(); ++t)
    for (std::size_t k = 0; k < kernels.size(); ++k, ++turn)
      if (isFullTier() || (isOfFirstTest(k) && k / 3 % allTargets().size() == t))
        body(kernels[k], allTargets()[t]);
}

} // namespace

TEST(Assemble, EveryKernelForEveryTarget) {
  std::vector<std::string> notes;
  const auto assemblers = listAssemblers({}, notes);
  if (assemblers.empty())
    GTEST_SKIP() << "no assembler: " << join(notes, "; ");
  std::map<std::string, unsigned> assembled, registers;
  std::set<std::string> spilled;
  unsigned compiled = 0;
  forEachPair([&](const LibraryKernel &k, const Target &target) {
    const Compiled c = compile(k.text, {.target = target.name});
    ASSERT_EQ(c.status, KILN_COMPILE_OK) << k.name << " " << target.name << ": " << c.diagnostics;
    ++compiled;
    const auto metadata = nlohmann::json::parse(c.metadata);
    EXPECT_NE(c.output.find(".target " + std::string(target.name) + "\n"), std::string::npos) << k.name;
    const std::string entry = metadata.at("entry");
    for (const auto &assembler : assemblers) {
      // The preferred one assembles everything; the others, the same assembler in another mode, a part of it.
      if (assembler != assemblers.front() && compiled % (isFullTier() ? 10 : 4) != 0)
        continue;
      const Result<AssembledModule> made = assembler->assemble(c.output, target.name);
      const std::string where = k.name + " " + std::string(target.name) + " " + std::string(assembler->name());
      ASSERT_TRUE(made.ok()) << where << ": " << made.status().toString();
      ++assembled[std::string(assembler->name())];
      EXPECT_TRUE(made->warnings.empty()) << where << ": " << join(made->warnings, "; ");
      // Besides the entry a cubin may hold subroutines of the assembler's own, such as division.
      const KernelResources *r = made->resources.find(entry);
      ASSERT_TRUE(r) << where;
      EXPECT_GE(r->registers, 4u) << where;
      EXPECT_LE(r->registers, target.registersPerThread) << where;
      const std::uint64_t threads = 32u * metadata.at("num_warps").get<unsigned>();
      EXPECT_LE(r->registers * threads, target.registersPerSm) << where << ": the block does not fit";
      ASSERT_TRUE(r->spillStoreBytes && r->spillLoadBytes) << where << ": the report says nothing of spills";
      // Spills are a matter of speed, and of a kernel's own limit on registers: they are shown, and need a stack.
      if (*r->spillStoreBytes + *r->spillLoadBytes) {
        EXPECT_GT(r->stackBytes, 0u) << where;
        spilled.insert(k.name);
      } else {
        EXPECT_EQ(r->stackBytes, 0u) << where;
      }
      // What the cubin itself states agrees with the log.
      const Result<std::vector<KernelResources>> stated = resourcesFromCubin(made->cubin);
      ASSERT_TRUE(stated.ok()) << where << ": " << stated.status().toString();
      const auto own = std::ranges::find(*stated, entry, &KernelResources::name);
      ASSERT_NE(own, stated->end()) << where;
      EXPECT_EQ(own->registers, r->registers) << where;
      unsigned &most = registers[std::string(target.name)];
      most = std::max(most, r->registers);
    }
  });
  std::string text;
  for (const auto &[name, count] : assembled)
    text += format("; %u assembled by %s", count, name.c_str());
  for (const std::string &note : notes)
    text += "; " + note;
  for (const auto &[name, count] : registers)
    text += format("; %s at most %u registers", name.c_str(), count);
  for (const std::string &name : spilled)
    text += "; '" + name + "' spills";
  std::printf("%u compiled%s\n", compiled, text.c_str());
}

/// sm_80 code on every later GPU: what a cache of one code target serves.
TEST(Assemble, CodeOfOneTargetOnLaterGpus) {
  std::vector<std::string> notes;
  const auto assemblers = listAssemblers({}, notes);
  if (assemblers.empty())
    GTEST_SKIP() << "no assembler: " << join(notes, "; ");
  const std::vector<LibraryKernel> kernels = libraryKernels(false);
  std::size_t turn = 0, number = 0;
  for (const LibraryKernel &k : kernels) {
    if (!isFullTier() && !isOfSecondTest(number++))
      continue;
    const Compiled c = compile(k.text, {.target = "sm_80"});
    ASSERT_EQ(c.status, KILN_COMPILE_OK) << c.diagnostics;
    for (const Target &target : allTargets()) {
      if (target.sm < 80 || (!isFullTier() && turn++ % 20 != 0))
        continue;
      const Result<AssembledModule> made = assemblers.front()->assemble(c.output, target.name);
      EXPECT_TRUE(made.ok()) << k.name << " on " << target.name << ": " << made.status().toString();
    }
  }
}
