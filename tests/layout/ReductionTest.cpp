// Reductions and scans by value: the steps of the plan are executed as they are written, on random data, for random
// layouts; registers that the plan does not hold are poisoned on the way.
#include "compiler/layout/Reduction.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/layout/PlanOracle.h"
#include "tests/support/TestTier.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

/// Register, lane, warp and block of a place, and back.
struct Place {
  unsigned reg, lane, outer; ///< outer = warp | block
};
Place placeOf(unsigned h, unsigned registerBits) {
  return {h & ((1u << registerBits) - 1), h >> registerBits & 31, h >> registerBits >> 5};
}
unsigned indexOf(Place p, unsigned registerBits) {
  return p.reg | (p.lane | p.outer << 5) << registerBits;
}

/// What every place of `destination` holds after the plan, given the values of all places of `source`.
template <typename T>
std::vector<T> moved(const PartialExchange &exchange, const std::vector<T> &values, std::string &error) {
  auto run = kiln::test::runPlan(exchange.plan, exchange.source, exchange.destination);
  error = run.error;
  std::vector<T> out;
  for (std::uint32_t from : run.places)
    out.push_back(values[from]);
  return out;
}

template <typename T, typename Op>
std::vector<T> runReduction(const ReductionPlan &plan, const LinearLayout &layout, std::vector<T> x, T poison, Op op) {
  unsigned registerBits = layout.bits(InDim::Register), threads = static_cast<unsigned>(x.size()) >> registerBits;
  for (Mask q : plan.registerSteps) {
    auto old = x;
    for (unsigned h = 0; h < x.size(); ++h)
      x[h] = op(old[h], old[h ^ q]);
  }
  for (unsigned h = 0; h < x.size(); ++h)
    if (placeOf(h, registerBits).reg & ~plan.heldRegisters)
      x[h] = poison;
  for (const LaneStep &s : plan.laneSteps) {
    auto old = x;
    for (unsigned h = 0; h < x.size(); ++h)
      if (!(placeOf(h, registerBits).reg & ~plan.heldRegisters))
        x[h] = op(old[h], old[h ^ (s.registerXor | s.laneXor << registerBits)]);
  }
  auto gather = [&](const std::vector<Mask> &columns, unsigned bits) {
    std::vector<T> out;
    for (unsigned t = 0; t < threads; ++t)
      for (Mask r = 0; r < 1u << bits; ++r)
        out.push_back(x[t << registerBits | applyColumns(columns, r)]);
    return out;
  };
  unsigned resultBits = plan.result.bits(InDim::Register);
  if (!plan.exchange)
    return gather(plan.resultRegister, resultBits);
  std::string error;
  auto y = moved(*plan.exchange, gather(plan.partialRegister, plan.exchange->source.bits(InDim::Register)), error);
  EXPECT_EQ(error, "");
  for (unsigned i = 0; i < plan.exchange->numberBits; ++i) {
    std::vector<T> half;
    for (std::size_t h = 0; h + 1 < y.size(); h += 2)
      half.push_back(op(y[h], y[h + 1]));
    y = half;
  }
  return y;
}

LinearLayout randomLayout(Random &random, int i) {
  if (i % 2)
    return randomPair(random, 9).first;
  return unwrap(lower(randomEncoding(random, random.in(1, 4)), {1 << random.in(0, 5), 1 << random.in(0, 6)}));
}

} // namespace

