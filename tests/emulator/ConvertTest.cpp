// cvt against exact integers at every CPU level: all pairs of types and roundings, 16-bit and 8-bit sources
// exhaustively, destinations wider than their types (sources: OperandWidthTest.cpp, since the decoder narrows them).
#include "tests/emulator/FloatReference.h"

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

using I128 = __int128;

struct IntegerType {
  const char *name;
  unsigned bits;
  bool isSigned;
  I128 low() const { return isSigned ? -(I128(1) << (bits - 1)) : 0; }
  I128 high() const { return (I128(1) << (isSigned ? bits - 1 : bits)) - 1; }
  unsigned bytes() const { return bits / 8; }
  U64 mask() const { return bits == 64 ? ~U64(0) : (U64(1) << bits) - 1; }
  I128 value(U64 b) const {
    b &= mask();
    return isSigned && b >> (bits - 1) ? I128(b) - (I128(1) << bits) : I128(b);
  }
  /// The bits of a register of `bytes` bytes after a cvt to this type.
  U64 extended(I128 v, unsigned registerBytes) const {
    const U64 b = static_cast<U64>(value(static_cast<U64>(v)));
    return registerBytes >= 8 ? b : b & ((U64(1) << registerBytes * 8) - 1);
  }
};
const IntegerType integerTypes[] = {{"u8", 8, false},   {"s8", 8, true},   {"u16", 16, false}, {"s16", 16, true},
                                    {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};

struct FloatType {
  const char *name;
  Format format;
};
const FloatType floatTypes[] = {{"f16", f16Format}, {"bf16", bf16Format}, {"f32", f32Format}, {"f64", f64Format}};

std::size_t randomCount() {
  return kiln::test::pick<std::size_t>(1500, 200000);
}

std::vector<Case> integerCases(std::size_t random) {
  std::vector<Case> out;
  for (U64 b : {U64(0),
                U64(1),
                U64(2),
                U64(7),
                U64(31),
                U64(32),
                U64(127),
                U64(128),
                U64(255),
                U64(256),
                U64(32767),
                U64(32768),
                U64(65535),
                U64(65519),
                U64(65520),
                U64(2049),
                U64(257),
                U64(0x7fffffff),
                U64(0x80000000),
                U64(0xffffffff),
                U64(0x1000001),
                U64(0x7fffffffffffffff),
                U64(1) << 63,
                ~U64(0),
                (U64(1) << 53) + 1,
                (U64(1) << 40) + 1,
                U64(0x5555555555555555),
                U64(0xaaaaaaaaaaaaaaaa),
                U64(0xfffffffffffffbff),
                U64(0x8000000000000401)}) {
    out.push_back({b});
    out.push_back({U64(0) - b});
    out.push_back({b << 8 | 0x80});
  }
  std::mt19937_64 rng(17);
  for (std::size_t i = 0; i < random; ++i)
    out.push_back({rng() >> rng() % 64 ^ (rng() & 1 ? ~U64(0) : 0)});
  return out;
}

TEST(ConvertTest, IntegersOfEveryWidthIntoEveryRegister) {
  const std::vector<Case> cases = integerCases(500);
  for (const IntegerType &d : integerTypes)
    for (const IntegerType &s : integerTypes)
      for (const bool sat : {false, true}) {
        const bool narrows = d.low() > s.low() || d.high() < s.high();
        const std::string opcode = std::string(sat ? "cvt.sat." : "cvt.") + d.name + "." + s.name;
        if (sat && !narrows) {
          HandlerHarness h(opcode);
          EXPECT_FALSE(h.ok()) << opcode << ": the assembler rejects it";
          continue;
        }
        for (unsigned to : {2u, 4u, 8u})
          for (unsigned from : {2u, 4u, 8u}) {
            if (to < d.bytes() || from < s.bytes() || (from == 8) != (s.bytes() == 8))
              continue;
            expectBits(opcode, cases,
                       [&](const Case &c) {
                         const I128 v = s.value(c[0]);
                         return d.extended(sat ? std::clamp(v, d.low(), d.high()) : v, to);
                       },
                       {to, from});
            if (HasFailure())
              return;
          }
      }
}

/// x rounded to an integer, clamped.
U64 integerOf(const IntegerType &d, const Exact &x, Mode mode, bool wideNan) {
  if (x.nan)
    return wideNan ? U64(1) << (d.bits - 1) : 0;
  const bool huge = x.infinite || bitLength(x.magnitude) - fixedPoint > 66;
  const I128 n = huge ? I128(1) << 70
                      : I128(roundShift(x.magnitude, fixedPoint, mode, x.negative)) +
                            (bitLength(x.magnitude) - fixedPoint > 64 ? I128(1) << 64 : 0);
  return static_cast<U64>(std::clamp(x.negative ? -n : n, d.low(), d.high())) & d.mask();
}

TEST(ConvertTest, FloatToInteger) {
  for (const FloatType &s : floatTypes) {
    std::vector<Case> cases = casesOf({s.format}, randomCount());
    if (s.format.width == 16)
      for (U64 b = 0; b < 0x10000; ++b)
        cases.push_back({b});
    else
      for (unsigned e = 0; e < 70; ++e) // around the limits of each integer type, and halves
        for (int step = -3; step <= 3; ++step)
          for (U64 sign : {U64(0), s.format.sign()}) {
            cases.push_back({(static_cast<U64>(s.format.bias() + static_cast<int>(e)) << s.format.mantissa) +
                             static_cast<U64>(step) + sign});
            cases.push_back(
                {(static_cast<U64>(s.format.bias() + static_cast<int>(e)) << s.format.mantissa) +
                 (static_cast<U64>(2 * step + 1) << (s.format.mantissa > e ? s.format.mantissa - e - 1 : 0)) + sign});
          }
    for (const IntegerType &d : integerTypes) {
      if (s.format.mantissa == 7 && d.bits == 8)
        continue; // no such form
      for (const std::string rnd : {"rni", "rzi", "rmi", "rpi"})
        for (const std::string mods : {"", ".ftz", ".sat"}) {
          if ((!mods.empty() && s.format.mantissa == 7) || (mods == ".ftz" && s.format.width != 32))
            continue;
          const Mode mode = modeOf(rnd.substr(0, 2));
          const bool wideNan = d.bits == 64 || s.format.width == 64;
          const unsigned to = std::max(2u, d.bytes());
          expectBits("cvt." + rnd + mods + "." + d.name + "." + s.name, cases,
                     [&](const Case &c) {
                       const Exact x = exactOf(s.format, mods == ".ftz" ? flushBits(s.format, c[0]) : c[0]);
                       return d.extended(I128(integerOf(d, x, mode, wideNan)), to);
                     },
                     {to, s.format.width / 8});
          if (HasFailure())
            return;
        }
      // A wider register: sign- or zero-extended.
      if (d.bits < 64)
        expectBits(std::string("cvt.rzi.") + d.name + "." + s.name, casesOf({s.format}, 200),
                   [&](const Case &c) {
                     const bool wideNan = s.format.width == 64;
                     return d.extended(I128(integerOf(d, exactOf(s.format, c[0]), Mode::Zero, wideNan)), 8);
                   },
                   {8, s.format.width / 8});
    }
  }
}

TEST(ConvertTest, IntegerToFloat) {
  const std::vector<Case> cases = integerCases(randomCount());
  for (const FloatType &d : floatTypes)
    for (const IntegerType &s : integerTypes) {
      if (d.format.mantissa == 7 && s.bits == 8)
        continue;
      for (const std::string rnd : {"rn", "rz", "rm", "rp"})
        for (const std::string mods : {"", ".sat", ".ftz"}) {
          if ((!mods.empty() && d.format.mantissa == 7) || (mods == ".ftz" && d.format.width != 32))
            continue;
          const Mode mode = modeOf(rnd);
          const unsigned from = std::max(2u, s.bytes());
          expectBits("cvt." + rnd + mods + "." + d.name + "." + s.name, cases,
                     [&](const Case &c) {
                       const I128 v = s.value(c[0]);
                       return roundTo(d.format, exactOf(v < 0, static_cast<unsigned __int128>(v < 0 ? -v : v), 0), mode,
                                      {.sat = mods == ".sat"});
                     },
                     {d.format.width / 8, from});
          if (HasFailure())
            return;
        }
    }
}

/// A NaN that cvt between f32 and f64 or f32 and f32 keeps, quieted.
U64 keptNan(const Format &d, const Format &s, U64 b) {
  const U64 sign = b & s.sign() ? d.sign() : 0, payload = b & ((U64(1) << s.mantissa) - 1);
  const U64 moved =
      d.mantissa >= s.mantissa ? payload << (d.mantissa - s.mantissa) : payload >> (s.mantissa - d.mantissa);
  return sign | d.topCode | U64(1) << (d.mantissa - 1) | moved;
}

TEST(ConvertTest, FloatToNarrowerFloat) {
  for (const FloatType &s : floatTypes)
    for (const FloatType &d : floatTypes) {
      const bool sixteen = s.format.width == 16 && d.format.width == 16 && s.format.mantissa != d.format.mantissa;
      if (s.format.width <= d.format.width && !sixteen)
        continue;
      std::vector<Case> cases = casesOf({s.format}, randomCount());
      if (sixteen)
        for (U64 b = 0; b < 0x10000; ++b)
          cases.push_back({b});
      std::mt19937_64 rng(23);
      for (unsigned i = 0; i < 20000; ++i) { // next to ties of the destination, subnormal ones included
        const U64 target = rng() % d.format.topCode;
        const Exact x = exactOf(d.format, target);
        const U64 tie =
            roundTo(s.format, x, Mode::Near) +
            (U64(1) << (s.format.mantissa > d.format.mantissa ? s.format.mantissa - d.format.mantissa - 1 : 0));
        cases.push_back({(tie + rng() % 3 - 1) | (rng() & 1 ? s.format.sign() : 0)});
      }
      std::vector<std::string> mods = {""};
      const bool bf = d.format.mantissa == 7 || s.format.mantissa == 7;
      if (!bf)
        mods.push_back(".sat");
      if (s.format.width == 32 || d.format.width == 32)
        mods.push_back(".ftz");
      for (const std::string rnd : {"rn", "rz", "rm", "rp"})
        for (const std::string &m : mods) {
          const Mode mode = modeOf(rnd);
          expectBits("cvt." + rnd + m + "." + d.name + "." + s.name, cases, [&](const Case &c) {
            // An H200 does not flush the source of a 16-bit result.
            const bool flushes = m == ".ftz" && s.format.width == 32 && d.format.width != 16;
            const U64 in = flushes ? flushBits(s.format, c[0]) : c[0];
            if (partsOf(s.format, in).nan && d.format.width == 32 && m != ".sat")
              return keptNan(d.format, s.format, in);
            return roundTo(d.format, exactOf(s.format, in), mode,
                           {.ftz = m == ".ftz" && d.format.width == 32, .sat = m == ".sat"});
          });
          if (HasFailure())
            return;
        }
    }
}

TEST(ConvertTest, FloatToWiderOrSameFloat) {
  struct Form {
    const char *mods, *d, *s;
  };
  const Form forms[] = {
      {"", "f32", "f16"},         {"ftz.", "f32", "f16"}, {"sat.", "f32", "f16"}, {"ftz.sat.", "f32", "f16"},
      {"", "f64", "f16"},         {"sat.", "f64", "f16"}, {"", "f32", "bf16"},    {"ftz.", "f32", "bf16"},
      {"rz.", "f32", "bf16"},     {"", "f64", "bf16"},    {"", "f64", "f32"},     {"ftz.", "f64", "f32"},
      {"sat.", "f64", "f32"},     {"", "f32", "f32"},     {"ftz.", "f32", "f32"}, {"sat.", "f32", "f32"},
      {"ftz.sat.", "f32", "f32"}, {"", "f64", "f64"},     {"sat.", "f64", "f64"}, {"", "f16", "f16"},
      {"sat.", "f16", "f16"},     {"", "bf16", "bf16"},   {"", "f16", "bf16"},    {"", "bf16", "f16"}};
  auto formatOf = [](std::string_view name) {
    for (const FloatType &t : floatTypes)
      if (name == t.name)
        return t.format;
    return Format{};
  };
  for (const Form &form : forms) {
    const std::string mods = form.mods;
    const Format d = formatOf(form.d), s = formatOf(form.s);
    std::vector<Case> cases = casesOf({s}, randomCount());
    if (s.width == 16)
      for (U64 b = 0; b < 0x10000; ++b)
        cases.push_back({b});
    const bool ftz = mods.starts_with("ftz"), sat = mods.find("sat") != std::string::npos;
    expectBits("cvt." + mods + form.d + "." + form.s, cases, [&](const Case &c) {
      const U64 in = ftz && s.width == 32 ? flushBits(s, c[0]) : c[0];
      const bool same = d.width == s.width && d.mantissa == s.mantissa;
      if (same && !sat)
        return in;
      if (partsOf(s, in).nan && !sat)
        return d.width == 16   ? d.nan
               : s.width == 16 ? (d.width == 32 ? U64(0x7fffffff) : U64(0x7fffffffe0000000)) // the assembler's folder
                               : keptNan(d, s, in);
      if (same && d.width == 64) { // .sat; too small for the exact values
        const double x = std::bit_cast<double>(in);
        return std::bit_cast<U64>(x > 0 ? std::min(x, 1.0) : 0.0);
      }
      const U64 r = roundTo(d, exactOf(s, in), Mode::Near, {.sat = sat});
      return ftz && d.width == 32 ? flushBits(d, r) : r;
    });
    if (HasFailure())
      return;
  }
}

TEST(ConvertTest, IntegralValuesOfTheSameType) {
  for (const FloatType &t : floatTypes) {
    std::vector<Case> cases = casesOf({t.format}, randomCount());
    if (t.format.width == 16)
      for (U64 b = 0; b < 0x10000; ++b)
        cases.push_back({b});
    for (const std::string rnd : {"rni", "rzi", "rmi", "rpi"})
      for (const std::string mods : {"", ".ftz", ".sat"}) {
        if ((mods == ".ftz" && t.format.width != 32) || (mods == ".sat" && t.format.mantissa == 7))
          continue;
        const Mode mode = modeOf(rnd.substr(0, 2));
        expectBits("cvt." + rnd + mods + "." + t.name + "." + t.name, cases, [&](const Case &c) {
          Exact x = exactOf(t.format, mods == ".ftz" ? flushBits(t.format, c[0]) : c[0]);
          if (!x.nan && !x.infinite && bitLength(x.magnitude) - fixedPoint < 60)
            x.magnitude = Fixed(roundShift(x.magnitude, fixedPoint, mode, x.negative)) << fixedPoint;
          else if (!x.nan && !x.infinite && t.format.width == 64 && mods != ".sat")
            return c[0]; // large: integral already
          return roundTo(t.format, x, Mode::Near, {.sat = mods == ".sat"});
        });
        if (HasFailure())
          return;
      }
  }
}

TEST(ConvertTest, ReluAndSatfinite) {
  const std::vector<Case> cases = casesOf({f32Format, f32Format}, randomCount());
  for (const std::string type : {"f16", "bf16"})
    for (const std::string rnd : {"rn", "rz"})
      for (const std::string mods : {"", ".relu", ".satfinite", ".relu.satfinite"}) {
        const Format &f = type == "f16" ? f16Format : bf16Format;
        const RoundOptions options{.relu = mods.find("relu") != std::string::npos,
                                   .finite = mods.find("satfinite") != std::string::npos};
        auto one = [&](U64 b) { return roundTo(f, exactOf(f32Format, b), modeOf(rnd), options); };
        expectBits("cvt." + rnd + mods + "." + type + ".f32", cases, [&](const Case &c) { return one(c[0]); });
        expectBits("cvt." + rnd + mods + "." + type + "x2.f32", cases,
                   [&](const Case &c) { return one(c[0]) << 16 | one(c[1]); });
        if (HasFailure())
          return;
      }
}

TEST(ConvertTest, Tf32) {
  const Format tf32{19, 10, -126, 0x7f800000 >> 13, 0x7fffe000 >> 13};
  std::vector<Case> cases = casesOf({f32Format}, randomCount());
  for (U64 b = 0; b < 0x10000; ++b)
    cases.push_back({b << 12 | (b & 1)});
  for (const std::string mods : {"rna", "rna.satfinite", "rn", "rz", "rn.relu", "rz.relu", "rn.satfinite",
                                 "rz.satfinite", "rn.relu.satfinite", "rz.relu.satfinite"})
    expectBits("cvt." + mods + ".tf32.f32", cases, [&](const Case &c) {
      const RoundOptions options{.relu = mods.find("relu") != std::string::npos,
                                 .finite = mods.find("satfinite") != std::string::npos};
      if (mods.starts_with("rna") && partsOf(f32Format, c[0]).nan) { // an H200 only cuts the low bits off
        const U64 cut = c[0] & 0xffffe000;
        return (cut & 0x7fffffff) == 0x7f800000 && options.finite ? (cut & 0x80000000) | 0x7f7fe000 : cut;
      }
      return roundTo(tf32, exactOf(f32Format, c[0]), modeOf(mods.substr(0, mods.find('.'))), options) << 13;
    });
  // The assembler's folder.
  const std::pair<U64, U64> facts[] = {
      {0x3f801000, 0x3f802000}, {0x3f803000, 0x3f804000}, {0x7f7fffff, 0x7f800000}, {0x00001000, 0x2000}, {0xfff, 0}};
  for (const auto &[in, out] : facts)
    expectBits("cvt.rna.tf32.f32", {{in}}, [out = out](const Case &) { return out; });
  expectBits("cvt.rna.satfinite.tf32.f32", {{0x7f800000}}, [](const Case &) { return U64(0x7f7fe000); });
}

struct SmallType {
  const char *name;
  Format format;
  unsigned pitch;
};
const SmallType smallTypes[] = {{"e4m3x2", {8, 3, -6, 0x7f, 0x7f}, 8},
                                {"e5m2x2", {8, 2, -14, 0x7c, 0x7f}, 8},
                                {"e2m3x2", {6, 3, 0, 0x20, 0x1f}, 8},
                                {"e3m2x2", {6, 2, -2, 0x20, 0x1f}, 8},
                                {"e2m1x2", {4, 1, 0, 0x8, 0x7}, 4}};

TEST(ConvertTest, SmallFormats) {
  for (const SmallType &t : smallTypes) {
    const std::string name = t.name;
    const bool eight = t.format.width == 8;
    std::vector<Case> singles = casesOf({f32Format, f32Format}, randomCount());
    std::mt19937_64 rng(29);
    for (unsigned i = 0; i < 20000; ++i) { // next to ties
      const U64 code = rng() % t.format.topCode;
      const U64 b = roundTo(f32Format, exactOf(t.format, code), Mode::Near) + (U64(1) << (22 - t.format.mantissa)) +
                    rng() % 3 - 1;
      singles.push_back({b, b ^ 0x80000000});
    }
    for (const bool relu : {false, true}) {
      const RoundOptions options{.relu = relu, .finite = true};
      const std::string mods = relu ? "cvt.rn.satfinite.relu." : "cvt.rn.satfinite.";
      expectBits(mods + name + ".f32", singles, [&](const Case &c) {
        return roundTo(t.format, exactOf(f32Format, c[0]), Mode::Near, options) << t.pitch |
               roundTo(t.format, exactOf(f32Format, c[1]), Mode::Near, options);
      });
      if (eight || t.pitch == 4) {
        std::vector<Case> halves;
        for (U64 b = 0; b < 0x10000; ++b)
          halves.push_back({b << 16 | (b * 40503 & 0xffff)});
        expectBits(mods + name + ".f16x2", halves, [&](const Case &c) {
          return roundTo(t.format, exactOf(f16Format, c[0] >> 16), Mode::Near, options) << t.pitch |
                 roundTo(t.format, exactOf(f16Format, c[0] & 0xffff), Mode::Near, options);
        });
      }
      std::vector<Case> codes;
      for (U64 b = 0; b < 0x10000; ++b)
        codes.push_back({b});
      expectBits(std::string(relu ? "cvt.rn.relu" : "cvt.rn") + ".f16x2." + name, codes, [&](const Case &c) {
        auto one = [&](U64 code) {
          code &= (t.format.sign() << 1) - 1;
          Exact x = exactOf(t.format, code);
          if (name == "e4m3x2" && (code & 0x7f) == 0x7f) // no infinity
            x.nan = true;
          return roundTo(f16Format, x, Mode::Near, {.relu = relu});
        };
        return one(c[0] >> t.pitch) << 16 | one(c[0] & ((U64(1) << t.pitch) - 1));
      });
      if (HasFailure())
        return;
    }
  }
}

/// Values of the CUDA header's host conversions.
TEST(ConvertTest, Fp8HeaderValues) {
  const struct {
    const char *opcode;
    Case in;
    U64 out;
  } facts[] = {{"cvt.rn.satfinite.e4m3x2.f32", {0x43e00000, 0x43e80000}, 0x7e7e}, // 448, 464
               {"cvt.rn.satfinite.e4m3x2.f32", {0xff800000, 0xffc00000}, 0xfe7f},
               {"cvt.rn.satfinite.e4m3x2.f32", {0x3b000000, 0x3a800000}, 0x0100}, // 2^-9, 2^-10: a tie to 0
               {"cvt.rn.satfinite.e5m2x2.f32", {0x7f800000, 0xff800001}, 0x7b7f},
               {"cvt.rn.satfinite.e5m2x2.f32", {0x47600000, 0x37800000}, 0x7b01}}; // 57344, 2^-16
  for (const auto &f : facts)
    expectBits(f.opcode, {f.in}, [&](const Case &) { return f.out; });
}

TEST(ConvertTest, Exponents) {
  const std::vector<Case> cases = casesOf({f32Format, f32Format}, randomCount());
  auto code = [](U64 b, bool up, bool finite) -> U64 {
    const Exact x = exactOf(f32Format, b & 0x7fffffff);
    if (x.nan)
      return 255;
    if (x.infinite)
      return finite ? 254 : 255;
    // The least power of two >= |x|, or the greatest one <= |x|; at least 2^-127.
    const int length = bitLength(x.magnitude);
    int e = length - 1 - fixedPoint;
    if (up && length && x.magnitude != Fixed(1) << (length - 1))
      ++e;
    const int c = length == 0 ? 0 : std::max(e + 127, 0);
    return static_cast<U64>(finite ? std::min(c, 254) : c);
  };
  for (const bool up : {false, true})
    for (const bool finite : {false, true}) {
      const std::string mods = std::string(up ? "cvt.rp" : "cvt.rz") + (finite ? ".satfinite" : "") + ".ue8m0x2.";
      expectBits(mods + "f32", cases,
                 [&](const Case &c) { return code(c[0], up, finite) << 8 | code(c[1], up, finite); });
      expectBits(mods + "bf16x2", cases, [&](const Case &c) {
        return code(c[0] & 0xffff0000, up, finite) << 8 | code(c[0] << 16 & 0xffffffff, up, finite);
      });
    }
  std::vector<Case> codes;
  for (U64 b = 0; b < 0x10000; ++b)
    codes.push_back({b});
  expectBits("cvt.rn.bf16x2.ue8m0x2", codes, [](const Case &c) {
    auto one = [](U64 v) {
      return v == 255 ? U64(0x7fff) : roundTo(bf16Format, exactOf(false, 1, static_cast<int>(v) - 127), Mode::Near);
    };
    return one(c[0] >> 8) << 16 | one(c[0] & 255);
  });
}

TEST(ConvertTest, PackedIntegers) {
  std::vector<Case> cases;
  std::mt19937_64 rng(31);
  const U64 edges[] = {0,          1,          2,          3,          7,          8,          15,         16,
                       127,        128,        255,        256,        32767,      32768,      65535,      65536,
                       0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xffffff80, 0xffffff7f, 0xffff8000, 0xffff7fff};
  for (U64 a : edges)
    for (U64 b : edges)
      cases.push_back({a, b, rng() & 0xffffffff});
  for (const std::string type : {"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"}) {
    const unsigned bits = static_cast<unsigned>(std::stoul(type.substr(1)));
    const bool isSigned = type[0] == 's';
    const std::int64_t high = (std::int64_t(1) << (isSigned ? bits - 1 : bits)) - 1, low = isSigned ? -high - 1 : 0;
    expectBits("cvt.pack.sat." + type + (bits == 16 ? ".s32" : ".s32.b32"), cases, [&](const Case &c) {
      auto field = [&](U64 v) {
        return static_cast<U64>(std::clamp<std::int64_t>(static_cast<std::int32_t>(v), low, high)) &
               ((U64(1) << bits) - 1);
      };
      const U64 rest = bits == 16 ? 0 : c[2] << 2 * bits;
      return (field(c[0]) << bits | field(c[1]) | rest) & 0xffffffff;
    });
  }
}

TEST(ConvertTest, FormsThatDoNotExist) {
  for (const auto &[opcode, target] :
       std::vector<std::pair<std::string, std::string>>{{"cvt.rn.bf16.f32", "sm_75"},
                                                        {"cvt.rn.tf32.f32", "sm_80"},
                                                        {"cvt.rn.satfinite.e4m3x2.f32", "sm_87"},
                                                        {"cvt.rn.satfinite.e2m1x2.f32", "sm_100"},
                                                        {"cvt.rn.bf16.s32", "sm_89"},
                                                        {"cvt.f32.s32", "sm_100a"},
                                                        {"cvt.s32.f32", "sm_100a"},
                                                        {"cvt.f16.f32", "sm_100a"}}) {
    HandlerHarness h(opcode, {}, target);
    EXPECT_FALSE(h.ok()) << opcode << " on " << target;
  }
  HandlerHarness stochastic("cvt.rs.f16x2.f32");
  EXPECT_FALSE(stochastic.ok());
  EXPECT_NE(stochastic.why().find("stochastic"), std::string::npos) << stochastic.why();
}

} // namespace
