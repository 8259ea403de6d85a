//===- AttentionMutantsTest.cpp - The emulator finds mistakes in attention's synchronisation ------===//
//
// The PTX of attention forward with one mistake: a barrier, a fence, an arrival or a wait is missing or waits for the
// wrong phase, a copy's bytes are miscounted.  Each ends in a finding or in another result.  On sm_90a the kernel has
// all of them: copies by tensor maps into rings of mbarriers, products of warpgroups, turns, warps that only copy.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/mutants/Mutants.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

namespace kiln::test {
namespace {

using namespace kernels;

struct Ran {
  std::vector<Finding> findings; ///< defects
  std::string failure;           ///< of the launch
  Results results;
};

/// One call of attention on an emulator; `swaps` stands in for some of the PTX that it loads.
class AttentionMutants : public testing::Test {
protected:
  void SetUp() override {
    if (!deviceNames().front().starts_with("emulator"))
      GTEST_SKIP() << "mutants run on emulators only";
  }

  Ran run(const std::string &device, const Problem &p, const Data &d, const std::map<std::string, std::string> &swaps,
          std::vector<std::string> *seen = nullptr) {
    Ran out;
    Opening how{.cache = cache.path() + "/kernels", .texts = seen, .swaps = swaps};
    how.emulator.instructionBudget = 20'000'000;
    const auto on = openWith(device, how);
    if (!on)
      return out;
    PreparedCall call = prepare(*on->device, p, d);
    if (heads)
      call.arguments.tiling = tilingOf(*on->device, call.arguments, *heads);
    if (tiling)
      call.arguments.tiling = *tiling;
    AttentionOperation operation(*on->jit);
    if (const Status s = operation.run(call.arguments); !s.ok())
      out.failure = s.toString();
    for (Finding &f : on->device->takeFindings())
      if (!f.note)
        out.findings.push_back(std::move(f));
    out.results = {download(call.o), download(call.lse)};
    return out;
  }

  /// The run without a mistake, and in `ptx` the text of its only kernel.
  void runRight(const std::string &device, const Problem &p, const Data &d) {
    std::vector<std::string> texts;
    right = run(device, p, d, {}, &texts);
    ASSERT_EQ(right.failure, "");
    ASSERT_TRUE(right.findings.empty()) << right.findings[0].toString();
    ASSERT_EQ(texts.size(), 1u);
    ptx = texts[0];
  }

  Ran right;
  std::string ptx;
  std::optional<Heads> heads; ///< the tiles of a call with so many, if not the problem's
  std::optional<Tiling> tiling;
  static bool same(const std::vector<double> &a, const std::vector<double> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  }

