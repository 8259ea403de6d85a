// The .approx functions against long double: every result is within half an ulp of its format plus the error of the f64
// polynomials, special values are those of the table in section 1.3 of the emulator specification, and all CPU levels
// give the same bits.
#include "tests/emulator/FloatReference.h"

#include <cmath>
#include <functional>

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

using Real = long double;

Real valueOf(const Format &f, U64 bits) {
  const Parts p = partsOf(f, bits);
  const Real m = p.nan ? NAN : p.infinite ? INFINITY : std::ldexp(static_cast<Real>(p.mantissa), p.exponent);
  return p.negative ? -m : m;
}

/// The result is the true value rounded, give or take 2^-30 of an ulp; overflow, underflow and flushing as they come.
void expectNear(const std::string &opcode, const Format &f, U64 got, Real wanted, bool ftz) {
  if (std::isnan(wanted)) {
    EXPECT_EQ(got, f.nan) << opcode;
    return;
  }
  const U64 sign = std::signbit(wanted) ? f.sign() : 0;
  if (std::isinf(wanted)) {
    EXPECT_EQ(got, sign | f.topCode) << opcode << std::hex << " " << got;
    return;
  }
  const Real magnitude = std::fabs(wanted);
  const Real smallest = std::ldexp(Real(1), f.minExponent),
             ulpAtTop = std::ldexp(Real(1), f.bias() - static_cast<int>(f.mantissa));
  if (ftz && magnitude < smallest * Real(0.999999)) {
    EXPECT_EQ(got, sign) << opcode << std::hex << " " << got << " is not flushed";
    return;
  }
  EXPECT_EQ(got & f.sign(), sign) << opcode << std::hex << " " << got;
  const int e = magnitude < smallest ? f.minExponent : std::ilogb(magnitude);
  const Real ulp = std::ldexp(Real(1), e - static_cast<int>(f.mantissa));
  const Real result = std::fabs(valueOf(f, got));
  if (std::isinf(result)) {
    EXPECT_GE(magnitude, std::ldexp(Real(2), f.bias()) - ulpAtTop * Real(0.5001)) << opcode;
    return;
  }
  if (ftz && result == 0) // just below the smallest normal value
    return;
  EXPECT_LE(std::fabs(result - magnitude), ulp * (Real(0.5) + std::ldexp(Real(1), -16)))
      << opcode << std::hex << " " << got;
}

/// Runs the opcode on the cases, checks each result against `truth` and the levels against each other.
void expectFunction(const std::string &opcode, const Format &f, const std::vector<Case> &cases,
                    const std::function<Real(const Case &)> &truth, bool ftz) {
  std::vector<U64> first(cases.size());
  std::vector<char> known(cases.size(), 0);
  runCases(opcode, cases, [&](std::size_t i, U64 got) {
    if (known[i]) {
      EXPECT_EQ(got, first[i]) << opcode << ": the CPU levels differ";
      return;
    }
    known[i] = 1;
    first[i] = got;
    expectNear(opcode, f, got, truth(cases[i]), ftz);
  });
}

std::size_t randomCount() {
  return kiln::test::pick<std::size_t>(20000, 1000000);
}

/// Random values with exponents in [low, high], and the edges.
std::vector<Case> spread(const Format &f, int low, int high, std::size_t count) {
  std::vector<Case> out = casesOf({f}, 0);
  std::mt19937_64 rng(41);
  for (std::size_t i = 0; i < count; ++i) {
    const U64 e = static_cast<U64>(f.bias() + low + static_cast<int>(rng() % static_cast<U64>(high - low + 1)));
    out.push_back({(rng() & f.sign()) | e << f.mantissa | (rng() & ((U64(1) << f.mantissa) - 1))});
  }
  return out;
}
std::vector<Case> everyHalf() {
  std::vector<Case> out;
  for (U64 b = 0; b < 0x10000; ++b)
    out.push_back({b});
  return out;
}

struct Function {
  const char *name;
  Real (*truth)(Real);
  int low, high; ///< exponents worth testing
};
const Function singleFunctions[] = {
    {"rcp", [](Real x) { return 1 / x; }, -126, 127},
    {"sqrt", [](Real x) { return x == 0 ? x : std::sqrt(x); }, -126, 127},
    {"rsqrt", [](Real x) { return 1 / std::sqrt(x); }, -126, 127},
    {"ex2", [](Real x) { return std::exp2(x); }, -30, 8},
    {"lg2", [](Real x) { return x == 0 ? -INFINITY : std::log2(x); }, -126, 127},
};

