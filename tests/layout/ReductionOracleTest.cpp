// Property 15 for every width, target and scratch budget: reductions and scans run step by step on values that tell
// which elements they are made of, and how often, and (scans) in which order.  Broken plans must be noticed.
#include "compiler/layout/Reduction.h"
#include "support/Text.h"
#include "tests/layout/OracleAccess.h"
#include "tests/layout/PlanOracle.h"
#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

namespace kiln::test {
namespace {

using namespace kiln::layout;

/// The values of all threads, [thread][register]; a register that no step wrote is empty.
template <typename T> struct File {
  unsigned registerBits = 0;
  std::vector<std::optional<T>> values;
  std::optional<T> &at(std::size_t thread, std::uint32_t reg) { return values[(thread << registerBits) + reg]; }
  std::size_t threads() const { return values.size() >> registerBits; }
};

template <typename T, typename Op>
std::optional<T> both(const Op &op, const std::optional<T> &a, const std::optional<T> &b) {
  return a && b ? std::optional<T>(op(*a, *b)) : std::nullopt;
}

/// Moves values by a plan that the oracle has accepted.
template <typename T>
File<T> exchange(const PartialExchange &e, const File<T> &in, std::uint64_t seed, std::string &error) {
  OracleRun run = runPlan(e.plan, e.source, e.destination, {.seed = seed});
  error = run.error;
  File<T> out{e.destination.bits(InDim::Register), {}};
  for (std::uint32_t place : run.places)
    out.values.push_back(place < in.values.size() ? in.values[place] : std::nullopt);
  return out;
}

/// The result's registers, as the plan's steps make them.
template <typename T, typename Op>
File<T> reduce(const ReductionPlan &plan, const LinearLayout &layout, File<T> x, Op op, std::string &error) {
  const std::uint32_t registers = 1u << x.registerBits;
  for (Mask q : plan.registerSteps) {
    File<T> old = x;
    for (std::size_t t = 0; t < x.threads(); ++t)
      for (std::uint32_t r = 0; r < registers; ++r)
        x.at(t, r) = both(op, old.at(t, r), old.at(t, r ^ q));
  }
  for (std::size_t t = 0; t < x.threads(); ++t) // only held registers count from here on
    for (std::uint32_t r = 0; r < registers; ++r)
      if (r & ~plan.heldRegisters)
        x.at(t, r).reset();
  for (const LaneStep &s : plan.laneSteps) {
    File<T> old = x;
    for (std::size_t t = 0; t < x.threads(); ++t)
      for (std::uint32_t r = 0; r < registers; ++r)
        if (!(r & ~plan.heldRegisters))
          x.at(t, r) = both(op, old.at(t, r), old.at(t ^ s.laneXor, r ^ s.registerXor));
  }
  auto select = [&](const std::vector<Mask> &columns, unsigned bits) {
    File<T> out{bits, {}};
    for (std::size_t t = 0; t < x.threads(); ++t)
      for (std::uint32_t r = 0; r < 1u << bits; ++r)
        out.values.push_back(x.at(t, applyMask(columns, r)));
    return out;
  };
  if (!plan.exchange)
    return select(plan.resultRegister, plan.result.bits(InDim::Register));
  const PartialExchange &e = *plan.exchange;
  File<T> parts = exchange(e, select(plan.partialRegister, e.source.bits(InDim::Register)), 5, error);
  File<T> out{parts.registerBits - e.numberBits, {}};
  for (std::size_t first = 0; first < parts.values.size(); first += std::size_t(1) << e.numberBits) {
    std::vector<std::optional<T>> level(parts.values.begin() + static_cast<std::ptrdiff_t>(first),
                                        parts.values.begin() +
                                            static_cast<std::ptrdiff_t>(first + (1u << e.numberBits)));
    for (; level.size() > 1; level.resize(level.size() / 2))
      for (std::size_t i = 0; i < level.size() / 2; ++i)
        level[i] = both(op, level[2 * i], level[2 * i + 1]);
    out.values.push_back(level[0]);
  }
  return out;
}

/// Random 64-bit weights: a sum modulo 2^64 equals the wanted one only if every element came in exactly once.
std::string checkSums(const ReductionPlan &plan, const LinearLayout &layout, Random &random) {
  std::vector<std::uint64_t> weight(layout.numElements()), want(plan.result.numElements());
  std::vector<float> real(layout.numElements());
  const unsigned at = layout.bitPosition(plan.axis), width = layout.log2Shape(plan.axis);
  for (std::uint32_t t = 0; t < layout.numElements(); ++t) {
    weight[t] = random.bits();
    real[t] = std::ldexp(static_cast<float>(random.below(1u << 24)), static_cast<int>(random.below(20)) - 30);
    want[(t & ((1u << at) - 1)) | t >> (at + width) << at] += weight[t];
  }
  File<std::uint64_t> x{layout.bits(InDim::Register), {}};
  File<float> y{layout.bits(InDim::Register), {}};
  for (std::uint32_t t : elementTable(layout)) {
    x.values.push_back(weight[t]);
    y.values.push_back(real[t]);
  }
  std::string error;
  auto sums = reduce(plan, layout, x, [](auto a, auto b) { return a + b; }, error);
  auto floats = reduce(plan, layout, y, [](float a, float b) { return a + b; }, error);
  if (!error.empty())
    return error;
  std::vector<std::uint32_t> where = elementTable(plan.result);
  if (sums.values.size() != where.size())
    return "the result has the wrong number of registers";
  std::vector<std::optional<std::uint32_t>> seen(plan.result.numElements());
  for (std::size_t i = 0; i < where.size(); ++i) {
    if (!sums.values[i] || !floats.values[i])
      return format("place %zu of the result was never made", i);
    if (*sums.values[i] != want[where[i]])
      return format("place %zu of the result is not the sum", i);
    std::uint32_t bits = std::bit_cast<std::uint32_t>(*floats.values[i]);
    if (seen[where[i]].value_or(bits) != bits)
      return format("copies of element %u differ", where[i]);
    seen[where[i]] = bits;
  }
  return {};
}

LinearLayout randomLayout(Random &random, bool clusters) {
  for (;;) {
    LinearLayout layout = randomPair(random, random.chance(50) ? PairKind::Free : PairKind::InWarp, 9).source;
    if (clusters || layout.bits(InDim::Block) == 0)
      return layout;
  }
}

TEST(ReductionOracle, EveryElementExactlyOnce) {
  Random random(151);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(400u, 6000u); ++i) {
    const Target &target = randomTarget(random, false);
    LinearLayout layout = randomLayout(random, target.has(Capability::Clusters));
    unsigned axis = random.below(2), bits = randomWidth(random);
    std::uint64_t scratch = randomScratch(random);
    SCOPED_TRACE(format("axis %u of %s, %u bits, %s, %llu bytes of scratch", axis, layout.text().c_str(), bits,
                        std::string(target.name).c_str(), (unsigned long long)scratch));
    auto plan = planReduction(layout, axis, bits, target, scratch);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ASSERT_EQ(plan->result, *layout.slice(axis));
    ASSERT_EQ(checkSums(*plan, layout, random), "");
    if (plan->exchange) {
      ASSERT_LE(plan->exchange->plan.scratchBytes, scratch);
      ++seen["with exchange, " + std::string(strategyName(plan->exchange->plan.strategy))];
    }
    seen["with lane steps"] += !plan->laneSteps.empty();
    seen["with register steps"] += !plan->registerSteps.empty();

    // Broken plans.
    ReductionPlan broken = *plan;
    unsigned which = random.below(3);
    if (which == 0 && !broken.laneSteps.empty())
      broken.laneSteps.pop_back();
    else if (which == 1 && !broken.registerSteps.empty())
      broken.registerSteps.push_back(broken.registerSteps[0]); // the same values once more
    else if (which == 2 && !broken.laneSteps.empty())
      broken.laneSteps.push_back(broken.laneSteps[0]);
    else
      continue;
    ++seen["broken plans"];
    EXPECT_NE(checkSums(broken, layout, random), "") << "a broken plan was not noticed";
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-36s%u\n", name.c_str(), count);
  EXPECT_GT(seen["broken plans"], 50u);
}

/// A word over the elements, by its polynomial hash: equal only for equal sequences.
struct Word {
  std::uint64_t hash = 0, power = 1;
  bool operator==(const Word &) const = default;
  Word operator+(const Word &right) const { return {hash * right.power + right.hash, power * right.power}; }
};

std::string checkScan(const ScanPlan &plan, const LinearLayout &layout, bool reverse, std::uint64_t seed) {
  const unsigned at = layout.bitPosition(plan.axis), extent = layout.shape(plan.axis);
  auto letter = [](std::uint32_t t) { return Word{(t + 1) * 0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u}; };
  std::vector<std::uint32_t> held = elementTable(layout);
  File<Word> x{layout.bits(InDim::Register), {}};
  for (std::uint32_t t : held)
    x.values.push_back(letter(t));
  auto corner = [&](std::uint32_t value, Mask low, Mask bit) {
    return reverse ? (value | bit) & ~low : (value & ~bit) | low;
  };
  auto join = [&](const Word &far, const Word &own) { return reverse ? own + far : far + own; };
  for (const ScanStep &s : plan.steps) {
    File<Word> old = x;
    const bool inRegister = s.dim == InDim::Register;
    const Mask bit = Mask(1) << s.bit;
    if (s.kind == ScanKind::Register && (!inRegister || s.lowLanes))
      return "a register step needs another lane";
    for (std::size_t t = 0; t < x.threads(); ++t) {
      for (std::uint32_t r = 0; r < 1u << x.registerBits; ++r) {
        const std::uint32_t lane = t & 31, value = inRegister ? r : lane;
        if (((value & bit) != 0) == reverse)
          continue;
        std::uint32_t fromRegister = corner(r, s.lowRegisters, inRegister ? bit : 0);
        std::uint32_t fromLane = corner(lane, s.lowLanes, inRegister ? 0 : bit);
        x.at(t, r) = both(join, old.at((t & ~std::size_t(31)) | fromLane, fromRegister), old.at(t, r));
      }
    }
  }
  if (plan.totals) {
    const PartialExchange &e = *plan.totals;
    File<Word> totals{e.source.bits(InDim::Register), {}};
    for (std::size_t t = 0; t < x.threads(); ++t)
      for (std::uint32_t r = 0; r < 1u << totals.registerBits; ++r)
        totals.values.push_back(x.at((t & ~std::size_t(31)) | corner(t & 31, plan.lowLanes, 0),
                                     corner(applyMask(plan.totalRegister, r), plan.lowRegisters, 0)));
    std::string error;
    File<Word> all = exchange(e, totals, seed, error);
    if (!error.empty())
      return error;
    const unsigned warpBits = layout.bits(InDim::Warp);
    for (std::size_t t = 0; t < x.threads(); ++t) {
      for (std::uint32_t r = 0; r < 1u << x.registerBits; ++r) {
        const std::uint32_t own = applyMask(plan.number[0], r) ^ applyMask(plan.number[1], t & 31) ^
                                  applyMask(plan.number[2], (t >> 5) & ((1u << warpBits) - 1)) ^
                                  applyMask(plan.number[3], static_cast<std::uint32_t>(t >> 5 >> warpBits));
        const std::uint32_t first = applyMask(plan.totalsOf, r);
        for (std::uint32_t k = 1; k < 1u << e.numberBits; ++k) { // nearest first
          std::int64_t number = std::int64_t(own) + (reverse ? std::int64_t(k) : -std::int64_t(k));
          if (number >= 0 && number < std::int64_t(1) << e.numberBits)
            x.at(t, r) = both(join, all.at(t, first ^ static_cast<std::uint32_t>(number)), x.at(t, r));
        }
      }
    }
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::uint32_t mine = held[i] >> at & (extent - 1);
    Word want;
    for (std::uint32_t k = reverse ? mine : 0; k <= (reverse ? extent - 1 : mine); ++k)
      want = want + letter((held[i] & ~((extent - 1) << at)) | k << at);
    if (!x.values[i] || !(*x.values[i] == want))
      return format("place %zu does not hold the scan of element %u", i, held[i]);
  }
  return {};
}

TEST(ReductionOracle, ScansInOrder) {
  Random random(152);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(400u, 6000u); ++i) {
    const Target &target = randomTarget(random, false);
    LinearLayout layout = randomLayout(random, target.has(Capability::Clusters));
    unsigned axis = random.below(2), bits = randomWidth(random);
    std::uint64_t scratch = randomScratch(random);
    SCOPED_TRACE(format("axis %u of %s, %u bits, %s, %llu bytes of scratch", axis, layout.text().c_str(), bits,
                        std::string(target.name).c_str(), (unsigned long long)scratch));
    auto plan = planScan(layout, axis, bits, target, scratch);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ASSERT_EQ(plan->has_value(), layout.isPermutation());
    if (!plan->has_value())
      continue;
    for (bool reverse : {false, true})
      ASSERT_EQ(checkScan(**plan, layout, reverse, random.bits()), "") << (reverse ? "reverse" : "forward");
    seen["scans"] += 2;
    seen["with exchange"] += (*plan)->totals.has_value();
    if ((*plan)->steps.empty())
      continue;
    ScanPlan broken = **plan;
    broken.steps.pop_back();
    ++seen["broken plans"];
    EXPECT_NE(checkScan(broken, layout, false, 1), "") << "a broken plan was not noticed";
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-36s%u\n", name.c_str(), count);
  EXPECT_GT(seen["with exchange"], 20u);
  EXPECT_GT(seen["broken plans"], 50u);
}

} // namespace
} // namespace kiln::test