  const TemporaryDirectory cache;
  std::mt19937_64 random{43};
};

/// The first line, from 1, that has `what`; 0: none.
unsigned lineOf(const std::string &ptx, std::string_view what) {
  const std::size_t at = ptx.find(what);
  return at == std::string::npos
             ? 0
             : 1 + static_cast<unsigned>(std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string lineAt(const std::string &ptx, unsigned line) {
  std::istringstream lines(ptx);
  std::string out;
  while (line-- && std::getline(lines, out)) {
  }
  return out;
}

/// A bug that attention once had elsewhere: the rows of o go through shared memory, and the barrier before they are
/// read there is missing.  On sm_90a warps read the rows that they have stored: there the barrier says that the other
/// warpgroup has read the keys that lay in their place.
TEST_F(AttentionMutants, TheRaceOfTheEpilogueIsFound) {
  Problem p;
  p.lengthsQ = {33, 0, 70}, p.lengthsK = {90, 20, 64}, p.dim = p.dimV = 64, p.heads = 2, p.causal = true;
  for (const char *device : {"emulator:sm_80", "emulator:sm_90a"}) {
    SCOPED_TRACE(device);
    if (std::string_view(device).ends_with("90a")) {
      p = with(130, 300);
      tiling = Tiling{.blockM = 128, .blockN = 128, .warps = 8};
    }
    const Data d = randomData(p, random);
    ASSERT_NO_FATAL_FAILURE(runRight(device, p, d));
    // The last barrier of warps of the text.
    const Mutant *barrier = nullptr;
    const std::vector<Mutant> mutants = mutantsOf(ptx);
    for (const Mutant &m : mutants)
      if (m.kind == "drop-barrier" && (!barrier || m.line > barrier->line) &&
          lineAt(ptx, m.line).find("bar.warp") == std::string::npos)
        barrier = &m;
    ASSERT_TRUE(barrier);
    ASSERT_LT(barrier->line, lineOf(ptx, "st.global")) << "it is not before the outputs are stored";
    const Ran wrong = run(device, p, d, {{ptx, edited(ptx, barrier->change)}});
    const auto race = std::find_if(wrong.findings.begin(), wrong.findings.end(),
                                   [](const Finding &f) { return f.id == "race.shared"; });
    ASSERT_NE(race, wrong.findings.end()) << "nobody noticed that line " << barrier->line << " is missing";
    // Both accesses, by the line that stores the rows.
    ASSERT_TRUE(race->other);
    EXPECT_NE(race->location.find("Attention.cpp:"), std::string::npos) << race->toString();
    EXPECT_NE(race->other->location.find("Attention.cpp:"), std::string::npos) << race->toString();
  }
}

/// First and last line, from 1, of what a branch back repeats.
std::vector<std::pair<unsigned, unsigned>> loopsOf(const std::string &ptx) {
  std::map<std::string, unsigned> labels;
  std::vector<std::pair<unsigned, unsigned>> out;
  std::istringstream lines(ptx);
  unsigned number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("$L"))
      labels.emplace(line.substr(0, line.find(':')), number);
    else if (const std::size_t at = line.find("$L"); at != std::string::npos && line.find("bra") < at)
      if (const auto label = labels.find(line.substr(at, line.find(';') - at)); label != labels.end())
        out.emplace_back(label->second, number);
  }
  return out;
}

/// Not where warps only come together again, nor where products follow whose registers nobody wrote since the last
/// fence.  Outside of loops more is without effect: rings begin empty, so the first waits for a free slot wait for
/// nothing, the last arrivals have nobody who waits, and a fence has no store before it.
bool harmfulIn(const Mutant &m) {
  return !m.instruction.starts_with("bar.warp.sync") && !m.instruction.starts_with("wgmma.fence");
}

/// Five blocks of keys, so that each slot is filled again.
TEST_F(AttentionMutants, OfPipelinesAndTurnsAreFound) {
  Problem p;
  p.queries = 128, p.keys = 640, p.dim = p.dimV = 128, p.heads = p.keyHeads = 1;
  heads = Heads::Many; // two warpgroups, and a warp that copies
  const Data d = randomData(p, random);
  const std::string device = "emulator:sm_90a";
  ASSERT_NO_FATAL_FAILURE(runRight(device, p, d));
  for (const char *part : {"cp.async.bulk.tensor", "wgmma", "mbarrier", "setmaxnreg"})
    EXPECT_NE(ptx.find(part), std::string::npos) << part;
  const std::set<std::string_view> kinds = {"drop-barrier", "drop-wait",   "drop-commit", "drop-fence",
                                            "drop-arrive",  "weaken-wait", "flip-parity", "change-expect"};
  const std::vector<std::pair<unsigned, unsigned>> loops = loopsOf(ptx);
  ASSERT_GE(loops.size(), 2u) << "one of the warp that copies, one of those that compute";
  unsigned turn = 0;
  struct Count {
    unsigned made = 0, found = 0;
  };
  std::map<std::string, Count> counts;
  for (const Mutant &m : mutantsOf(ptx)) {
    if (!kinds.count(m.kind) || (counts.count(m.kind) && turn++ % pick(6u, 1u)))
      continue;
    Count &count = counts[m.kind];
    ++count.made;
    const auto noticed = [&](const std::vector<Edit> &edits) {
      const Ran wrong = run(device, p, d, {{ptx, edited(ptx, edits)}});
      return !wrong.failure.empty() || !wrong.findings.empty() || !same(wrong.results.o, right.results.o) ||
             !same(wrong.results.lse, right.results.lse);
    };
    if (noticed(m.change)) {
      ++count.found;
      continue;
    }
    const bool inLoop = std::any_of(loops.begin(), loops.end(),
                                    [&](const auto &loop) { return m.line > loop.first && m.line < loop.second; });
    if (inLoop && harmfulIn(m) && noticed(m.trap))
      ADD_FAILURE() << "nobody noticed: " << m.kind << " " << m.number << " at " << m.location << ", PTX line "
                    << m.line << ": " << m.instruction;
  }
  for (const auto &[kind, count] : counts)
    std::cout << kind << ": " << count.found << " of " << count.made << " noticed\n";
  for (const std::string_view kind : {"drop-wait", "drop-arrive", "flip-parity", "change-expect", "weaken-wait"}) {
    const Count count = counts[std::string(kind)];
    EXPECT_GT(count.found, 0u) << kind;
    EXPECT_GE(2 * count.found, count.made) << kind;
  }
}

} // namespace
} // namespace kiln::test
