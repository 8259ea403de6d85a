// Axis facts are true of every value: random expression trees, evaluated together with their facts.
#include "compiler/layout/AxisInfo.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <functional>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

/// An m x n integer tensor with its facts.
struct Value {
  AxisInfo facts;
  std::vector<std::int64_t> data;
};

struct Trees {
  Random &random;
  std::uint32_t m, n;
  std::vector<std::uint32_t> shape = {m, n};

  template <typename F> std::vector<std::int64_t> fill(F f) const {
    std::vector<std::int64_t> out;
    for (std::uint32_t i = 0; i < m; ++i)
      for (std::uint32_t j = 0; j < n; ++j)
        out.push_back(f(i, j));
    return out;
  }

  Value leaf() {
    switch (random.in(0, 3)) {
    case 0: {
      std::int64_t s = random.pick<std::int64_t>({0, 1, 4, 6, 16, 40, -8});
      return {AxisInfo::range(s, n).expand(0).broadcast(shape), fill([&](auto, auto j) { return s + j; })};
    }
    case 1: {
      std::int64_t s = random.pick<std::int64_t>({0, 2, 8, 12, -3});
      return {AxisInfo::range(s, m).expand(1).broadcast(shape), fill([&](auto i, auto) { return s + i; })};
    }
    default: {
      std::int64_t v = random.pick<std::int64_t>({0, 1, 3, 8, 16, 48, 1000});
      return {AxisInfo::splat(std::uint64_t(v), shape), fill([&](auto, auto) { return v; })};
    }
    }
  }

  Value combine(const Value &x, const Value &y, AxisInfo facts,
                const std::function<std::int64_t(std::int64_t, std::int64_t)> &op) {
    Value out{std::move(facts), {}};
    for (std::size_t i = 0; i < x.data.size(); ++i)
      out.data.push_back(op(x.data[i], y.data[i]));
    return out;
  }

  Value tree(int depth) {
    if (depth == 0)
      return leaf();
    Value x = tree(depth - 1), y = tree(depth - 1);
    switch (random.in(0, 6)) {
    case 0:
      return combine(x, y, x.facts * y.facts, [](auto a, auto b) { return a * b; });
    case 1:
      return combine(x, y, x.facts - y.facts, [](auto a, auto b) { return a - b; });
    case 2: {
      Value p = leaf(), q = leaf(), out{select(less(p.facts, q.facts), x.facts, y.facts), {}};
      for (std::size_t i = 0; i < x.data.size(); ++i)
        out.data.push_back(p.data[i] < q.data[i] ? x.data[i] : y.data[i]);
      return out;
    }
    case 3:
      return {meet(x.facts, y.facts), random.chance(0.5) ? x.data : y.data};
    case 4:
      return combine(x, y, anyOf(x.facts, y.facts), [](auto a, auto b) { return a ^ b << 3; });
    default:
      return combine(x, y, x.facts + y.facts, [](auto a, auto b) { return a + b; });
    }
  }

  /// Brute force: are the facts true of the data?
  ::testing::AssertionResult holds(const Value &value) const {
    auto at = [&](unsigned d, std::uint32_t line, std::uint32_t i) {
      return d == 0 ? value.data[std::size_t(i) * n + line] : value.data[std::size_t(line) * n + i];
    };
    for (unsigned d = 0; d < 2; ++d) {
      std::uint32_t extent = d == 0 ? m : n, lines = d == 0 ? n : m;
      for (std::uint32_t line = 0; line < lines; ++line)
        for (std::uint32_t i = 0; i < extent; ++i) {
          std::uint32_t cStart = i / value.facts.contiguity(d) * value.facts.contiguity(d);
          std::uint32_t kStart = i / value.facts.constancy(d) * value.facts.constancy(d);
          if (at(d, line, i) != at(d, line, cStart) + (i - cStart))
            return ::testing::AssertionFailure() << "contiguity, dim " << d << ": " << value.facts.text();
          if (at(d, line, i) != at(d, line, kStart))
            return ::testing::AssertionFailure() << "constancy, dim " << d << ": " << value.facts.text();
          if (at(d, line, cStart) % value.facts.divisibility(d))
            return ::testing::AssertionFailure() << "divisibility, dim " << d << ": " << value.facts.text();
        }
    }
    return ::testing::AssertionSuccess();
  }
};

} // namespace