TEST(Reduction, SumsAndBitEqualCopies) {
  Random random(3);
  const Target &target = **findTarget("sm_90a");
  unsigned exchanged = 0, shuffled = 0;
  for (int i = 0; i < kiln::test::pick(200, 3000); ++i) {
    LinearLayout layout = randomLayout(random, i);
    unsigned axis = static_cast<unsigned>(random.in(0, 1));
    SCOPED_TRACE(layout.text() + " axis " + std::to_string(axis));
    auto plan = planReduction(layout, axis, 32, target);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    exchanged += plan->exchange.has_value();
    shuffled += !plan->laneSteps.empty();
    EXPECT_EQ(plan->result, unwrap(layout.slice(axis)));
    EXPECT_EQ(plan->shuffles, plan->laneSteps.size() << std::popcount(plan->heldRegisters));

    // Reference: sums along the axis, in int64 and in double.
    std::vector<std::int64_t> integers(layout.numElements());
    std::vector<float> floats(layout.numElements());
    std::vector<std::int64_t> wantInt(plan->result.numElements());
    std::vector<double> wantFloat(plan->result.numElements());
    for (std::uint32_t t = 0; t < layout.numElements(); ++t) {
      integers[t] = static_cast<std::int64_t>(random.word() & 0xfffff);
      floats[t] = static_cast<float>(static_cast<double>(random.word() >> 11) * 0x1p-52 - 1.0);
      Coords at = layout.coords(t), left;
      for (unsigned d = 0; d < at.size(); ++d)
        if (d != axis)
          left.push_back(at[d]);
      wantInt[plan->result.flat(left)] += integers[t];
      wantFloat[plan->result.flat(left)] += floats[t];
    }
    std::vector<std::int64_t> x;
    std::vector<float> y;
    for (std::uint32_t t : kiln::test::elementTable(layout)) {
      x.push_back(integers[t]);
      y.push_back(floats[t]);
    }
    auto gotInt = runReduction(*plan, layout, x, std::int64_t(1) << 60, [](auto a, auto b) { return a + b; });
    auto gotFloat =
        runReduction(*plan, layout, y, std::numeric_limits<float>::quiet_NaN(), [](float a, float b) { return a + b; });
    auto where = kiln::test::elementTable(plan->result);
    ASSERT_EQ(gotInt.size(), where.size());
    ASSERT_EQ(gotFloat.size(), where.size());
    std::vector<std::optional<std::uint32_t>> bits(plan->result.numElements());
    for (std::size_t h = 0; h < where.size(); ++h) {
      ASSERT_EQ(gotInt[h], wantInt[where[h]]);
      ASSERT_NEAR(gotFloat[h], wantFloat[where[h]], 1e-4);
      auto raw = std::bit_cast<std::uint32_t>(gotFloat[h]);
      ASSERT_EQ(bits[where[h]].value_or(raw), raw) << "copies differ";
      bits[where[h]] = raw;
    }
  }
  EXPECT_GT(exchanged, 20u);
  EXPECT_GT(shuffled, 20u);
}

TEST(Reduction, WholeWarpIsRecognised) {
  Blocked rows{.sizePerThread = {1, 4}, .threadsPerWarp = {1, 32}, .warpsPerCTA = {4, 1}, .order = {1, 0}};
  auto plan = planReduction(unwrap(lower(rows, {16, 128})), 1, 32, **findTarget("sm_80"));
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->wholeWarp);
  EXPECT_EQ(plan->laneSteps.size(), 5u);
  EXPECT_FALSE(plan->exchange);
  rows.threadsPerWarp = {2, 16};
  plan = planReduction(unwrap(lower(rows, {16, 128})), 1, 64, **findTarget("sm_80"));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->wholeWarp);
  EXPECT_EQ(plan->shuffles, 4u * 2u * 2u); // four steps, two held registers (rows 8 apart), two words
}