TEST(ApproximateTest, F32Functions) {
  for (const Function &fn : singleFunctions)
    for (const bool ftz : {false, true}) {
      std::vector<Case> cases = spread(f32Format, fn.low, fn.high, randomCount());
      const std::vector<Case> nearOne = spread(f32Format, -2, 1, randomCount() / 4);
      cases.insert(cases.end(), nearOne.begin(), nearOne.end());
      expectFunction(
          std::string(fn.name) + (ftz ? ".approx.ftz.f32" : ".approx.f32"), f32Format, cases,
          [&](const Case &c) { return fn.truth(valueOf(f32Format, ftz ? flushBits(f32Format, c[0]) : c[0])); }, ftz);
      if (HasFailure())
        return;
    }
  std::vector<Case> cases = spread(f32Format, -30, 5, randomCount());
  expectFunction(
      "tanh.approx.f32", f32Format, cases, [](const Case &c) { return std::tanh(valueOf(f32Format, c[0])); }, false);
}

TEST(ApproximateTest, SineAndCosine) {
  // Up to 2^22 by the reduction, beyond by the library; subnormal sources count as zero.
  for (const bool cosine : {false, true})
    for (const bool ftz : {false, true}) {
      std::vector<Case> cases = spread(f32Format, -20, 12, randomCount());
      for (const Case &c : spread(f32Format, 12, 127, 2000))
        cases.push_back(c);
      std::mt19937_64 rng(43);
      for (unsigned i = 0; i < 4000; ++i) { // next to multiples of pi/2: the result is small
        const float x = static_cast<float>(static_cast<double>(rng() % 2600000) * 1.5707963267948966);
        cases.push_back({std::bit_cast<U32>(x)});
      }
      const std::string opcode = std::string(cosine ? "cos" : "sin") + (ftz ? ".approx.ftz.f32" : ".approx.f32");
      expectFunction(
          opcode, f32Format, cases,
          [&](const Case &c) {
            const Real x = valueOf(f32Format, flushBits(f32Format, c[0]));
            return std::isinf(x) ? static_cast<Real>(NAN) : cosine ? std::cos(x) : std::sin(x);
          },
          ftz);
      if (HasFailure())
        return;
    }
}

TEST(ApproximateTest, Division) {
  std::vector<Case> cases = casesOf({f32Format, f32Format}, randomCount());
  for (const bool full : {false, true})
    for (const bool ftz : {false, true})
      expectFunction(
          std::string(full ? "div.full" : "div.approx") + (ftz ? ".ftz.f32" : ".f32"), f32Format, cases,
          [&](const Case &c) -> Real {
            const Real a = valueOf(f32Format, ftz ? flushBits(f32Format, c[0]) : c[0]);
            const Real b = valueOf(f32Format, ftz ? flushBits(f32Format, c[1]) : c[1]);
            if (!full && std::fabs(b) > std::ldexp(Real(1), 126))
              return std::isfinite(a) ? a * std::copysign(Real(0), b) : static_cast<Real>(NAN);
            return a / b;
          },
          ftz);
}

TEST(ApproximateTest, HalfFunctions) {
  const std::vector<Case> every = everyHalf();
  auto exponential = [](Real x) { return std::exp2(x); };
  auto tangent = [](Real x) { return std::tanh(x); };
  expectFunction(
      "ex2.approx.f16", f16Format, every, [&](const Case &c) { return exponential(valueOf(f16Format, c[0])); }, false);
  expectFunction(
      "tanh.approx.f16", f16Format, every, [&](const Case &c) { return tangent(valueOf(f16Format, c[0])); }, false);
  expectFunction(
      "tanh.approx.bf16", bf16Format, every, [&](const Case &c) { return tangent(valueOf(bf16Format, c[0])); }, false);
  expectFunction(
      "ex2.approx.ftz.bf16", bf16Format, every,
      [&](const Case &c) { return exponential(valueOf(bf16Format, flushBits(bf16Format, c[0]))); }, true);
  // The packed forms do both halves as the single ones do.
  for (const std::string form : {"ex2.approx.f16", "tanh.approx.f16", "tanh.approx.bf16", "ex2.approx.ftz.bf16"}) {
    std::vector<U64> single(0x10000);
    HandlerHarness h(form);
    ASSERT_TRUE(h.ok()) << h.why();
    for (U64 b = 0; b < 0x10000; b += warpSize) {
      LaneValues in;
      for (unsigned l = 0; l < warpSize; ++l)
        in[l] = b + l;
      h.setSource(0, in);
      h.run();
      const LaneValues out = h.result();
      for (unsigned l = 0; l < warpSize; ++l)
        single[b + l] = out[l];
    }
    std::vector<Case> pairs;
    for (U64 b = 0; b < 0x10000; ++b)
      pairs.push_back({b << 16 | (b * 40503 & 0xffff)});
    expectBits(form + "x2", pairs, [&](const Case &c) { return single[c[0] >> 16] << 16 | single[c[0] & 0xffff]; });
  }
}

