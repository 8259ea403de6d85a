// setp, set, selp, slct against comparisons made from first principles: a value is decoded into a real number (long
// double) or NaN, and a comparison is a set of outcomes.
#include "tests/emulator/HandlerHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

using U64 = std::uint64_t;

struct Format {
  const char *name;
  unsigned bits;
  int exponent; ///< exponent bits of a float, 0: unsigned, -1: signed
};
const Format formats[] = {{"u16", 16, 0},  {"s16", 16, -1}, {"u32", 32, 0},  {"s32", 32, -1},  {"u64", 64, 0},
                          {"s64", 64, -1}, {"f32", 32, 8},  {"f64", 64, 11}, {"f16", 16, 5},   {"bf16", 16, 8}};

/// The number that the low bits mean; no value: NaN.  long double holds every one exactly (64 bits of mantissa).
std::optional<long double> decode(U64 v, const Format &f, bool ftz) {
  if (f.bits < 64)
    v &= (U64(1) << f.bits) - 1;
  if (f.exponent == 0)
    return static_cast<long double>(v);
  const bool sign = v >> (f.bits - 1) & 1;
  if (f.exponent < 0) {
    const U64 magnitude = sign ? (f.bits == 64 ? ~v + 1 : (U64(1) << f.bits) - v) : v;
    return sign ? -static_cast<long double>(magnitude) : static_cast<long double>(magnitude);
  }
  const unsigned mantissaBits = f.bits - 1 - f.exponent;
  const U64 mantissa = v & ((U64(1) << mantissaBits) - 1);
  const int e = static_cast<int>(v >> mantissaBits & ((U64(1) << f.exponent) - 1)), bias = (1 << (f.exponent - 1)) - 1;
  long double r;
  if (e == (1 << f.exponent) - 1) {
    if (mantissa)
      return std::nullopt;
    r = INFINITY;
  } else if (e == 0) {
    r = ftz ? 0.0L : std::ldexp(static_cast<long double>(mantissa), 1 - bias - static_cast<int>(mantissaBits));
  } else {
    r = std::ldexp(static_cast<long double>(mantissa | U64(1) << mantissaBits), e - bias - static_cast<int>(mantissaBits));
  }
  return sign ? -r : r;
}

