// f32 and f64 arithmetic, min, max and sign operations against exact integers (f32) and the host's own instructions in
// its own rounding modes (division, roots, f64), at every CPU level.
#include "tests/emulator/FloatReference.h"

#include <cfenv>
#include <cmath>

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

const std::vector<std::string> roundings = {"rn", "rz", "rm", "rp"};

std::string joined(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string &p : parts)
    if (!p.empty())
      out += (out.empty() ? "" : ".") + p;
  return out;
}

/// a op b, or a * b + c, of f32 exactly.
Exact exactOp(const std::string &op, const Case &c, Mode mode, bool ftz, const Format &fa = f32Format,
              const Format &fb = f32Format) {
  auto bits = [&](unsigned i, const Format &f) { return ftz ? flushBits(f, c[i]) : c[i]; };
  if (op == "mul")
    return product(partsOf(fa, bits(0, fa)), partsOf(fb, bits(1, fb)));
  if (op == "fma" || op == "mad")
    return sum(product(partsOf(fa, bits(0, fa)), partsOf(fb, bits(1, fb))), exactOf(f32Format, bits(2, f32Format)),
               mode);
  const Exact b = exactOf(fb, bits(1, fb));
  return sum(exactOf(fa, bits(0, fa)), op == "sub" ? negated(b) : b, mode);
}

class HostRounding {
public:
  explicit HostRounding(Mode m) : before(std::fegetround()) {
    std::fesetround(m == Mode::Zero   ? FE_TOWARDZERO
                    : m == Mode::Down ? FE_DOWNWARD
                    : m == Mode::Up   ? FE_UPWARD
                                      : FE_TONEAREST);
  }
  ~HostRounding() { std::fesetround(before); }

private:
  int before;
};

/// One host operation, out of the optimiser's reach.
template <typename T> [[gnu::noinline]] T hostOp(const std::string &op, const volatile T *in, Mode mode) {
  HostRounding rounding(mode);
  volatile T a = in[0], b = in[1], c = in[2], r = 0;
  if (op == "add")
    r = a + b;
  else if (op == "sub")
    r = a - b;
  else if (op == "mul")
    r = a * b;
  else if (op == "div")
    r = a / b;
  else if (op == "rcp")
    r = T(1) / a;
  else if (op == "sqrt")
    r = std::sqrt(a);
  else
    r = std::fma(a, b, c);
  return r;
}
U64 hostBits32(const std::string &op, const Case &c, Mode mode, bool ftz) {
  volatile float in[3];
  for (unsigned i = 0; i < 3; ++i)
    in[i] = std::bit_cast<float>(static_cast<U32>(ftz ? flushBits(f32Format, c[i]) : c[i]));
  const float r = hostOp<float>(op, in, mode);
  if (std::isnan(r))
    return f32Format.nan;
  U64 bits = std::bit_cast<U32>(r);
  if (ftz && op != "sqrt") {
    // Tiny after rounding with an unbounded exponent: the same quotient at a larger scale.
    const float a = in[0], b = in[1];
    volatile float larger[3] = {(op == "rcp" ? 1.0f : a) * 0x1p100f, op == "rcp" ? a : b, 0};
    if (std::fabs(hostOp<float>("div", larger, mode)) < 0x1p-26f)
      bits &= 0x80000000u;
  }
  return bits;
}
U64 hostBits64(const std::string &op, const Case &c, Mode mode) {
  volatile double in[3];
  for (unsigned i = 0; i < 3; ++i)
    in[i] = std::bit_cast<double>(c[i]);
  const double r = hostOp<double>(op, in, mode);
  return std::isnan(r) ? f64Format.nan : std::bit_cast<U64>(r);
}

std::size_t randomCount() {
  return kiln::test::pick<std::size_t>(4000, 200000);
}

TEST(FloatTest, F32SumsAndProductsInEveryRounding) {
  const std::vector<Case> two = casesOf({f32Format, f32Format}, randomCount());
  const std::vector<Case> three = casesOf({f32Format, f32Format, f32Format}, randomCount());
  for (const std::string op : {"add", "sub", "mul", "fma", "mad"})
    for (const std::string &rnd : roundings)
      for (const std::string ftz : {"", "ftz"})
        for (const std::string sat : {"", "sat"}) {
          if (op == "mad" && (sat.empty() || rnd == "rz") && !kiln::test::isFullTier())
            continue; // the same handlers as fma; the full tier runs them all
          const Mode mode = modeOf(rnd);
          expectBits(joined({op, rnd, ftz, sat, "f32"}), op == "fma" || op == "mad" ? three : two, [&](const Case &c) {
            return roundTo(f32Format, exactOp(op, c, mode, !ftz.empty()), mode,
                           {.ftz = !ftz.empty(), .sat = !sat.empty()});
          });
          if (HasFatalFailure() || HasFailure())
            return;
        }
}

