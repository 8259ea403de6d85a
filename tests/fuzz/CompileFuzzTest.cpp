// 50,000 mutations of the repository's programs, each through the whole compile: rejected with a message, or compiled.
#include "compiler/target/Target.h"
#include "Mutator.h"
#include "Seeds.h"
#include "tests/pipeline/PipelineHarness.h"
#include "tests/support/TestTier.h"
#include "Workers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace kiln;
using namespace kiln::test;

namespace {

enum Outcome : unsigned { Accepted, Malformed, Refused, Crashed, WithoutMessage, outcomes };

Outcome outcomeOf(const Compiled &c) {
  if (c.status == KILN_COMPILE_OK)
    return c.output.find(".entry") == std::string::npos ? WithoutMessage : Accepted;
  if (c.diagnostics.find("\"severity\":\"error\"") == std::string::npos ||
      c.diagnostics.find("refused without a reason") != std::string::npos)
    return WithoutMessage;
  return c.status == KILN_COMPILE_INPUT ? Malformed : c.status == KILN_COMPILE_REFUSED ? Refused : Crashed;
}

/// The library's kernels as recorded, and as the compiler prints them at stage tile_gpu.
std::vector<Seed> librarySeeds() {
  std::vector<Seed> out;
  for (const LibraryKernel &k : libraryKernels(false))
    out.push_back({k.name, k.text});
  for (std::size_t i = 0, n = out.size(); i < n; ++i) {
    const Compiled c = compile(out[i].text, {.emit = "tile_gpu"});
    EXPECT_EQ(c.status, KILN_COMPILE_OK) << out[i].name << ": " << c.diagnostics;
    out.push_back({out[i].name + " tile_gpu", c.output});
  }
  return out;
}

/// A program written for one target is refused for another before anything else is looked at.
std::string targetOf(std::string_view text, std::string_view otherwise) {
  constexpr std::string_view attribute = "tile_gpu.target = \"";
  const std::size_t at = text.find(attribute), begin = at + attribute.size();
  if (at == std::string_view::npos || !text.substr(begin).starts_with("sm_"))
    return std::string(otherwise);
  return std::string(text.substr(begin, text.find('"', begin) - begin));
}

struct Corpus {
  Corpus() : seeds(seedsOfRepository(KILN_SOURCE_DIR)) {
    const std::vector<Seed> library = librarySeeds();
    seeds.insert(seeds.end(), library.begin(), library.end());
    untouched = runTasks(0, seeds.size(), outcomes, [&](std::uint64_t i) {
      return outcomeOf(compile(seeds[i].text, {.target = targetOf(seeds[i].text, "sm_80")}));
    });
    for (std::size_t i = 0; i < seeds.size(); ++i)
      if (untouched.results[i] != Malformed)
        parsed.push_back(i);
  }
  std::vector<Seed> seeds;
  WorkerRun untouched;
  std::vector<std::size_t> parsed; ///< those that get past the parser
};

const Corpus &corpus() {
  static const Corpus instance;
  return instance;
}

struct Program {
  std::string name, text, target, facts;
  bool lineInfo = false;
};

class Mutations {
public:
  Mutations()
      : mutator([] {
          std::vector<std::string> texts;
          for (const Seed &seed : corpus().seeds)
            texts.push_back(seed.text);
          return texts;
        }()) {}

  Program operator()(std::uint64_t number) const {
    // What the parser refuses as it is stays refused after most mutations: such seeds take one turn in ten.
    const Corpus &c = corpus();
    const Seed &seed =
        number % 10 == 9 ? c.seeds[number / 10 % c.seeds.size()] : c.seeds[c.parsed[number % c.parsed.size()]];
    const Target &target = allTargets()[number / c.parsed.size() % allTargets().size()];
    static constexpr const char *facts[] = {
        "", "", R"([{"argument": 0, "divisibility": 16}])",
        R"([{"argument": 0, "divisibility": 16}, {"argument": 1, "divisibility": 16}, {"argument": 2, "divisibility": 16}])",
        R"([{"argument": 3, "equals": 1}])"};
    Program out{seed.name, mutator.mutate(seed.text, number), {}, facts[number % std::size(facts)], number % 7 == 0};
    out.target = targetOf(out.text, target.name);
    return out;
  }

private:
  Mutator mutator;
};

/// A file to look at, in a folder of the build directory.
std::string keep(std::uint64_t number, const Program &program) {
  const std::filesystem::path folder = KILN_BINARY_DIR "/tests/fuzz-failures";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = (folder / (std::to_string(number) + ".mlir")).string();
  std::ofstream(path) << "// " << program.name << ", target " << program.target << ", facts " << program.facts
                      << (program.lineInfo ? ", with line info" : "") << "\n"
                      << program.text;
  return path;
}

} // namespace

// What mutations start from must reach the end, or the fuzzer tests the parser alone.
TEST(CompileFuzz, SeedsReachEveryStage) {
  const auto &seeds = corpus().seeds;
  const WorkerRun &run = corpus().untouched;
  for (const Lost &lost : run.lost)
    ADD_FAILURE() << seeds[lost.task].name << ": " << lost.why << "\n" << lost.said;
  std::printf("%zu seeds: %llu compiled, %llu malformed, %llu refused\n", seeds.size(),
              static_cast<unsigned long long>(run.counts[Accepted]),
              static_cast<unsigned long long>(run.counts[Malformed]),
              static_cast<unsigned long long>(run.counts[Refused]));
  EXPECT_EQ(run.counts[WithoutMessage] + run.counts[Crashed], 0u);
  EXPECT_GE(run.counts[Accepted], seeds.size() / 3);
}

TEST(CompileFuzz, MutationsAreRejectedOrCompiled) {
  const Mutations mutations;
  const std::uint64_t count = pick<std::uint64_t>(600, 50000);
  const WorkerRun run = runTasks(0, count, outcomes, [&](std::uint64_t i) {
    const Program p = mutations(i);
    const Outcome outcome = outcomeOf(compile(p.text, {.target = p.target, .facts = p.facts, .lineInfo = p.lineInfo}));
    if (outcome == WithoutMessage)
      keep(i, p);
    return outcome;
  });
  for (const Lost &lost : run.lost) {
    const Program p = mutations(lost.task);
    ADD_FAILURE() << p.name << " " << p.target << ": " << lost.why << "; see " << keep(lost.task, p) << "\n"
                  << lost.said;
  }
  std::printf(
      "%llu mutations: %llu compiled, %llu malformed, %llu refused, %llu refused without a message, %zu lost; the "
      "slowest, %llu, took %.2f s\n",
      static_cast<unsigned long long>(run.done), static_cast<unsigned long long>(run.counts[Accepted]),
      static_cast<unsigned long long>(run.counts[Malformed]), static_cast<unsigned long long>(run.counts[Refused]),
      static_cast<unsigned long long>(run.counts[WithoutMessage]), run.lost.size(),
      static_cast<unsigned long long>(run.slowest), run.slowestSeconds);
  if (run.slowestSeconds > 5)
    std::printf("it is kept as %s\n", keep(run.slowest, mutations(run.slowest)).c_str());
  EXPECT_EQ(run.counts[WithoutMessage], 0u);
  EXPECT_EQ(run.counts[Crashed], 0u);
  EXPECT_EQ(run.done + run.lost.size(), count);
}