bool compare(const std::string &op, std::optional<long double> a, std::optional<long double> b) {
  if (op == "num" || op == "nan")
    return (a && b) == (op == "num");
  const bool unorderedForm = op.size() == 3;
  if (!a || !b)
    return unorderedForm;
  const std::string base = op.substr(0, 2);
  const std::map<std::string, std::string> alias = {{"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
  const std::string c = alias.contains(base) ? alias.at(base) : base;
  return c == "eq" ? *a == *b : c == "ne" ? *a != *b : c == "lt" ? *a < *b : c == "le" ? *a <= *b : c == "gt" ? *a > *b : *a >= *b;
}

/// Random bits that hit equal values, zeros, infinities, NaN and subnormals often.
U64 sample(std::mt19937_64 &rng, const Format &f, U64 other) {
  const unsigned mantissaBits = f.exponent > 0 ? f.bits - 1 - f.exponent : 0;
  const U64 sign = (rng() & 1) << (f.bits - 1), top = ((U64(1) << (f.exponent > 0 ? f.exponent : 0)) - 1) << mantissaBits;
  switch (rng() % 8) {
  case 0: return other;
  case 1: return sign;
  case 2: return f.exponent > 0 ? sign | top : ~U64(0);
  case 3: return f.exponent > 0 ? sign | top | (1 + rng() % ((U64(1) << mantissaBits) - 1)) : U64(1) << (f.bits - 1);
  case 4: return f.exponent > 0 ? sign | rng() % (U64(1) << mantissaBits) : rng() % 4;
  default: return rng();
  }
}

std::vector<std::string> comparisonsOf(const Format &f) {
  std::vector<std::string> out = {"eq", "ne", "lt", "le", "gt", "ge"};
  if (f.exponent == 0)
    out.insert(out.end(), {"lo", "ls", "hi", "hs"});
  if (f.exponent > 0)
    out.insert(out.end(), {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  return out;
}

bool combine(const std::string &how, bool t, bool c) { return how == "and" ? t && c : how == "or" ? t || c : how == "xor" ? t != c : t; }

TEST(Compare, SetpAndSet) {
  for (std::string_view level : builtLevels()) {
    if (!instructionTable(level))
      continue;
    std::mt19937_64 rng(11);
    for (const Format &f : formats)
      for (const std::string &cmp : comparisonsOf(f))
        for (const std::string how : {"", "and", "or", "xor"})
          for (bool ftz : {false, true}) {
            if (ftz && std::string(f.name) != "f32" && std::string(f.name) != "f16")
              continue;
            const std::string middle = "." + cmp + (how.empty() ? "" : "." + how) + (ftz ? ".ftz." : ".");
            HandlerHarness setp("setp" + middle + f.name, level);
            HandlerHarness setInteger("set" + middle + "u32." + f.name, level);
            HandlerHarness setFloat("set" + middle + "f32." + f.name, level);
            ASSERT_TRUE(setp.ok() && setInteger.ok() && setFloat.ok())
                << middle << f.name << setp.why() << setInteger.why() << setFloat.why();
            for (int round = 0; round < kiln::test::pick(4, 60); ++round) {
              LaneValues a, b, c;
              for (unsigned l = 0; l < warpSize; ++l) {
                a[l] = sample(rng, f, 0);
                b[l] = sample(rng, f, a[l]);
                c[l] = rng() & 1 ? 0xFFFFFFFF : 0;
              }
              const std::uint32_t exec = round % 2 ? fullMask : static_cast<std::uint32_t>(rng()) | 1;
              for (HandlerHarness *h : {&setp, &setInteger, &setFloat}) {
                h->setSource(0, a);
                h->setSource(1, b);
                if (!how.empty())
                  h->setSource(2, c);
                h->run(exec);
              }
              const LaneValues p = setp.result(), q = setp.second(), i = setInteger.result(), x = setFloat.result();
              for (unsigned l = 0; l < warpSize; ++l) {
                const U64 poison = HandlerHarness::poison & 0xFFFFFFFF;
                const bool on = exec >> l & 1, t = compare(cmp, decode(a[l], f, ftz), decode(b[l], f, ftz));
                const bool want = combine(how, t, c[l]), other = combine(how, !t, c[l]);
                ASSERT_EQ(p[l], on ? (want ? 0xFFFFFFFF : 0) : poison) << middle << f.name << std::hex << " " << a[l] << " " << b[l];
                ASSERT_EQ(q[l], on ? (other ? 0xFFFFFFFF : 0) : poison) << middle << f.name;
                ASSERT_EQ(i[l], on ? (want ? 0xFFFFFFFF : 0) : poison) << middle << f.name;
                ASSERT_EQ(x[l], on ? (want ? 0x3F800000 : 0) : poison) << middle << f.name;
              }
            }
          }
  }
}

TEST(Compare, PackedHalves) {
  std::mt19937_64 rng(12);
  for (const std::string type : {"f16", "bf16"}) {
    const Format f = type == "f16" ? formats[8] : formats[9];
    for (const std::string &cmp : comparisonsOf(f)) {
      HandlerHarness setp("setp." + cmp + "." + type + "x2"), packed("set." + cmp + "." + type + "x2." + type + "x2"),
          integer("set." + cmp + ".u32." + type + "x2");
      ASSERT_TRUE(setp.ok() && packed.ok() && integer.ok()) << setp.why() << packed.why() << integer.why();
      for (int round = 0; round < 20; ++round) {
        LaneValues a, b;
        for (unsigned l = 0; l < warpSize; ++l) {
          const U64 a0 = sample(rng, f, 0) & 0xFFFF, a1 = sample(rng, f, 0) & 0xFFFF;
          a[l] = a0 | a1 << 16;
          b[l] = (sample(rng, f, a0) & 0xFFFF) | (sample(rng, f, a1) & 0xFFFF) << 16;
        }
        for (HandlerHarness *h : {&setp, &packed, &integer}) {
          h->setSource(0, a);
          h->setSource(1, b);
          h->run();
        }
        const U64 one = type == "f16" ? 0x3C00 : 0x3F80;
        for (unsigned l = 0; l < warpSize; ++l) {
          const bool low = compare(cmp, decode(a[l], f, false), decode(b[l], f, false));
          const bool high = compare(cmp, decode(a[l] >> 16, f, false), decode(b[l] >> 16, f, false));
          ASSERT_EQ(setp.result()[l], low ? 0xFFFFFFFF : 0);
          ASSERT_EQ(setp.second()[l], high ? 0xFFFFFFFF : 0);
          ASSERT_EQ(packed.result()[l], (low ? one : 0) | (high ? one << 16 : 0));
          ASSERT_EQ(integer.result()[l], (low ? 0xFFFF : 0) | (high ? 0xFFFF0000 : 0));
        }
      }
    }
  }
}

TEST(Compare, Select) {
  std::mt19937_64 rng(13);
  for (const char *type : {"b16", "b32", "b64", "f32", "f64", "s64"}) {
    HandlerHarness selp(std::string("selp.") + type), bySign(std::string("slct.") + type + ".s32"),
        byFloat(std::string("slct.") + type + ".f32"), byFtz(std::string("slct.ftz.") + type + ".f32");
    ASSERT_TRUE(selp.ok() && bySign.ok() && byFloat.ok() && byFtz.ok());
    const U64 mask = selp.destinationBytes() == 8 ? ~U64(0) : selp.destinationBytes() == 4 ? 0xFFFFFFFF : 0xFFFF;
    for (int round = 0; round < 50; ++round) {
      LaneValues a, b, p, c;
      for (unsigned l = 0; l < warpSize; ++l) {
        a[l] = rng();
        b[l] = rng();
        p[l] = rng() & 1 ? 0xFFFFFFFF : 0;
        c[l] = sample(rng, formats[6], 0) & 0xFFFFFFFF;
      }
      for (HandlerHarness *h : {&selp, &bySign, &byFloat, &byFtz}) {
        h->setSource(0, a);
        h->setSource(1, b);
        h->setSource(2, h == &selp ? p : c);
        h->run();
      }
      for (unsigned l = 0; l < warpSize; ++l) {
        const auto number = decode(c[l], formats[6], false), flushed = decode(c[l], formats[6], true);
        ASSERT_EQ(selp.result()[l] & mask, (p[l] ? a[l] : b[l]) & mask);
        ASSERT_EQ(bySign.result()[l] & mask, (c[l] >> 31 ? b[l] : a[l]) & mask);
        ASSERT_EQ(byFloat.result()[l] & mask, (number && *number >= 0 ? a[l] : b[l]) & mask);
        ASSERT_EQ(byFtz.result()[l] & mask, (flushed && *flushed >= 0 ? a[l] : b[l]) & mask);
      }
    }
  }
}

TEST(WarpOps, VoteMatchReduxElect) {
  std::mt19937_64 rng(14);
  HandlerHarness any("vote.sync.any.pred"), all("vote.sync.all.pred"), uni("vote.sync.uni.pred"), ballot("vote.sync.ballot.b32");
  HandlerHarness matchAny("match.any.sync.b32"), matchAll("match.all.sync.b64"), active("activemask.b32"), elect("elect.sync");
  HandlerHarness sum("redux.sync.add.s32"), least("redux.sync.min.s32"), most("redux.sync.max.u32"), bitOr("redux.sync.or.b32");
  for (HandlerHarness *h : {&any, &all, &uni, &ballot, &matchAny, &matchAll, &active, &elect, &sum, &least, &most, &bitOr})
    ASSERT_TRUE(h->ok()) << h->why();
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t exec = round % 3 ? static_cast<std::uint32_t>(rng()) | 1u << (rng() % 32) : fullMask;
    LaneValues p, x;
    const unsigned bias = rng() % 3, kinds = 1 + rng() % 3;
    for (unsigned l = 0; l < warpSize; ++l) {
      p[l] = bias == 0 || (bias == 2 && rng() & 1) ? 0xFFFFFFFF : 0;
      x[l] = (rng() % kinds) * 0x1234567887654321ull;
    }
    for (HandlerHarness *h : {&any, &all, &uni, &ballot})
      h->setSource(0, p);
    for (HandlerHarness *h : {&matchAny, &matchAll, &sum, &least, &most, &bitOr})
      h->setSource(0, x);
    for (HandlerHarness *h : {&any, &all, &uni, &ballot, &matchAny, &matchAll, &active, &elect, &sum, &least, &most, &bitOr})
      h->run(exec);
    U64 votes = 0, total = 0, ors = 0, maximum = 0;
    std::int64_t minimum = INT64_MAX;
    bool equal = true;
    unsigned first = 0;
    while (!(exec >> first & 1))
      ++first;
    for (unsigned l = 0; l < warpSize; ++l)
      if (exec >> l & 1) {
        votes |= U64(p[l] != 0) << l;
        total += x[l];
        ors |= x[l];
        maximum = std::max(maximum, x[l] & 0xFFFFFFFF);
        minimum = std::min<std::int64_t>(minimum, static_cast<std::int32_t>(x[l]));
        equal &= x[l] == x[first];
      }
    for (unsigned l = 0; l < warpSize; ++l) {
      const U64 poison = HandlerHarness::poison & 0xFFFFFFFF;
      auto want = [&](U64 v) { return exec >> l & 1 ? v & 0xFFFFFFFF : poison; };
      auto truth = [&](bool v) { return want(v ? 0xFFFFFFFF : 0); };
      U64 same = 0;
      for (unsigned j = 0; j < warpSize; ++j)
        same |= U64(exec >> j & 1 && (x[j] & 0xFFFFFFFF) == (x[l] & 0xFFFFFFFF)) << j;
      ASSERT_EQ(any.result()[l], truth(votes != 0));
      ASSERT_EQ(all.result()[l], truth(votes == exec));
      ASSERT_EQ(uni.result()[l], truth(votes == 0 || votes == exec));
      ASSERT_EQ(ballot.result()[l], want(votes));
      ASSERT_EQ(matchAny.result()[l], want(same));
      ASSERT_EQ(matchAll.result()[l], want(equal ? exec : 0));
      ASSERT_EQ(matchAll.second()[l], truth(equal));
      ASSERT_EQ(active.result()[l], want(exec));
      ASSERT_EQ(elect.result()[l], want(first));
      ASSERT_EQ(elect.second()[l], truth(l == first));
      ASSERT_EQ(sum.result()[l], want(total));
      ASSERT_EQ(least.result()[l], want(static_cast<U64>(minimum)));
      ASSERT_EQ(most.result()[l], want(maximum));
      ASSERT_EQ(bitOr.result()[l], want(ors));
    }
  }
}

TEST(WarpOps, ShuffleFollowsTheIsa) {
  std::mt19937_64 rng(15);
  for (std::string_view level : builtLevels()) {
    if (!instructionTable(level))
      continue;
    for (const std::string mode : {"up", "down", "bfly", "idx"}) {
      HandlerHarness h("shfl.sync." + mode + ".b32", level);
      ASSERT_TRUE(h.ok()) << h.why();
      for (int round = 0; round < 500; ++round) {
        LaneValues a, b, c;
        const bool uniform = rng() & 1;
        const U64 b0 = rng() % 40, c0 = (32u - (1u << rng() % 6)) << 8 | (rng() & 1 ? 31 : rng() % 32);
        for (unsigned l = 0; l < warpSize; ++l) {
          a[l] = rng() & 0xFFFFFFFF;
          b[l] = uniform ? b0 : rng() % 64;
          c[l] = uniform ? c0 : rng() & 0x1F1F;
        }
        h.setSource(0, a);
        h.setSource(1, b);
        h.setSource(2, c);
        h.run();
        const LaneValues d = h.result(), p = h.second();
        for (int l = 0; l < 32; ++l) {
          const int by = b[l] & 31, segment = c[l] >> 8 & 31, clamp = c[l] & 31;
          const int lowest = l & segment, limit = lowest | (clamp & ~segment);
          int j = mode == "up" ? l - by : mode == "down" ? l + by : mode == "bfly" ? l ^ by : lowest | (by & ~segment);
          const bool inside = mode == "up" ? j >= limit : j <= limit;
          if (!inside)
            j = l;
          ASSERT_EQ(d[l], a[j]) << mode << " lane " << l;
          ASSERT_EQ(p[l], inside ? 0xFFFFFFFF : 0) << mode << " lane " << l;
        }
      }
    }
  }
}

} // namespace
