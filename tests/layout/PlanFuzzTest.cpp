// Random conversions: every plan that the planner makes, chosen or not, is executed and its claims are checked.
// Property numbers are those of the layouts specification, section 6.2.
#include "compiler/layout/Planner.h"
#include "support/Text.h"
#include "tests/layout/FuzzTally.h"
#include "tests/layout/OracleChecks.h"
#include "tests/layout/PlanOracle.h"
#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

namespace kiln::test {
namespace {

using namespace kiln::layout;

std::string describe(const LayoutPair &pair, unsigned bits, const Target &target, std::uint64_t scratch) {
  return format("%s, %u bits, %s, %llu bytes of scratch, shape %s\n  source      %s\n  destination %s",
                pair.kind.c_str(), bits, std::string(target.name).c_str(), (unsigned long long)scratch,
                shapeText(pair.source.shape()).c_str(), pair.source.text().c_str(), pair.destination.text().c_str());
}

std::string formsOf(const ConversionPlan &plan) {
  if (plan.strategy != Strategy::Shared)
    return {};
  return format("%s / %s", std::string(accessFormName(plan.shared.store.form)).c_str(),
                std::string(accessFormName(plan.shared.load.form)).c_str());
}

/// Property 7: on each side the conflicts are 2^max(0, dim A - b), the least for the chosen low bits.
std::string checkMultiplicity(const ConversionPlan &plan) {
  const SharedPlan &s = plan.shared;
  const unsigned logBytes = static_cast<unsigned>(std::countr_zero(plan.storageBytes)), n = s.regionBits;
  auto length = [&](const Access &a) {
    return static_cast<unsigned>(a.vector.size()) + (isTrans(a.form) ? 3 : isMatrix(a.form) ? 2 : 0);
  };
  const unsigned subWord = logBytes < 2 ? 2 - logBytes : 0;
  const unsigned k = std::max(std::max(length(s.store), length(s.load)), std::min(subWord, n));
  const unsigned u = std::min(subWord, k);
  Columns g, low;
  for (unsigned i = 0; i < k; ++i) {
    g.push_back(s.offsetBasis[i]);
    low.push_back(s.offsetRows[i]);
  }
  const unsigned bankBits = std::min(7 - logBytes > k ? 7 - logBytes - k : 0, n - k);
  for (bool store : {true, false}) {
    const Access &a = store ? s.store : s.load;
    const std::vector<Mask> *x = store ? s.source : s.destination;
    auto along = [&](Mask direction) {
      BitVector v = 0;
      for (unsigned i : bitsOf(direction))
        v ^= x[0][i];
      return v;
    };
    Columns foot;
    for (unsigned i = 0; i < length(a); ++i)
      foot.push_back(g[i]);
    for (unsigned i = 0; i < u; ++i)
      foot.push_back(g[i]);
    unsigned first = 0, last = a.bytes == 16 ? 3 : a.bytes == 8 ? 4 : 5;
    if (isMatrix(a.form)) {
      first = isTrans(a.form) ? 0 : 2;
      last = isTrans(a.form) ? 2 : 5;
      if (isTrans(a.form))
        foot.push_back(along(a.halves));
    }
    for (unsigned j = first; j < last; ++j)
      foot.push_back(x[1][j]);
    Columns upper;
    for (unsigned i = u; i < k; ++i)
      upper.push_back(low[i]);
    Span projected;
    for (BitVector v : whereZero(foot, upper))
      projected.add(v ^ apply(g, coordsOf(low, v)));
    unsigned excess = projected.dim() > bankBits ? projected.dim() - bankBits : 0;
    if (a.wavefronts != a.ideal << excess)
      return format("%s takes %u wavefronts, ideal %u, the best for these low bits is %u",
                    std::string(accessFormName(a.form)).c_str(), a.wavefronts, a.ideal, a.ideal << excess);
  }
  return {};
}

class Fuzzer {
public:
  explicit Fuzzer(std::uint64_t seed) : random(seed) {}

  FuzzTally tally;
  std::map<std::string, unsigned> seen;