TEST(FloatTest, RoundToNearestIsTheDefault) {
  const std::vector<Case> two = casesOf({f32Format, f32Format}, 1000);
  for (const std::string op : {"add", "sub", "mul"})
    expectBits(op + ".f32", two,
               [&](const Case &c) { return roundTo(f32Format, exactOp(op, c, Mode::Near, false), Mode::Near); });
}

TEST(FloatTest, F32QuotientsAndRootsInEveryRounding) {
  const std::vector<Case> two = casesOf({f32Format, f32Format}, randomCount());
  const std::vector<Case> one = casesOf({f32Format}, randomCount());
  for (const std::string op : {"div", "rcp", "sqrt"})
    for (const std::string &rnd : roundings)
      for (const std::string ftz : {"", "ftz"}) {
        const std::vector<Case> &cases = op == "div" ? two : one;
        expectBits(joined({op, rnd, ftz, "f32"}), cases,
                   [&](const Case &c) { return hostBits32(op, c, modeOf(rnd), !ftz.empty()); });
        if (HasFailure())
          return;
      }
}

TEST(FloatTest, F64InEveryRounding) {
  const std::vector<Case> one = casesOf({f64Format}, randomCount());
  std::vector<Case> two = casesOf({f64Format, f64Format}, randomCount());
  std::vector<Case> three = casesOf({f64Format, f64Format, f64Format}, randomCount());
  std::mt19937_64 rng(5);
  for (unsigned i = 0; i < 20000; ++i) { // subnormal results, and sums of distant or cancelling parts
    const U64 a = rng() % 0x7ff0000000000000, e = a >> 52;
    const U64 other = ((1023 - e / 2 - rng() % 60) & 0x7ff) << 52;
    two.push_back({a, (rng() & 0x800fffffffffffff) | other});
    const double product = std::bit_cast<double>(a) * std::bit_cast<double>(two.back()[1]);
    three.push_back({a, two.back()[1], std::bit_cast<U64>(-product) + rng() % 3 - 1});
    three.push_back(
        {a, two.back()[1],
         std::bit_cast<U64>(std::ldexp(product, static_cast<int>(rng() % 280) - 140)) ^ (rng() & U64(1) << 63)});
  }
  for (const std::string op : {"add", "sub", "mul", "div", "fma", "mad", "rcp", "sqrt"})
    for (const std::string &rnd : roundings) {
      const std::vector<Case> &cases = op == "rcp" || op == "sqrt" ? one : op == "fma" || op == "mad" ? three : two;
      expectBits(joined({op, rnd, "f64"}), cases, [&](const Case &c) { return hostBits64(op, c, modeOf(rnd)); });
      if (HasFailure())
        return;
    }
}

TEST(FloatTest, MixedF32WithF16AndBf16) {
  for (const std::string type : {"f16", "bf16"}) {
    const Format &narrow = type == "f16" ? f16Format : bf16Format;
    for (const std::string op : {"add", "sub", "fma"})
      for (const std::string &rnd : roundings)
        for (const std::string sat : {"", "sat"}) {
          const Mode mode = modeOf(rnd);
          const std::vector<Case> cases =
              op == "fma" ? casesOf({narrow, narrow, f32Format}, 2000) : casesOf({narrow, f32Format}, 2000);
          expectBits(joined({op, rnd, sat, "f32", type}), cases, [&](const Case &c) {
            const Exact x =
                op == "fma" ? exactOp(op, c, mode, false, narrow, narrow) : exactOp(op, c, mode, false, narrow);
            return roundTo(f32Format, x, mode, {.sat = !sat.empty()});
          });
          if (HasFailure())
            return;
        }
  }
}

