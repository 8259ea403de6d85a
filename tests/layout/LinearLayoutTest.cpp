// The algebra against enumeration of all points.
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <set>
#include <unordered_set>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

std::set<BitVector> spanPoints(std::span<const BitVector> vectors) {
  std::set<BitVector> out = {0};
  for (BitVector v : vectors) {
    std::set<BitVector> shifted;
    for (BitVector x : out)
      shifted.insert(x ^ v);
    out.merge(shifted);
  }
  return out;
}

Columns randomVectors(Random &random, int count, int bits) {
  Columns out;
  for (int i = 0; i < count; ++i)
    out.push_back(random.word() & lowMask(static_cast<unsigned>(bits)) & (random.chance(0.3) ? 3 : ~0ull));
  return out;
}

} // namespace

TEST(Gf2, SpanAgreesWithEnumeration) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Columns gens = randomVectors(random, random.in(0, 9), 6);
    Span span(gens);
    auto points = spanPoints(gens);
    EXPECT_EQ(std::size_t(1) << span.dim(), points.size());
    EXPECT_EQ(span.offered(), gens.size());
    EXPECT_EQ(rank(gens), span.dim());
    for (BitVector v = 0; v < 64; ++v) {
      auto made = span.solve(v);
      EXPECT_EQ(made.has_value(), points.count(v) == 1);
      EXPECT_EQ(span.contains(v), made.has_value());
      if (made)
        EXPECT_EQ(apply(gens, *made), v);
      auto [rest, part] = span.reduce(v);
      EXPECT_EQ(rest ^ apply(gens, part), v);
    }
    for (unsigned p : bitsOf(span.pivots())) {
      EXPECT_EQ(highestBit(span.row(p)), p);
      EXPECT_EQ(span.row(p) & span.pivots(), unitVector(p));
      EXPECT_EQ(apply(gens, span.rowGenerators(p)), span.row(p));
    }
    Span copy = span;
    copy.add(63);
    EXPECT_EQ(span.dim(), rank(gens)) << "a copy changed the original";
  }
}

TEST(Gf2, KernelIntersectionAndFunctionals) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    Columns a = randomVectors(random, random.in(0, 6), 6), b = randomVectors(random, random.in(0, 6), 6);
    Columns k = kernel(a);
    EXPECT_EQ(k.size() + rank(a), a.size());
    EXPECT_EQ(rank(k), k.size());
    BitVector highest = 0;
    for (BitVector v : k) {
      EXPECT_EQ(apply(a, v), 0u);
      EXPECT_FALSE(highest >> highestBit(v) & 1);
      highest |= unitVector(highestBit(v));
    }
    auto inA = spanPoints(a), inB = spanPoints(b), both = spanPoints(intersect(a, b));
    for (BitVector v = 0; v < 64; ++v)
      EXPECT_EQ(both.count(v), inA.count(v) & inB.count(v));
    Columns masks = randomVectors(random, random.in(0, 3), 6);
    auto zero = spanPoints(whereZero(a, masks));
    for (BitVector v = 0; v < 64; ++v) {
      bool vanishes = true;
      for (BitVector m : masks)
        vanishes = vanishes && !parity(v & m);
      EXPECT_EQ(zero.count(v) == 1, inA.count(v) && vanishes);
    }
    BitVector one = random.word() & 63;
    auto f = functional(a, one, 6, b);
    EXPECT_EQ(f.has_value(), inA.count(one) == 0);
    if (f) {
      EXPECT_EQ(parity(*f & one), 1u);
      for (BitVector v : a)
        EXPECT_EQ(parity(*f & v), 0u);
      // Greedy in order: a preferred vector is missed only if no functional that keeps the earlier ones gets it.
      Columns kept = a;
      for (BitVector v : b) {
        bool possible = false;
        for (BitVector m = 0; m < 64; ++m) {
          bool good = parity(m & one) && !parity(m & v);
          for (BitVector z : kept)
            good = good && !parity(m & z);
          possible = possible || good;
        }
        EXPECT_EQ(parity(*f & v) == 0, possible);
        if (possible)
          kept.push_back(v);
      }
    }
  }
}

TEST(Gf2, InverseRows) {
  Random random(3);
  int bijective = 0;
  for (int round = 0; round < 400; ++round) {
    unsigned n = static_cast<unsigned>(random.in(0, 6));
    Columns cols = randomVectors(random, int(n), int(n));
    auto mu = inverseRows(cols, n);
    ASSERT_EQ(mu.ok(), rank(cols) == n);
    if (!mu.ok()) {
      EXPECT_EQ(mu.status().message().substr(0, 4), "L17:");
      continue;
    }
    ++bijective;
    for (BitVector x = 0; x < BitVector(1) << n; ++x)
      EXPECT_EQ(coordsOf(*mu, apply(cols, x)), x);
  }
  EXPECT_GT(bijective, 50);
}

TEST(LinearLayout, WorkedExampleOfTheHeader) {
  auto layout = unwrap(lower(Blocked{{1, 2}, {4, 8}, {1, 1}, {1, 0}}, {4, 16}));
  EXPECT_EQ(layout.text(), "register: j1; lane: j2 j4 j8 i1 i2");
  EXPECT_EQ(layout.coords(layout.apply(1, 11, 0, 0)), (Coords{1, 7}));
  EXPECT_TRUE(layout.isPermutation() && layout.isInjective() && layout.isSurjective());
  EXPECT_EQ(layout.numElements(), 64u);
}