TEST(AxisInfo, FactsHoldOnRandomTrees) {
  Random random(41);
  std::uint64_t useful = 0;
  for (int round = 0; round < kiln::test::pick(10000, 40000); ++round) {
    // Extents that are no powers of two too: blocks at the end are cut off.
    std::uint32_t m = random.chance(0.7) ? 1u << random.in(0, 4) : unsigned(random.in(1, 20));
    std::uint32_t n = random.chance(0.7) ? 1u << random.in(0, 5) : unsigned(random.in(1, 40));
    Trees trees{random, m, n};
    Value x = trees.tree(random.in(0, 3)), y = trees.tree(random.in(0, 2));
    EXPECT_TRUE(trees.holds(x));
    Value below{less(x.facts, y.facts), {}};
    for (std::size_t i = 0; i < x.data.size(); ++i)
      below.data.push_back(x.data[i] < y.data[i]);
    EXPECT_TRUE(trees.holds(below));
    useful += x.facts.contiguity(1) > 1 || x.facts.divisibility(1) > 1;
  }
  EXPECT_GT(useful, 2000u) << "facts that never say anything hold trivially";
}

TEST(AxisInfo, TheAddressOfATile) {
  // base + row * pitch + column of a 64x64 tile, pitch divisible by 64, the tile's start by 16.
  std::uint32_t shape[] = {64, 64};
  AxisInfo rows = AxisInfo::range(0, 64).expand(1).broadcast(shape);
  AxisInfo cols = AxisInfo::range(0, 64).expand(0).broadcast(shape);
  AxisInfo address = AxisInfo::splat(16, shape) + rows * AxisInfo::splat(64, shape) + cols;
  EXPECT_EQ(address.contiguity(1), 64u);
  EXPECT_EQ(address.divisibility(1), 16u);
  EXPECT_EQ(address.contiguity(0), 1u);
  // The mask of a bounds check against a multiple of 8 is uniform over 8 columns.
  AxisInfo mask = less(cols, AxisInfo::splat(8, shape));
  EXPECT_EQ(mask.constancy(1), 8u);
  EXPECT_EQ(mask.constancy(0), 64u);
}

TEST(AxisInfo, LoopsIterateDown) {
  std::uint32_t shape[] = {32};
  AxisInfo initial = AxisInfo::splat(0, shape), step = AxisInfo::splat(24, shape);
  int calls = 0;
  AxisInfo offset = AxisInfo::loopCarried(initial, [&](const AxisInfo &now) {
    ++calls;
    return now + step;
  });
  EXPECT_EQ(offset.divisibility(0), 8u); // 0, 24, 48, ..
  EXPECT_EQ(offset.constancy(0), 32u);
  EXPECT_LE(calls, 4);
  // A pointer that starts contiguous and is then multiplied knows nothing.
  AxisInfo lost = AxisInfo::loopCarried(AxisInfo::range(0, 32), [&](const AxisInfo &now) { return now * now; });
  EXPECT_EQ(lost.contiguity(0), 1u);
  EXPECT_EQ(lost.divisibility(0), 1u);
}

TEST(AxisInfo, KnownFactsAndTranspose) {
  std::uint32_t shape[] = {16, 48}, c[] = {1, 48}, v[] = {4, 12}, k[] = {1, 0};
  AxisInfo x = AxisInfo::known(c, v, k, shape);
  EXPECT_EQ(x.text(), "c=1 v=4 k=1, c=32 v=8 k=1");
  unsigned perm[] = {1, 0};
  EXPECT_EQ(x.transpose(perm).text(), "c=32 v=8 k=1, c=1 v=4 k=1");
  EXPECT_EQ(x.transpose(perm).shape(0), 48u);
}