TEST(FloatTest, F32Pairs) {
  std::vector<Case> halves = casesOf({f32Format, f32Format, f32Format}, 4000);
  for (const std::string op : {"add", "sub", "mul", "fma"})
    for (const std::string &rnd : roundings)
      for (const std::string ftz : {"", "ftz"}) {
        const Mode mode = modeOf(rnd);
        std::vector<Case> cases;
        for (std::size_t i = 0; i < halves.size(); ++i) {
          Case c{};
          for (unsigned k = 0; k < 3; ++k)
            c[k] = halves[i][k] | halves[(i * 7 + 1) % halves.size()][k] << 32;
          cases.push_back(c);
        }
        expectBits(joined({op, rnd, ftz, "f32x2"}), cases, [&](const Case &c) {
          U64 r = 0;
          for (unsigned h = 0; h < 64; h += 32) {
            const Case part{c[0] >> h & 0xffffffff, c[1] >> h & 0xffffffff, c[2] >> h & 0xffffffff};
            r |= roundTo(f32Format, exactOp(op, part, mode, !ftz.empty()), mode, {.ftz = !ftz.empty()}) << h;
          }
          return r;
        });
        if (HasFailure())
          return;
      }
}

/// min or max of two by the words of the specification.
U64 extremeOf(const Format &f, bool max, bool nan, U64 a, U64 b) {
  const bool nanA = partsOf(f, a).nan, nanB = partsOf(f, b).nan;
  if ((nan && (nanA || nanB)) || (nanA && nanB))
    return f.nan;
  if (nanA || nanB)
    return nanA ? b : a;
  const Exact x = exactOf(f, a), y = exactOf(f, b);
  bool less; // a < b, -0 < +0
  if (x.negative != y.negative)
    less = x.negative;
  else if (x.infinite || y.infinite)
    less = x.infinite == y.infinite ? false : x.infinite == x.negative;
  else
    less = x.negative ? x.magnitude > y.magnitude : x.magnitude < y.magnitude;
  return less != max ? a : b;
}

TEST(FloatTest, MinMax) {
  const std::vector<Case> two = casesOf({f32Format, f32Format}, randomCount());
  const std::vector<Case> three = casesOf({f32Format, f32Format, f32Format}, randomCount());
  for (const bool max : {false, true})
    for (const std::string ftz : {"", "ftz"})
      for (const std::string nan : {"", "NaN"})
        for (const std::string form : {"two", "xorsign.abs", "three", "abs"}) {
          const std::string opcode =
              joined({max ? "max" : "min", ftz, nan, form == "xorsign.abs" || form == "abs" ? form : "", "f32"});
          const bool triple = form == "three" || form == "abs";
          expectBits(
              opcode, triple ? three : two,
              [&](const Case &c) {
                U64 in[3];
                for (unsigned i = 0; i < 3; ++i) {
                  in[i] = ftz.empty() ? c[i] : flushBits(f32Format, c[i]);
                  if (form == "abs" || form == "xorsign.abs")
                    in[i] &= 0x7fffffff;
                }
                U64 r = extremeOf(f32Format, max, !nan.empty(), in[0], in[1]);
                if (triple)
                  r = extremeOf(f32Format, max, !nan.empty(), r, in[2]);
                if (form == "xorsign.abs" && r != f32Format.nan)
                  r |= (c[0] ^ c[1]) & 0x80000000;
                return r;
              },
              triple ? std::vector<unsigned>{4, 4, 4, 4} : std::vector<unsigned>{4, 4, 4});
          if (HasFailure())
            return;
        }
  const std::vector<Case> doubles = casesOf({f64Format, f64Format}, randomCount());
  for (const bool max : {false, true})
    expectBits(max ? "max.f64" : "min.f64", doubles, [&](const Case &c) {
      const double a = std::bit_cast<double>(c[0]), b = std::bit_cast<double>(c[1]);
      if (std::isnan(a) && std::isnan(b))
        return f64Format.nan;
      if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) ? c[1] : c[0];
      const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
      return less != max ? c[0] : c[1];
    });
}