TEST(LinearLayout, AlgebraOnRandomLayouts) {
  Random random(4);
  for (int round = 0; round < kiln::test::pick(400, 4000); ++round) {
    auto [a, b] = randomPair(random, 8);
    ASSERT_TRUE(a.isSurjective() && b.isSurjective());
    EXPECT_EQ(unwrap(unwrap(a.transpose({1, 0})).transpose({1, 0})), a);
    EXPECT_EQ(unwrap(unwrap(a.reshape({a.numElements()})).reshape(a.shape())), a);
    // (a x b)(low, high) = a(low) + b(high) shifted, per dimension.
    auto made = a.product(b);
    if (a.allColumns().size() + b.allColumns().size() > maxInputBits) {
      EXPECT_EQ(made.status().message().substr(0, 4), "L18:");
      continue;
    }
    LinearLayout product = unwrap(std::move(made));
    for (int n = 0; n < 4; ++n) {
      std::array<unsigned, numHardwareDims> x, y, z;
      for (InDim d : hardwareDims) {
        x[index(d)] = static_cast<unsigned>(random.word()) & (a.size(d) - 1);
        y[index(d)] = static_cast<unsigned>(random.word()) & (b.size(d) - 1);
        z[index(d)] = x[index(d)] | y[index(d)] << a.bits(d);
      }
      Coords low = a.coords(a.apply(x[0], x[1], x[2], x[3])), high = b.coords(b.apply(y[0], y[1], y[2], y[3]));
      Coords got = product.coords(product.apply(z[0], z[1], z[2], z[3]));
      for (unsigned d = 0; d < 2; ++d)
        EXPECT_EQ(got[d], low[d] | high[d] << a.log2Shape(d));
    }
    auto quotient = product.divideLeft(a);
    ASSERT_TRUE(quotient.has_value());
    EXPECT_EQ(*quotient, b);
    Columns pull = unwrap(b.composeInverse(a));
    EXPECT_EQ(compose(a.allColumns(), pull), Columns(b.allColumns()));
    // Expanding and slicing again, joining and splitting again.
    EXPECT_EQ(unwrap(a.expand(1)).coords(a.numElements() - 1)[1], 0u);
    EXPECT_EQ(unwrap(unwrap(a.expand(1)).slice(1)).withoutRegisterCopies(), a.withoutRegisterCopies());
    LinearLayout joined = unwrap(a.join());
    EXPECT_EQ(joined.shape(2), 2u);
    EXPECT_EQ(unwrap(joined.split()), a);
    EXPECT_TRUE(broadcastIsFree(unwrap(unwrap(a.slice(1)).expand(1)), a, 1));
  }
}

TEST(LinearLayout, DivideLeftRefusesWhatIsNoFactor) {
  Random random(5);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    auto [a, b] = randomPair(random, 6);
    if (auto quotient = a.divideLeft(b))
      EXPECT_EQ(unwrap(b.product(*quotient)), a);
    else
      ++refused;
  }
  EXPECT_GT(refused, 50);
}

TEST(LinearLayout, OneOwnerForEveryElement) {
  Random random(6);
  int checked = 0;
  for (int round = 0; round < kiln::test::pick(200, 2000); ++round) {
    LinearLayout a = randomPair(random, 8).first;
    if (a.hardwareBits() > 13)
      continue;
    ++checked;
    auto masks = a.freeMasks();
    BitVector free = 0;
    for (InDim d : hardwareDims)
      free |= masks[index(d)] << a.hardwareStart(d);
    std::vector<BitVector> owner(a.numElements(), ~BitVector(0));
    for (BitVector h = 0; h < BitVector(1) << a.hardwareBits(); ++h) {
      if (h & free)
        continue;
      BitVector t = a.apply(h);
      EXPECT_EQ(owner[t], ~BitVector(0)) << "two owners of " << t;
      owner[t] = h;
    }
    Columns map = a.ownerMap();
    for (BitVector h = 0; h < BitVector(1) << a.hardwareBits(); ++h) {
      BitVector o = apply(map, h), t = a.apply(h);
      EXPECT_EQ(o, owner[t]);
      EXPECT_LE(o, h) << "the owner is the smallest copy";
    }
  }
  EXPECT_GT(checked, 50);
}

TEST(LinearLayout, EqualityAndHash) {
  Random random(7);
  std::vector<LinearLayout> seen;
  std::unordered_set<LinearLayout> set;
  for (int round = 0; round < 300; ++round) {
    LinearLayout a = randomPair(random, 6).first;
    bool fresh = std::find(seen.begin(), seen.end(), a) == seen.end();
    EXPECT_EQ(set.insert(a).second, fresh);
    if (fresh)
      seen.push_back(a);
    LinearLayout copy = a;
    EXPECT_EQ(copy, a);
    EXPECT_EQ(copy.hash(), a.hash());
    Coords shape = a.shape();
    EXPECT_EQ(unwrap(lower(asLinear(a), Sizes(shape.begin(), shape.end()))), a);
  }
  EXPECT_GT(seen.size(), 100u);
}
