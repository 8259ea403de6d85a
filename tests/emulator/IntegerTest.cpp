// Integer, logic, bit field and comparison instructions against references written bit by bit or in 128-bit arithmetic,
// on edge values in all pairs and on random bits, at every CPU level that this machine has.
#include "tests/emulator/HandlerHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

using U64 = std::uint64_t;
using I128 = __int128;

U64 maskOf(unsigned bits) { return bits == 64 ? ~U64(0) : (U64(1) << bits) - 1; }
/// The value of the low `bits`, as a signed or unsigned number.
I128 value(U64 v, unsigned bits, bool isSigned) {
  v &= maskOf(bits);
  if (isSigned && v >> (bits - 1) & 1)
    return I128(v) - (I128(1) << bits);
  return I128(v);
}
U64 wrap(I128 v, unsigned bits) { return static_cast<U64>(v) & maskOf(bits); }
I128 clampTo(I128 v, unsigned bits, bool isSigned) {
  const I128 low = isSigned ? -(I128(1) << (bits - 1)) : 0;
  const I128 high = isSigned ? (I128(1) << (bits - 1)) - 1 : (I128(1) << bits) - 1;
  return v < low ? low : v > high ? high : v;
}

/// Section 6.1 of the emulator specification.
const std::vector<U64> edges = {0,          1,          ~U64(0),    2,          7,         31,        32,        33,
                                63,         64,         65,         255,        256,       0x80,      0x7F,      0x8000,
                                0x7FFF,     0xFFFF,     0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000001, U64(1) << 63, ~U64(0) >> 1,
                                (U64(1) << 63) + 1, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0x123456789ABCDEF0};

using Reference = std::function<U64(U64 a, U64 b, U64 c, U64 d)>;

/// Runs `opcode` on every pair of edges (further operands random edges) and on random bits, and compares the low
/// `resultBits` of each result with the reference.
void check(const std::string &opcode, unsigned resultBits, const Reference &reference, std::int64_t immediate = 0) {
  for (std::string_view level : builtLevels()) {
    if (!instructionTable(level))
      continue;
    HandlerHarness h(opcode, level);
    ASSERT_TRUE(h.ok()) << opcode << ": " << h.why();
    h.setImmediate(immediate);
    std::mt19937_64 rng(20261121);
    auto compare = [&](const LaneValues (&in)[4], std::uint32_t exec) {
      for (unsigned i = 0; i < h.sources(); ++i)
        h.setSource(i, in[i]);
      ASSERT_EQ(h.run(exec), Next::Advance);
      const LaneValues out = h.result();
      for (unsigned l = 0; l < warpSize; ++l) {
        U64 s[4];
        for (unsigned i = 0; i < 4; ++i)
          s[i] = i < h.sources() ? in[i][l] & maskOf(8 * h.sourceBytes(i)) : 0;
        const U64 want = exec >> l & 1 ? reference(s[0], s[1], s[2], s[3]) & maskOf(resultBits)
                                       : HandlerHarness::poison & maskOf(resultBits);
        ASSERT_EQ(out[l] & maskOf(resultBits), want)
            << opcode << " (" << level << ") of " << std::hex << s[0] << ", " << s[1] << ", " << s[2] << ", " << s[3]
            << " lane " << std::dec << l;
      }
    };
    LaneValues in[4];
    unsigned lane = 0;
    auto flush = [&] {
      compare(in, fullMask);
      lane = 0;
    };
    for (U64 a : edges)
      for (U64 b : edges) {
        for (unsigned i = 0; i < 4; ++i)
          in[i][lane] = i == 0 ? a : i == 1 ? b : edges[rng() % edges.size()];
        if (++lane == warpSize)
          ASSERT_NO_FATAL_FAILURE(flush());
      }
    const int rounds = kiln::test::pick(100, 5000);
    for (int r = 0; r < rounds; ++r) {
      for (unsigned i = 0; i < 4; ++i)
        for (unsigned l = 0; l < warpSize; ++l)
          in[i][l] = rng() >> (rng() % 3 == 0 ? rng() % 64 : 0); // small values too
      ASSERT_NO_FATAL_FAILURE(compare(in, r % 2 ? fullMask : static_cast<std::uint32_t>(rng()) | 1));
    }
  }
}

