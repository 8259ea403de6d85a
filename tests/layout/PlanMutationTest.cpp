// The test of the oracle: it must notice broken plans.
//
// Every single change of a plan's steps and numbers is a mutant.  The oracle should reject it, unless the mutant is
// equivalent.  A mutant that changes a step is equivalent only if the oracle accepts it with all declared counts, and
//   same instructions  every instruction, address, lane and register is as before: the changed field has no effect
//                      here (an xor bit that no constant has, the offset of a register that no direction contains), or
//   same data          every destination register still receives the very same source register, though some step that
//                      no destination depends on differs (values of lanes that nobody reads), or
//   another copy       some destination register receives another source register that holds, by the source layout,
//                      the same element: replicated copies are equal at all times.
// A mutant that changes a declared number is never equivalent.  Mutants whose value is what it was are not counted.
//
// Many mutants contradict a number elsewhere in the plan and are rejected for that.  So every mutant is also run with
// all comparisons of numbers and descriptions switched off ("by steps"): then only the data, the races and the bank
// simulation can tell.  A step that is never rejected that way would be one that the executor does not look at.
#include "compiler/layout/Planner.h"
#include "support/Text.h"
#include "tests/layout/PlanMutations.h"
#include "tests/layout/PlanOracle.h"
#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace kiln::test {
namespace {

using namespace kiln::layout;

struct Row {
  unsigned mutants = 0, rejected = 0, bySteps = 0, sameInstructions = 0, sameData = 0, anotherCopy = 0, survived = 0;
  Row &operator+=(const Row &o) {
    mutants += o.mutants;
    rejected += o.rejected;
    bySteps += o.bySteps;
    sameInstructions += o.sameInstructions;
    sameData += o.sameData;
    anotherCopy += o.anotherCopy;
    survived += o.survived;
    return *this;
  }
};

class MutationRun {
public:
  MutationRun(unsigned perField) : perField(perField) {}
  std::map<std::string, Row> table;
  unsigned plans = 0;

  void plan(const ConversionPlan &plan, const LayoutPair &pair, Random &random);
  Row total() const {
    Row all;
    for (const auto &[field, row] : table)
      all += row;
    return all;
  }

private:
  unsigned perField; ///< mutants of one field of one plan, at most
};

void MutationRun::plan(const ConversionPlan &plan, const LayoutPair &pair, Random &random) {
  OracleRun before = runPlan(plan, pair.source, pair.destination);
  ASSERT_EQ(before.error, "") << pair.source.text() << "\n" << pair.destination.text();
  ++plans;
  std::vector<Mutation> mutations = allMutations(plan);
  random.shuffle(mutations);
  std::map<std::string, unsigned> taken;
  for (const Mutation &m : mutations) {
    if (taken[m.field]++ >= perField)
      continue;
    ConversionPlan mutant = plan;
    m.apply(mutant);
    Row &row = table[m.field];
    ++row.mutants;
    OracleRun after = runPlan(mutant, pair.source, pair.destination);
    row.bySteps += !runPlan(mutant, pair.source, pair.destination, {.stepsAlone = true}).error.empty();
    if (!after.error.empty())
      ++row.rejected;
    else if (m.declared)
      ++row.survived;
    else if (after.trace == before.trace && after.places == before.places)
      ++row.sameInstructions;
    else if (after.places == before.places)
      ++row.sameData;
    else
      ++row.anotherCopy; // runPlan compared the elements
  }
}

TEST(PlanMutation, OracleRejectsBrokenPlans) {
  Random random(77);
  MutationRun run(pick(3u, 6u));
  const unsigned wanted = pick(250u, 2500u);
  constexpr PairKind kinds[] = {PairKind::Renamed, PairKind::InWarp, PairKind::Fragment, PairKind::InWarp,
                                PairKind::Any,     PairKind::Free,   PairKind::Any};
  for (unsigned i = 0; run.plans < wanted; ++i) {
    LayoutPair pair = randomPair(random, kinds[i % std::size(kinds)], 9);
    const Target &target = randomTarget(random, pair.source.bits(InDim::Block) > 0);
    unsigned bits = randomWidth(random);
    auto every =
        planEveryConversion(pair.source, pair.destination, bits, target, random.chance(50) ? defaultScratchBytes : 256);
    ASSERT_TRUE(every.ok()) << every.status().toString();
    // One plan of each strategy, and one with a matrix access if there is one.
    random.shuffle(*every);
    std::map<int, bool> had;
    for (const ConversionPlan &plan : *every) {
      int what = static_cast<int>(plan.strategy);
      if (plan.strategy == Strategy::Shared && (isMatrix(plan.shared.store.form) || isMatrix(plan.shared.load.form)))
        what += 100;
      if (!had[what])
        run.plan(plan, pair, random);
      had[what] = true;
      if (HasFatalFailure())
        return;
    }
  }
  std::printf("  %-28s %8s %9s %9s %8s %8s %8s %8s\n", "field", "mutants", "rejected", "by steps", "same i.", "same d.",
              "copy", "survived");
  auto print = [](const std::string &name, const Row &r) {
    std::printf("  %-28s %8u %9u %9u %8u %8u %8u %8u\n", name.c_str(), r.mutants, r.rejected, r.bySteps,
                r.sameInstructions, r.sameData, r.anotherCopy, r.survived);
  };
  // Fields that describe, sum up or recommend; no step depends on them.
  const std::set<std::string> described = {
      "cost",           "shuffles",    "selects",    "permutes",         "wavefronts",
      "conflicts",      "barrier",     "regions",    "scratchBytes",     "source",
      "destination",    "offsetBasis", "offsetRows", "offsetRows: drop", "offsetRows: exchange",
      "extraRoundBits", "lanesTouched"};
  for (const auto &[field, row] : run.table) {
    print(field, row);
    EXPECT_GT(row.rejected, 0u) << "the oracle does not look at " << field;
    if (!described.count(field))
      EXPECT_GT(row.bySteps, 0u) << "the executor does not look at " << field;
  }
  Row all = run.total();
  print(format("all, %u plans", run.plans), all);
  unsigned harmful = all.mutants - all.sameInstructions - all.sameData - all.anotherCopy;
  std::printf("  %u of %u mutants that are not equivalent rejected: %.3f %%\n", all.rejected, harmful,
              100.0 * all.rejected / harmful);
  EXPECT_GE(all.rejected, 0.99 * harmful);
}

} // namespace
} // namespace kiln::test