namespace {

/// Composition of x -> a x + b modulo a prime: associative, not commutative.
struct Affine {
  std::int64_t a = 0, b = 0;
  bool operator==(const Affine &) const = default;
};
constexpr std::int64_t prime = 10007;
Affine compose(Affine x, Affine y) {
  return {x.a * y.a % prime, (x.b * y.a + y.b) % prime};
}

std::vector<Affine> runScan(const ScanPlan &plan, const LinearLayout &layout, std::vector<Affine> x, bool reverse) {
  unsigned registerBits = layout.bits(InDim::Register);
  auto at = [&](unsigned low, unsigned value, unsigned bit) {
    return reverse ? (value | bit) & ~low : (value & ~bit) | low;
  };
  auto combine = [&](Affine total, Affine own) { return reverse ? compose(own, total) : compose(total, own); };
  for (const ScanStep &s : plan.steps) {
    auto old = x;
    unsigned bit = 1u << s.bit;
    bool inRegister = s.dim == InDim::Register;
    EXPECT_TRUE(s.kind == ScanKind::Shuffle || (inRegister && !s.lowLanes));
    for (unsigned h = 0; h < x.size(); ++h) {
      Place p = placeOf(h, registerBits);
      if (bool(((inRegister ? p.reg : p.lane) & bit)) == reverse)
        continue;
      Place from{at(s.lowRegisters, p.reg, inRegister ? bit : 0), at(s.lowLanes, p.lane, inRegister ? 0 : bit),
                 p.outer};
      x[h] = combine(old[indexOf(from, registerBits)], old[h]);
    }
  }
  if (!plan.totals)
    return x;
  std::vector<Affine> totals;
  unsigned threads = static_cast<unsigned>(x.size()) >> registerBits;
  for (unsigned t = 0; t < threads; ++t)
    for (Mask r = 0; r < plan.totals->source.size(InDim::Register); ++r) {
      Place from{at(plan.lowRegisters, applyColumns(plan.totalRegister, r), 0), at(plan.lowLanes, t & 31, 0), t >> 5};
      totals.push_back(x[indexOf(from, registerBits)]);
    }
  std::string error;
  totals = moved(*plan.totals, totals, error);
  EXPECT_EQ(error, "");
  unsigned perThread = plan.totals->destination.size(InDim::Register), numbers = 1u << plan.totals->numberBits;
  unsigned warpBits = layout.bits(InDim::Warp);
  for (unsigned h = 0; h < x.size(); ++h) {
    Place p = placeOf(h, registerBits);
    unsigned own = applyColumns(plan.number[0], p.reg) ^ applyColumns(plan.number[1], p.lane) ^
                   applyColumns(plan.number[2], p.outer & ((1u << warpBits) - 1)) ^
                   applyColumns(plan.number[3], p.outer >> warpBits);
    const Affine *mine = &totals[(h >> registerBits) * perThread + applyColumns(plan.totalsOf, p.reg)];
    if (reverse)
      for (unsigned k = own + 1; k < numbers; ++k) // nearest first: own o next o ..
        x[h] = compose(x[h], mine[k]);
    else
      for (unsigned k = own; k-- > 0;)
        x[h] = compose(mine[k], x[h]);
  }
  return x;
}

} // namespace

TEST(Scan, NonCommutativeBothDirections) {
  Random random(5);
  const Target &target = **findTarget("sm_90a");
  unsigned exchanged = 0, inWarp = 0, refused = 0;
  for (int i = 0; i < kiln::test::pick(300, 3000); ++i) {
    LinearLayout layout = randomLayout(random, i);
    unsigned axis = static_cast<unsigned>(random.in(0, 1));
    SCOPED_TRACE(layout.text() + " axis " + std::to_string(axis));
    auto plan = planScan(layout, axis, 32, target);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    EXPECT_EQ(plan->has_value(), layout.isPermutation());
    if (!plan->has_value()) {
      ++refused;
      continue;
    }
    ((*plan)->totals ? exchanged : inWarp)++;
    std::vector<Affine> data(layout.numElements());
    for (Affine &v : data)
      v = {static_cast<std::int64_t>(random.word() % prime), static_cast<std::int64_t>(random.word() % prime)};
    auto where = kiln::test::elementTable(layout);
    unsigned low = layout.bitPosition(axis), extent = layout.shape(axis);
    for (bool reverse : {false, true}) {
      std::vector<Affine> want = data; // element by element along the axis
      for (unsigned t = 0; t < data.size(); ++t) {
        unsigned step = reverse ? extent - 1 - (t >> low & (extent - 1)) : t >> low & (extent - 1);
        unsigned from = reverse ? (t | (extent - 1) << low) : (t & ~((extent - 1) << low));
        Affine sum = data[from];
        for (unsigned k = 1; k <= step; ++k)
          sum = reverse ? compose(data[from - (k << low)], sum) : compose(sum, data[from + (k << low)]);
        want[t] = sum;
      }
      std::vector<Affine> x;
      for (std::uint32_t t : where)
        x.push_back(data[t]);
      auto got = runScan(**plan, layout, x, reverse);
      for (std::size_t h = 0; h < where.size(); ++h)
        ASSERT_EQ(got[h], want[where[h]]) << "place " << h << (reverse ? " reverse" : " forward");
    }
  }
  EXPECT_GT(exchanged, 20u);
  EXPECT_GT(inWarp, 20u);
  EXPECT_GT(refused, 5u);
}