struct IntegerType {
  const char *name;
  unsigned bits;
  bool isSigned;
};
const IntegerType allTypes[] = {{"u16", 16, false}, {"s16", 16, true}, {"u32", 32, false},
                                {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

std::string dotted(const char *op, const char *type) { return std::string(op) + "." + type; }

TEST(Integer, AddSubNegAbsMinMax) {
  for (const IntegerType &t : allTypes) {
    auto v = [&](U64 x) { return value(x, t.bits, t.isSigned); };
    check(dotted("add", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return wrap(v(a) + v(b), t.bits); });
    check(dotted("sub", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return wrap(v(a) - v(b), t.bits); });
    check(dotted("min", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return wrap(std::min(v(a), v(b)), t.bits); });
    check(dotted("max", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return wrap(std::max(v(a), v(b)), t.bits); });
    check(dotted("sad", t.name), t.bits,
          [&](U64 a, U64 b, U64 c, U64) { return wrap(v(c) + (v(a) > v(b) ? v(a) - v(b) : v(b) - v(a)), t.bits); });
    if (!t.isSigned)
      continue;
    check(dotted("neg", t.name), t.bits, [&](U64 a, U64, U64, U64) { return wrap(-v(a), t.bits); });
    check(dotted("abs", t.name), t.bits, [&](U64 a, U64, U64, U64) { return wrap(v(a) < 0 ? -v(a) : v(a), t.bits); });
  }
}

TEST(Integer, SaturationAndRelu) {
  auto s = [](U64 x) { return value(x, 32, true); };
  check("add.sat.s32", 32, [&](U64 a, U64 b, U64, U64) { return wrap(clampTo(s(a) + s(b), 32, true), 32); });
  check("sub.sat.s32", 32, [&](U64 a, U64 b, U64, U64) { return wrap(clampTo(s(a) - s(b), 32, true), 32); });
  check("min.relu.s32", 32, [&](U64 a, U64 b, U64, U64) { return wrap(std::max<I128>(std::min(s(a), s(b)), 0), 32); });
  check("max.relu.s32", 32, [&](U64 a, U64 b, U64, U64) { return wrap(std::max<I128>(std::max(s(a), s(b)), 0), 32); });
  check("mad.hi.sat.s32", 32,
        [&](U64 a, U64 b, U64 c, U64) { return wrap(clampTo((s(a) * s(b) >> 32) + s(c), 32, true), 32); });
}

TEST(Integer, DivisionIsTotal) {
  for (const IntegerType &t : allTypes) {
    auto v = [&](U64 x) { return value(x, t.bits, t.isSigned); };
    check(dotted("div", t.name), t.bits,
          [&](U64 a, U64 b, U64, U64) { return v(b) == 0 ? maskOf(t.bits) : wrap(v(a) / v(b), t.bits); });
    check(dotted("rem", t.name), t.bits,
          [&](U64 a, U64 b, U64, U64) { return v(b) == 0 ? maskOf(t.bits) : wrap(v(a) % v(b), t.bits); });
  }
}

/// High half by schoolbook multiplication of halves: independent of a 128-bit product's sign handling.
U64 highHalf(U64 a, U64 b, unsigned bits, bool isSigned) {
  if (bits < 64)
    return wrap(value(a, bits, isSigned) * value(b, bits, isSigned) >> bits, bits);
  const U64 al = a & 0xFFFFFFFF, ah = a >> 32, bl = b & 0xFFFFFFFF, bh = b >> 32;
  const U64 low = al * bl, mid1 = ah * bl + (low >> 32), mid2 = al * bh + (mid1 & 0xFFFFFFFF);
  U64 r = ah * bh + (mid1 >> 32) + (mid2 >> 32);
  if (isSigned) {
    if (a >> 63)
      r -= b;
    if (b >> 63)
      r -= a;
  }
  return r;
}

TEST(Integer, MulAndMad) {
  for (const IntegerType &t : allTypes) {
    auto v = [&](U64 x) { return value(x, t.bits, t.isSigned); };
    check(dotted("mul.lo", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return a * b; });
    check(dotted("mul.hi", t.name), t.bits, [&](U64 a, U64 b, U64, U64) { return highHalf(a, b, t.bits, t.isSigned); });
    check(dotted("mad.lo", t.name), t.bits, [&](U64 a, U64 b, U64 c, U64) { return a * b + c; });
    check(dotted("mad.hi", t.name), t.bits,
          [&](U64 a, U64 b, U64 c, U64) { return highHalf(a, b, t.bits, t.isSigned) + c; });
    if (t.bits == 64)
      continue;
    check(dotted("mul.wide", t.name), 2 * t.bits, [&](U64 a, U64 b, U64, U64) { return wrap(v(a) * v(b), 2 * t.bits); });
    check(dotted("mad.wide", t.name), 2 * t.bits,
          [&](U64 a, U64 b, U64 c, U64) { return wrap(v(a) * v(b), 2 * t.bits) + c; });
  }
}

TEST(Integer, Mul24AndDotProducts) {
  for (bool isSigned : {false, true}) {
    const std::string type = isSigned ? "s32" : "u32";
    auto v = [&](U64 x) { return value(x, 24, isSigned); };
    check("mul24.lo." + type, 32, [&](U64 a, U64 b, U64, U64) { return wrap(v(a) * v(b), 32); });
    check("mul24.hi." + type, 32, [&](U64 a, U64 b, U64, U64) { return wrap(v(a) * v(b) >> 16, 32); });
    check("mad24.lo." + type, 32, [&](U64 a, U64 b, U64 c, U64) { return wrap(v(a) * v(b), 32) + c; });
    check("mad24.hi." + type, 32, [&](U64 a, U64 b, U64 c, U64) { return wrap(v(a) * v(b) >> 16, 32) + c; });
  }
  check("mad24.hi.sat.s32", 32, [&](U64 a, U64 b, U64 c, U64) {
    const I128 product = value(a, 24, true) * value(b, 24, true) >> 16;
    return wrap(clampTo(value(wrap(product, 32), 32, true) + value(c, 32, true), 32, true), 32);
  });
  for (bool sa : {false, true})
    for (bool sb : {false, true}) {
      const std::string types = std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32");
      check("dp4a" + types, 32, [&](U64 a, U64 b, U64 c, U64) {
        I128 r = I128(c);
        for (int i = 0; i < 4; ++i)
          r += value(a >> 8 * i, 8, sa) * value(b >> 8 * i, 8, sb);
        return wrap(r, 32);
      });
      for (bool hi : {false, true})
        check((hi ? "dp2a.hi" : "dp2a.lo") + types, 32, [&](U64 a, U64 b, U64 c, U64) {
          I128 r = I128(c);
          for (int i = 0; i < 2; ++i)
            r += value(a >> 16 * i, 16, sa) * value(b >> 8 * (i + (hi ? 2 : 0)), 8, sb);
          return wrap(r, 32);
        });
    }
}

TEST(Integer, CarryChains) {
  for (std::string_view level : builtLevels()) {
    if (!instructionTable(level))
      continue;
    for (const char *type : {"u32", "s32", "u64", "s64"}) {
      const unsigned bits = type[1] == '3' ? 32 : 64;
      for (const char *name : {"add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc", "mad.lo.cc", "madc.lo",
                               "madc.lo.cc", "mad.hi.cc", "madc.hi", "madc.hi.cc"}) {
        const std::string op = name;
        HandlerHarness h(dotted(name, type), level);
        ASSERT_TRUE(h.ok()) << op << ": " << h.why();
        const bool takes = op.substr(3, 1) == "c", sets = op.find("cc") != std::string::npos;
        const bool subtracts = op.starts_with("sub"), multiplies = op.starts_with("mad");
        std::mt19937_64 rng(7);
        for (int round = 0; round < 200; ++round) {
          LaneValues in[3], carry;
          for (unsigned l = 0; l < warpSize; ++l) {
            for (auto &x : in)
              x[l] = rng() % 3 ? rng() : edges[rng() % edges.size()];
            carry[l] = rng() & 1;
          }
          for (unsigned i = 0; i < h.sources(); ++i)
            h.setSource(i, in[i]);
          h.setCarry(carry);
          const std::uint32_t exec = static_cast<std::uint32_t>(rng()) | 1;
          h.run(exec);
          const LaneValues out = h.result(), after = h.carry();
          for (unsigned l = 0; l < warpSize; ++l) {
            if (!(exec >> l & 1)) {
              ASSERT_EQ(after[l], carry[l]);
              continue;
            }
            const U64 a = in[0][l] & maskOf(bits), b = in[1][l] & maskOf(bits), c = in[2][l] & maskOf(bits);
            const U64 cin = takes ? carry[l] : 0;
            unsigned __int128 wide;
            bool carryOut;
            if (subtracts) {
              wide = static_cast<unsigned __int128>(I128(a) - I128(b) - I128(cin));
              carryOut = I128(a) - I128(b) - I128(cin) < 0;
            } else {
              const bool hi = op.find("hi") != std::string::npos;
              const U64 x = !multiplies ? a : hi ? highHalf(a, b, bits, type[0] == 's') & maskOf(bits) : (a * b) & maskOf(bits);
              wide = static_cast<unsigned __int128>(x) + (multiplies ? c : b) + cin;
              carryOut = (wide >> bits) != 0;
            }
            ASSERT_EQ(out[l] & maskOf(bits), static_cast<U64>(wide) & maskOf(bits)) << op << "." << type;
            ASSERT_EQ(after[l], sets ? U64(carryOut) : carry[l]) << op << "." << type;
          }
        }
      }
    }
  }
}

TEST(Integer, Logic) {
  for (unsigned bits : {16u, 32u, 64u}) {
    const std::string type = ".b" + std::to_string(bits);
    check("and" + type, bits, [](U64 a, U64 b, U64, U64) { return a & b; });
    check("or" + type, bits, [](U64 a, U64 b, U64, U64) { return a | b; });
    check("xor" + type, bits, [](U64 a, U64 b, U64, U64) { return a ^ b; });
    check("not" + type, bits, [](U64 a, U64, U64, U64) { return ~a; });
    check("cnot" + type, bits, [](U64 a, U64, U64, U64) { return U64(a == 0); });
    check("shl" + type, bits, [&](U64 a, U64 n, U64, U64) { return n >= bits ? 0 : a << n; });
    check("shr" + type, bits, [&](U64 a, U64 n, U64, U64) { return n >= bits ? 0 : a >> n; });
    check("shr.u" + std::to_string(bits), bits, [&](U64 a, U64 n, U64, U64) { return n >= bits ? 0 : a >> n; });
    check("shr.s" + std::to_string(bits), bits, [&](U64 a, U64 n, U64, U64) {
      return static_cast<U64>(value(a, bits, true) >> std::min<U64>(n, bits));
    });
  }
  for (unsigned lut = 0; lut < 256; lut += kiln::test::pick(17, 1))
    check("lop3.b32", 32,
          [&](U64 a, U64 b, U64 c, U64) {
            U64 r = 0;
            for (int i = 0; i < 32; ++i)
              r |= U64(lut >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
            return r;
          },
          lut);
  for (bool left : {false, true})
    for (bool wraps : {false, true})
      check(std::string("shf.") + (left ? "l" : "r") + (wraps ? ".wrap.b32" : ".clamp.b32"), 32,
            [&](U64 a, U64 b, U64 c, U64) {
              const U64 n = wraps ? c % 32 : std::min<U64>(c, 32);
              U64 r = 0; // bit i of the result comes from bit i + n (right) or 32 + i - n (left) of b:a
              for (U64 i = 0; i < 32; ++i) {
                const U64 at = left ? 32 + i - n : i + n;
                r |= (at < 32 ? a >> at & 1 : b >> (at - 32) & 1) << i;
              }
              return r;
            });
}

TEST(Integer, BitFields) {
  for (unsigned bits : {32u, 64u})
    for (bool isSigned : {false, true}) {
      const std::string type = (isSigned ? ".s" : ".u") + std::to_string(bits);
      check("bfe" + type, bits, [&](U64 a, U64 p, U64 n, U64) {
        const U64 used = bits == 32 ? 255 : 0xFFFFFFFF; // an H200 reads the whole number for 64-bit values
        const U64 pos = p & used, len = n & used, msb = bits - 1;
        if (len == 0)
          return U64(0);
        const U64 sign = isSigned ? a >> std::min(pos + len - 1, msb) & 1 : 0;
        U64 r = 0;
        for (U64 i = 0; i < bits; ++i)
          r |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
        return r;
      });
      check("bfind" + type, 32, [&](U64 a, U64, U64, U64) {
        const U64 flip = isSigned && a >> (bits - 1) & 1 ? ~a & maskOf(bits) : a;
        U64 r = 0xFFFFFFFF;
        for (U64 i = 0; i < bits; ++i)
          if (flip >> i & 1)
            r = i;
        return r;
      });
      check("bfind.shiftamt" + type, 32, [&](U64 a, U64, U64, U64) {
        const U64 flip = isSigned && a >> (bits - 1) & 1 ? ~a & maskOf(bits) : a;
        U64 r = 0xFFFFFFFF;
        for (U64 i = 0; i < bits; ++i)
          if (flip >> i & 1)
            r = bits - 1 - i;
        return r;
      });
    }
  for (unsigned bits : {32u, 64u}) {
    const std::string type = ".b" + std::to_string(bits);
    check("bfi" + type, bits, [&](U64 a, U64 b, U64 p, U64 n) {
      const U64 used = bits == 32 ? 255 : 0xFFFFFFFF;
      U64 r = b;
      for (U64 at = p & used, i = 0; i < (n & used) && at + i < bits; ++i) {
        r &= ~(U64(1) << (at + i));
        r |= (a >> i & 1) << (at + i);
      }
      return r;
    });
    check("brev" + type, bits, [&](U64 a, U64, U64, U64) {
      U64 r = 0;
      for (U64 i = 0; i < bits; ++i)
        r |= (a >> i & 1) << (bits - 1 - i);
      return r;
    });
    check("popc" + type, 32, [&](U64 a, U64, U64, U64) {
      U64 r = 0;
      for (U64 i = 0; i < bits; ++i)
        r += a >> i & 1;
      return r;
    });
    check("clz" + type, 32, [&](U64 a, U64, U64, U64) {
      U64 r = 0;
      while (r < bits && !(a >> (bits - 1 - r) & 1))
        ++r;
      return r;
    });
  }
  check("fns.b32", 32, [](U64 m, U64 base, U64 offset, U64) {
    const std::int32_t n = static_cast<std::int32_t>(offset);
    if (base > 31)
      return U64(0xFFFFFFFF);
    if (n == 0)
      return m >> base & 1 ? base : U64(0xFFFFFFFF);
    std::int64_t left = std::abs(std::int64_t(n));
    for (std::int64_t i = static_cast<std::int64_t>(base); i >= 0 && i < 32; i += n > 0 ? 1 : -1)
      if (m >> i & 1 && --left == 0)
        return U64(i);
    return U64(0xFFFFFFFF);
  });
  for (bool wraps : {false, true}) {
    const std::string mode = wraps ? ".wrap" : ".clamp";
    auto limit = [&](U64 x) { return wraps ? x % 32 : std::min<U64>(x, 32); };
    check("bmsk" + mode + ".b32", 32, [&](U64 a, U64 b, U64, U64) {
      U64 r = 0;
      for (U64 i = 0; i < limit(b); ++i)
        if (limit(a) + i < 32)
          r |= U64(1) << (limit(a) + i);
      return r;
    });
    for (bool isSigned : {false, true})
      check("szext" + mode + (isSigned ? ".s32" : ".u32"), 32, [&](U64 a, U64 b, U64, U64) {
        const U64 n = limit(b);
        return n == 0 ? 0 : static_cast<U64>(value(a, static_cast<unsigned>(n), isSigned));
      });
  }
}

TEST(Integer, BytePermutes) {
  auto byte = [](U64 a, U64 b, U64 i) { return i < 4 ? a >> 8 * i & 255 : b >> 8 * (i - 4) & 255; };
  check("prmt.b32", 32, [&](U64 a, U64 b, U64 s, U64) {
    U64 r = 0;
    for (int i = 0; i < 4; ++i) {
      const U64 n = s >> 4 * i & 15, v = byte(a, b, n & 7);
      r |= (n & 8 ? (v & 128 ? 255 : 0) : v) << 8 * i;
    }
    return r;
  });
  // The tables of the ISA: byte numbers for selector 0..3, high byte first.
  const struct {
    const char *mode;
    int table[4][4];
  } modes[] = {{"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
               {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
               {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
               {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
               {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
               {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}}};
  for (const auto &m : modes)
    check(std::string("prmt.b32.") + m.mode, 32, [&](U64 a, U64 b, U64 s, U64) {
      U64 r = 0;
      for (int i = 0; i < 4; ++i)
        r |= byte(a, b, static_cast<U64>(m.table[s & 3][3 - i])) << 8 * i;
      return r;
    });
}

TEST(Integer, PackedHalves) {
  for (bool isSigned : {false, true}) {
    const std::string type = isSigned ? ".s16x2" : ".u16x2";
    auto each = [&](U64 a, U64 b, auto f) {
      return wrap(f(value(a, 16, isSigned), value(b, 16, isSigned)), 16) |
             wrap(f(value(a >> 16, 16, isSigned), value(b >> 16, 16, isSigned)), 16) << 16;
    };
    check("add" + type, 32, [&](U64 a, U64 b, U64, U64) { return each(a, b, [](I128 x, I128 y) { return x + y; }); });
    check("min" + type, 32, [&](U64 a, U64 b, U64, U64) { return each(a, b, [](I128 x, I128 y) { return std::min(x, y); }); });
    check("max" + type, 32, [&](U64 a, U64 b, U64, U64) { return each(a, b, [](I128 x, I128 y) { return std::max(x, y); }); });
    if (isSigned) {
      check("min.relu" + type, 32, [&](U64 a, U64 b, U64, U64) {
        return each(a, b, [](I128 x, I128 y) { return std::max<I128>(0, std::min(x, y)); });
      });
      check("max.relu" + type, 32, [&](U64 a, U64 b, U64, U64) {
        return each(a, b, [](I128 x, I128 y) { return std::max<I128>(0, std::max(x, y)); });
      });
    }
  }
  for (int types = 0; types < 8; ++types) {
    const bool d = types & 4, a = types & 2, b = types & 1;
    auto name = [](bool s) { return std::string(s ? ".s32" : ".u32"); };
    auto difference = [&](U64 x, U64 y, int i) {
      const I128 p = value(x >> 8 * i, 8, a), q = value(y >> 8 * i, 8, b);
      return p > q ? p - q : q - p;
    };
    const std::string suffix = name(d) + name(a) + name(b);
    check("vabsdiff4" + suffix + ".add", 32, [&](U64 x, U64 y, U64 z, U64) {
      I128 r = I128(z);
      for (int i = 0; i < 4; ++i)
        r += difference(x, y, i);
      return wrap(r, 32);
    });
    check("vabsdiff4" + suffix, 32, [&](U64 x, U64 y, U64, U64) {
      U64 r = 0;
      for (int i = 0; i < 4; ++i)
        r |= wrap(difference(x, y, i), 8) << 8 * i;
      return r;
    });
    check("vabsdiff4" + suffix + ".sat", 32, [&](U64 x, U64 y, U64, U64) {
      U64 r = 0;
      for (int i = 0; i < 4; ++i)
        r |= wrap(clampTo(difference(x, y, i), 8, d), 8) << 8 * i;
      return r;
    });
  }
}

TEST(Integer, TargetsAndFormsAreChecked) {
  EXPECT_FALSE(HandlerHarness("add.u16x2", {}, "sm_89").ok());
  EXPECT_TRUE(HandlerHarness("add.u16x2", {}, "sm_90").ok());
  EXPECT_FALSE(HandlerHarness("min.relu.s32", {}, "sm_89").ok());
  for (const char *bad : {"add.sat.u32", "add.f99", "mul.u32", "mul.wide.u64", "shl.u32", "frobnicate.b32", "lop3.b64",
                          "setp.lt.b32", "setp.lo.s32", "setp.equ.u32", "setp.lt.ftz.f64", "redux.sync.min.f32"}) {
    HandlerHarness h(bad, {}, "sm_90a");
    EXPECT_FALSE(h.ok()) << bad;
    EXPECT_FALSE(h.why().empty()) << bad;
  }
}

} // namespace