  void conversion(const LayoutPair &pair, unsigned bits, const Target &target, std::uint64_t scratch);
  void steered();
  void large();
  unsigned failures = 0;
  Random random;

private:
  void fail(const std::string &why, const LayoutPair &pair, unsigned bits, const Target &target,
            std::uint64_t scratch) {
    ++failures;
    ADD_FAILURE() << why << "\n  " << describe(pair, bits, target, scratch);
  }
  bool execute(const ConversionPlan &plan, const LayoutPair &pair, const Target &target, std::uint64_t scratch) {
    OracleRun run = runPlan(plan, pair.source, pair.destination, {.seed = random.bits(), .target = &target});
    if (!run.error.empty()) {
      fail(std::string(strategyName(plan.strategy)) + " " + formsOf(plan) + ": " + run.error, pair, plan.elementBits,
           target, scratch);
      return false;
    }
    tally.add(plan, target);
    if (plan.passes > 1)
      ++seen["in passes"];
    if (plan.conflicts)
      ++seen["with conflicts"];
    if (plan.strategy == Strategy::Shared || plan.strategy == Strategy::SharedScalar)
      ++seen["scope " + std::string(scopeName(plan.shared.scope))];
    if (plan.strategy == Strategy::Shared)
      ++seen[formsOf(plan)];
    if (plan.strategy == Strategy::WarpShuffle) {
      ++seen[format("mixed swaps %u", plan.shuffle.mixedSwaps)];
      ++seen[format("extra round bits %u", plan.shuffle.extraRoundBits)];
    }
    return true;
  }
};

void Fuzzer::conversion(const LayoutPair &pair, unsigned bits, const Target &target, std::uint64_t scratch) {
  auto bad = [&](const std::string &why) { fail(why, pair, bits, target, scratch); };
  auto chosen = planConversion(pair.source, pair.destination, bits, target, scratch);
  if (!chosen.ok())
    return bad("no plan: " + chosen.status().toString());
  if (!execute(*chosen, pair, target, scratch)) // property 1; 5 inside
    return;
  ++seen["class " + std::string(className(chosen->cls))];

  // Property 3.
  unsigned level = bruteForceLevel(pair.source, pair.destination);
  const unsigned levelOf[] = {1, 1, 1, 2, 3, 4};
  if (levelOf[static_cast<unsigned>(chosen->cls)] != level)
    return bad(format("class %s, brute force finds level %u", std::string(className(chosen->cls)).c_str(), level));
  if (level == 1 && (chosen->cls == ConversionClass::Thread) == oneRenameServesAll(pair.source, pair.destination))
    return bad("class thread against one renaming for all threads");

  // Property 2, on a sample of everything else that is legal, with another limit.
  std::uint64_t limit = random.chance(50) ? scratch : std::uint64_t(512) << random.below(4);
  auto every = planEveryConversion(pair.source, pair.destination, bits, target, limit);
  if (!every.ok())
    return bad("planEveryConversion: " + every.status().toString());
  double least = -1;
  std::vector<const ConversionPlan *> plain, matrix, other;
  for (const ConversionPlan &p : *every) {
    if (p.strategy != Strategy::SharedScalar || least < 0)
      least = least < 0 ? p.cost : std::min(least, p.cost);
    if (p.scratchBytes > limit)
      bad(format("%llu bytes of scratch, the limit is %llu", (unsigned long long)p.scratchBytes,
                 (unsigned long long)limit));
    if (p.strategy != Strategy::Shared) {
      other.push_back(&p);
      continue;
    }
    bool matrices = isMatrix(p.shared.store.form) || isMatrix(p.shared.load.form);
    (matrices ? matrix : plain).push_back(&p);
    if (!matrices && p.shared.store.bytes == p.shared.load.bytes && p.conflicts) // property 6
      bad(format("equal widths of %u bytes have %llu conflicts", p.shared.load.bytes, (unsigned long long)p.conflicts));
    if (std::string why = checkMultiplicity(p); !why.empty()) // property 7
      bad(why);
  }
  auto atLimit = limit == scratch ? chosen : planConversion(pair.source, pair.destination, bits, target, limit);
  if (!atLimit.ok() || every->empty())
    bad("a scratch limit leaves no plan: " + atLimit.status().toString());
  else if (atLimit->cost != least)
    bad(format("the chosen plan costs %g, the cheapest legal one %g", atLimit->cost, least));
  random.shuffle(plain);
  random.shuffle(matrix);
  plain.resize(std::min<std::size_t>(plain.size(), 2));
  matrix.resize(std::min<std::size_t>(matrix.size(), 2));
  for (const auto *list : {&plain, &matrix, &other})
    for (const ConversionPlan *p : *list)
      execute(*p, pair, target, limit);

  // Property 8.
  auto less = planConversion(pair.source, pair.destination, bits, target, 1024);
  if (!less.ok())
    return bad("no plan within 1 KiB: " + less.status().toString());
  if (less->cost < chosen->cost || less->scratchBytes > 1024)
    return bad(format("1 KiB of scratch: cost %g and %llu bytes, with more scratch %g", less->cost,
                      (unsigned long long)less->scratchBytes, chosen->cost));
  if (chosen->scratchBytes > 1024)
    execute(*less, pair, target, 1024);

  // Property 4.  With copies among the registers, which one is read is the planner's choice: a free renaming.
  auto nothing = planConversion(pair.source, pair.source, bits, target, scratch);
  bool copies = !(pair.source.withoutRegisterCopies() == pair.source);
  if (!nothing.ok() || nothing->cost != 0 || (nothing->strategy != Strategy::None && !copies))
    bad("source to source is not none");
}

/// One plan for the emptiest cell.
void Fuzzer::steered() {
  FuzzTally::Cell cell = tally.emptiest();
  Strategy strategy = Strategy(cell.strategy);
  constexpr PairKind kinds[] = {PairKind::Same,   PairKind::Renamed, PairKind::Fragment,
                                PairKind::InWarp, PairKind::Any,     PairKind::Any};
  LayoutPair pair = randomPair(random, kinds[cell.strategy]);
  bool clusters = pair.source.bits(InDim::Block) > 0;
  if (clusters && cell.target != static_cast<unsigned>(TargetClass::Clusters))
    return;
  const Target *target = &randomTarget(random, clusters);
  while (static_cast<unsigned>(classOf(*target)) != cell.target)
    target = &randomTarget(random, clusters);
  unsigned bits = cell.width == 0 && random.chance(50) ? 4 : tallyWidths[cell.width];
  std::uint64_t scratch = randomScratch(random);
  auto plan = planConversion(pair.source, pair.destination, bits, *target, PlanOptions{scratch, strategy});
  if (plan.ok())
    execute(*plan, pair, *target, scratch);
  else if (strategy == Strategy::SharedScalar)
    fail("no scalar plan: " + plan.status().toString(), pair, bits, *target, scratch);
  if (!plan.ok() || strategy != Strategy::MmaToMma)
    return;
  // The same target without the capability: another strategy moves the same data, and the refusal is named.
  Target lacking = *target;
  lacking.capabilities.erase(Capability::MmaToMma);
  auto next = planConversion(pair.source, pair.destination, bits, lacking, scratch);
  if (!next.ok() || next->strategy == Strategy::MmaToMma)
    return fail("mma_to_mma without the capability", pair, bits, lacking, scratch);
  execute(*next, pair, lacking, scratch);
  bool named = next->cost == 0;
  for (const Rejected &r : next->rejected)
    named |= r.strategy == "mma_to_mma" && r.reason.find("lacks the capability") != std::string::npos;
  if (!named)
    fail("the refusal of mma_to_mma is not named", pair, bits, lacking, scratch);
}

/// The chosen plan of a tensor that needs more than the default scratch.
void Fuzzer::large() {
  LayoutPair pair = randomPair(random, random.chance(50) ? PairKind::Free : PairKind::Any, 14);
  unsigned bits = randomWidth(random);
  const Target &target = randomTarget(random, pair.source.bits(InDim::Block) > 0);
  std::uint64_t scratch = randomScratch(random);
  auto plan = planConversion(pair.source, pair.destination, bits, target, scratch);
  if (!plan.ok())
    return fail("no plan: " + plan.status().toString(), pair, bits, target, scratch);
  execute(*plan, pair, target, scratch);
}

TEST(PlanFuzz, RandomConversions) {
  const unsigned cases = pick(1500u, 50000u);
  Fuzzer fuzzer(20261121);
  Random &random = fuzzer.random;
  for (unsigned i = 0; i < cases && fuzzer.failures < 5; ++i) {
    LayoutPair pair = randomPair(random);
    unsigned bits = randomWidth(random);
    const Target &target = randomTarget(random, pair.source.bits(InDim::Block) > 0);
    fuzzer.conversion(pair, bits, target, randomScratch(random));
    fuzzer.steered();
  }
  std::printf("%s", fuzzer.tally.table().c_str());
  for (const auto &[name, count] : fuzzer.seen)
    std::printf("  %-34s%u\n", name.c_str(), count);
  const unsigned wanted = pick(5u, 200u);
  FuzzTally::forEach([&](FuzzTally::Cell c) {
    EXPECT_GE(fuzzer.tally.at(c), wanted)
        << strategyName(Strategy(c.strategy)) << ", target class " << c.target << ", width " << tallyWidths[c.width];
  });
}

TEST(PlanFuzz, LargerTensors) {
  Fuzzer fuzzer(14);
  for (unsigned i = 0; i < pick(150u, 3000u) && fuzzer.failures < 5; ++i)
    fuzzer.large();
  EXPECT_GT(fuzzer.seen["in passes"], pick(5u, 100u));
}

} // namespace
} // namespace kiln::test