TEST(ApproximateTest, F64Estimates) {
  std::vector<Case> cases = spread(f64Format, -1022, 1023, randomCount());
  for (const bool root : {false, true})
    runCases(root ? "rsqrt.approx.ftz.f64" : "rcp.approx.ftz.f64", cases, [&](std::size_t i, U64 got) {
      const U64 in = flushBits(f64Format, cases[i][0] & 0xffffffff00000000); // only the high word is read
      const bool nan = partsOf(f64Format, cases[i][0]).nan;                  // wherever its bits are
      const Real x = nan ? NAN : valueOf(f64Format, in), wanted = 1 / (root ? std::sqrt(x) : x);
      const double result = std::bit_cast<double>(got);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(result));
        return;
      }
      EXPECT_EQ(got & 0xffffffff, 0u) << "the low word is zero";
      if (std::isinf(wanted) || wanted == 0 || std::fabs(wanted) < 0x1.00001p-1022L)
        EXPECT_TRUE(std::isinf(wanted) ? Real(result) == wanted : result == 0 || std::fabs(result) < 0x1.00002p-1022)
            << result;
      else
        EXPECT_LE(std::fabs(Real(result) - wanted), std::fabs(wanted) * 0x1p-20L) << result;
    });
}

/// Special values of the specification's table, most of them from the assembler's constant folder (ptxas 13.0, sm_90a).
TEST(ApproximateTest, SpecialValues) {
  const struct {
    const char *opcode;
    Case in;
    U64 out;
  } facts[] = {
      {"rcp.approx.f32", {0x00000000}, 0x7f800000},
      {"rcp.approx.f32", {0x80000000}, 0xff800000},
      {"rcp.approx.f32", {0xff800000}, 0x80000000},
      {"rcp.approx.f32", {0x00200000}, 0x7f800000},
      {"rcp.approx.f32", {0x7f000000}, 0x00400000},
      {"rcp.approx.ftz.f32", {0x7f000000}, 0},
      {"rcp.approx.ftz.f32", {0x7e800001}, 0},
      {"rcp.approx.ftz.f32", {0x80000001}, 0xff800000},
      {"rsqrt.approx.f32", {0x80000000}, 0xff800000},
      {"rsqrt.approx.f32", {0x00000001}, 0x64b504f3},
      {"rsqrt.approx.f32", {0x7f800000}, 0},
      {"rsqrt.approx.f32", {0xbf800000}, 0x7fffffff},
      {"sqrt.approx.f32", {0x80000000}, 0x80000000},
      {"sqrt.approx.f32", {0x00000001}, 0x1a3504f3},
      {"sqrt.approx.ftz.f32", {0x00000001}, 0},
      {"ex2.approx.f32", {0xc3140000}, 0x00000002},
      {"ex2.approx.f32", {0xff800000}, 0},
      {"ex2.approx.f32", {0xc3160000}, 0},
      {"ex2.approx.f32", {0x43000000}, 0x7f800000},
      {"ex2.approx.f32", {0x00000001}, 0x3f800000},
      {"ex2.approx.ftz.f32", {0xc2fe0000}, 0},
      {"lg2.approx.f32", {0x00000001}, 0xc3150000},
      {"lg2.approx.f32", {0x80000000}, 0xff800000},
      {"lg2.approx.f32", {0xbf800000}, 0x7fffffff},
      {"lg2.approx.f32", {0x3f800000}, 0},
      {"sin.approx.f32", {0x80000000}, 0x80000000},
      {"sin.approx.f32", {0x00400000}, 0},
      {"sin.approx.f32", {0x00800000}, 0x00800000},
      {"sin.approx.f32", {0x7f800000}, 0x7fffffff},
      {"cos.approx.f32", {0x00000000}, 0x3f800000},
      {"cos.approx.f32", {0x3f800000}, 0x3f0a5140},
      {"sin.approx.f32", {0x3f800000}, 0x3f576aa4},
      {"tanh.approx.f32", {0xff800000}, 0xbf800000},
      {"div.approx.f32", {0x3f800000, 0x7e800000}, 0x00800000},
      {"div.approx.f32", {0x3f800000, 0x7e800001}, 0},
      {"div.approx.f32", {0x7f000000, 0x7f000000}, 0},
      {"div.approx.f32", {0xbf800000, 0x7f000000}, 0x80000000},
      {"div.approx.f32", {0x00000001, 0x00000001}, 0x3f800000},
      {"div.full.f32", {0x3f800000, 0x7f000000}, 0x00400000},
      {"div.full.ftz.f32", {0x3f800000, 0x7f000000}, 0},
      {"div.full.f32", {0x7f000000, 0x7f000000}, 0x3f800000},
  };
  for (const auto &f : facts)
    expectBits(f.opcode, {f.in}, [&](const Case &) { return f.out; });
}

} // namespace