TEST(FloatTest, SignsAndProperties) {
  const std::vector<Case> singles = casesOf({f32Format}, 2000), doubles = casesOf({f64Format}, 2000);
  const U64 sign = U64(1) << 63;
  expectBits("abs.f32", singles, [](const Case &c) { return c[0] & 0x7fffffff; });
  expectBits("neg.f32", singles, [](const Case &c) { return c[0] ^ 0x80000000; });
  expectBits("abs.ftz.f32", singles, [](const Case &c) { return flushBits(f32Format, c[0]) & 0x7fffffff; });
  expectBits("neg.ftz.f32", singles, [](const Case &c) { return flushBits(f32Format, c[0]) ^ 0x80000000; });
  expectBits("abs.f64", doubles, [&](const Case &c) { return c[0] & ~sign; });
  expectBits("neg.f64", doubles, [&](const Case &c) { return c[0] ^ sign; });
  expectBits("copysign.f32", casesOf({f32Format, f32Format}, 0),
             [](const Case &c) { return (c[0] & 0x80000000) | (c[1] & 0x7fffffff); });
  expectBits("copysign.f64", casesOf({f64Format, f64Format}, 0),
             [&](const Case &c) { return (c[0] & sign) | (c[1] & ~sign); });
  const std::vector<std::pair<std::string, std::function<bool(double, int)>>> properties = {
      {"finite", [](double x, int) { return std::isfinite(x); }},
      {"infinite", [](double x, int) { return std::isinf(x); }},
      {"number", [](double x, int) { return !std::isnan(x); }},
      {"notanumber", [](double x, int) { return std::isnan(x); }},
      {"normal", [](double x, int kind) { return x == 0 || kind == FP_NORMAL; }},
      {"subnormal", [](double, int kind) { return kind == FP_SUBNORMAL; }},
  };
  for (const auto &[name, holds] : properties) {
    expectBits("testp." + name + ".f32", singles, [&](const Case &c) {
      const float x = std::bit_cast<float>(static_cast<U32>(c[0]));
      return holds(x, std::fpclassify(x)) ? 0xffffffffull : 0;
    });
    expectBits("testp." + name + ".f64", doubles, [&](const Case &c) {
      const double x = std::bit_cast<double>(c[0]);
      return holds(x, std::fpclassify(x)) ? 0xffffffffull : 0;
    });
  }
}

/// Values that the assembler's constant folder gave (ptxas 13.0, sm_90a).
TEST(FloatTest, FolderValues) {
  const struct {
    const char *opcode;
    Case in;
    U64 out;
  } facts[] = {
      {"add.rn.f32", {0x7f800000, 0xff800000}, 0x7fffffff},
      {"add.rn.f32", {0x7f800001, 0x3f800000}, 0x7fffffff},
      {"mul.rn.f32", {0x00000000, 0x7f800000}, 0x7fffffff},
      {"mul.rn.f32", {0x00ffffff, 0x3f000000}, 0x00800000},
      {"mul.rn.ftz.f32", {0x00ffffff, 0x3f000000}, 0},          // exactly below the normal numbers: flushed
      {"mul.rn.ftz.f32", {0x00800001, 0x3f7ffffe}, 0x00800000}, // rounds up to the smallest one: kept
      {"abs.f32", {0xffc12345}, 0x7fc12345},
      {"neg.f32", {0x7fc12345}, 0xffc12345},
      {"min.f64", {0x7ff8000000012345, 0x3ff0000000000000}, 0x3ff0000000000000},
      {"min.f64", {0x0000000000000000, 0x8000000000000000}, 0x8000000000000000},
      {"max.f64", {0x8000000000000000, 0x0000000000000000}, 0},
  };
  for (const auto &f : facts)
    expectBits(f.opcode, {f.in}, [&](const Case &) { return f.out; });
}

TEST(FloatTest, OlderTargetsAreRefused) {
  for (const auto &[opcode, target] :
       std::vector<std::pair<std::string, std::string>>{{"add.rn.f32x2", "sm_90a"},
                                                        {"add.f32.bf16", "sm_90a"},
                                                        {"min.NaN.f32", "sm_75"},
                                                        {"max.xorsign.abs.f32", "sm_80"}}) {
    HandlerHarness h(opcode, {}, target);
    EXPECT_FALSE(h.ok()) << opcode << " on " << target;
  }
  HandlerHarness three("min.f32", {}, "sm_90a", {4, 4, 4, 4});
  EXPECT_FALSE(three.ok());
  EXPECT_NE(three.why().find("sm_100"), std::string::npos) << three.why();
  HandlerHarness two("min.f32", {}, "sm_75", {4, 4, 4});
  EXPECT_TRUE(two.ok()) << two.why();
}

} // namespace
