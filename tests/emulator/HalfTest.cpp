// f16 and bf16 arithmetic, single and packed, against exact integers at every CPU level: all values of one operand,
// dense or random others, and sums right next to a tie.
#include "tests/emulator/FloatReference.h"

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::emulator::test;

namespace {

Exact exactOp(const std::string &op, const Format &f, const Case &c, bool ftz) {
  U64 in[3];
  for (unsigned i = 0; i < 3; ++i)
    in[i] = ftz ? flushBits(f, c[i]) : c[i];
  if (op == "mul")
    return product(partsOf(f, in[0]), partsOf(f, in[1]));
  if (op == "fma")
    return sum(product(partsOf(f, in[0]), partsOf(f, in[1])), exactOf(f, in[2]), Mode::Near);
  const Exact b = exactOf(f, in[1]);
  return sum(exactOf(f, in[0]), op == "sub" ? negated(b) : b, Mode::Near);
}

const Format &formatOf(const std::string &type) {
  return type.starts_with("bf16") ? bf16Format : f16Format;
}

/// Applies a reference on 16-bit values to the halves of packed cases.
Reference onHalves(Reference half) {
  return [half](const Case &c) {
    Case low{}, high{};
    for (unsigned i = 0; i < 4; ++i) {
      low[i] = c[i] & 0xffff;
      high[i] = c[i] >> 16 & 0xffff;
    }
    return half(high) << 16 | half(low);
  };
}
/// Cases of 16-bit values two by two.
std::vector<Case> pairedCases(const std::vector<Case> &cases) {
  std::vector<Case> out;
  for (std::size_t i = 0; i < cases.size(); i += 2) {
    Case c = cases[i];
    for (unsigned k = 0; k < 4; ++k)
      c[k] |= cases[(i * 5 + 3) % cases.size()][k] << 16;
    out.push_back(c);
  }
  return out;
}
/// Checks `<opcode>.<type>` and its packed form.
void expectBoth(const std::string &opcode, const std::string &type, const std::vector<Case> &cases,
                const Reference &reference) {
  expectBits(opcode + "." + type, cases, reference);
  if (!::testing::Test::HasFailure())
    expectBits(opcode + "." + type + "x2", pairedCases(cases), onHalves(reference));
}

/// Products that lie half-way between two values, with an addend that decides: rounding twice goes wrong here.
void addTies(std::vector<Case> &cases, const Format &f, std::size_t count) {
  std::mt19937_64 rng(11);
  const U64 mantissaMask = (U64(1) << f.mantissa) - 1;
  while (count) {
    const U64 a = (rng() & mantissaMask) | static_cast<U64>(f.bias() + static_cast<int>(rng() % 8)) << f.mantissa;
    const U64 b = (rng() & mantissaMask) | static_cast<U64>(f.bias() + static_cast<int>(rng() % 4)) << f.mantissa;
    const Exact p = product(partsOf(f, a), partsOf(f, b));
    const int cut = bitLength(p.magnitude) - 1 - static_cast<int>(f.mantissa);
    if ((p.magnitude & ((Fixed(1) << cut) - 1)) != Fixed(1) << (cut - 1))
      continue;
    --count;
    // Any addend from the smallest subnormal up to the format's own precision.
    const U64 c = rng() % 4 == 0 ? 1 + rng() % 3 : rng() % (static_cast<U64>(f.bias() - 2) << f.mantissa);
    cases.push_back({a, b, c | (rng() & 1 ? f.sign() : 0)});
  }
}

std::size_t randomCount() {
  return kiln::test::pick<std::size_t>(10000, 1000000);
}

/// Every value of the first operand with a few of the second.
std::vector<Case> denseCases(const Format &f, std::size_t second) {
  std::vector<Case> out = casesOf({f, f}, randomCount());
  std::mt19937_64 rng(3);
  for (std::size_t k = 0; k < second; ++k)
    for (U64 a = 0; a < 0x10000; ++a)
      out.push_back({a, randomOf(f, rng)});
  return out;
}

TEST(HalfTest, SumsAndProducts) {
  for (const std::string type : {"f16", "bf16"}) {
    const Format &f = formatOf(type);
    const std::vector<Case> plain = denseCases(f, kiln::test::pick<std::size_t>(1, 16)), few = casesOf({f, f}, 2000);
    for (const std::string op : {"add", "sub", "mul"}) {
      expectBoth(op + ".rn", type, plain,
                 [&](const Case &c) { return roundTo(f, exactOp(op, f, c, false), Mode::Near); });
      expectBoth(op, type, few, [&](const Case &c) { return roundTo(f, exactOp(op, f, c, false), Mode::Near); });
      if (type == "f16")
        for (const std::string mods : {"ftz", "sat", "ftz.sat"}) {
          const RoundOptions options{.ftz = mods != "sat", .sat = mods != "ftz"};
          expectBoth(op + ".rn." + mods, type, few,
                     [&](const Case &c) { return roundTo(f, exactOp(op, f, c, options.ftz), Mode::Near, options); });
        }
      if (HasFailure())
        return;
    }
  }
}

TEST(HalfTest, FusedMultiplyAddRoundsOnce) {
  for (const std::string type : {"f16", "bf16"}) {
    const Format &f = formatOf(type);
    std::vector<Case> cases = casesOf({f, f, f}, randomCount());
    addTies(cases, f, kiln::test::pick<std::size_t>(5000, 200000));
    std::vector<std::string> forms = {"", "relu"};
    if (type == "f16")
      for (const char *m : {"ftz", "sat", "ftz.sat", "ftz.relu"})
        forms.push_back(m);
    for (const std::string &mods : forms) {
      const RoundOptions options{.ftz = mods.find("ftz") != std::string::npos,
                                 .sat = mods.find("sat") != std::string::npos,
                                 .relu = mods.find("relu") != std::string::npos};
      expectBoth("fma.rn" + (mods.empty() ? "" : "." + mods), type, cases,
                 [&](const Case &c) { return roundTo(f, exactOp("fma", f, c, options.ftz), Mode::Near, options); });
      if (HasFailure())
        return;
    }
    cases.push_back({0x7ff7, 0x3c00, 0x3c00});
    cases.push_back({0x3c00, 0xfff7, 0x3c00});
    cases.push_back({0x3c00, 0x3c00, 0x7ff7});
    for (const bool relu : {false, true})
      expectBoth(relu ? "fma.rn.oob.relu" : "fma.rn.oob", type, cases, [&](const Case &c) -> U64 {
        if ((c[0] & 0x7fff) == 0x7ff7 || (c[1] & 0x7fff) == 0x7ff7)
          return 0;
        return roundTo(f, exactOp("fma", f, c, false), Mode::Near, {.relu = relu});
      });
  }
}

/// The tests above would find an fma that rounds to f32, or plainly to f64, first.
TEST(HalfTest, TiesTellRoundingTwiceFromRoundingOnce) {
  for (const Format &f : {f16Format, bf16Format}) {
    std::vector<Case> cases;
    addTies(cases, f, 5000);
    unsigned viaSingle = 0, viaDouble = 0;
    for (const Case &c : cases) {
      const Exact x = exactOp("fma", f, c, false);
      const U64 once = roundTo(f, x, Mode::Near);
      viaSingle += once != roundTo(f, exactOf(f32Format, roundTo(f32Format, x, Mode::Near)), Mode::Near);
      viaDouble += once != roundTo(f, exactOf(f64Format, roundTo(f64Format, x, Mode::Near)), Mode::Near);
    }
    EXPECT_GT(viaSingle, 0u) << f.mantissa;
    if (f.mantissa == 7)
      EXPECT_GT(viaDouble, 0u);
  }
}

TEST(HalfTest, MinMax) {
  for (const std::string type : {"f16", "bf16"}) {
    const Format &f = formatOf(type);
    const std::vector<Case> cases = denseCases(f, 1);
    for (const bool max : {false, true})
      for (const std::string ftz : {"", ".ftz"})
        for (const std::string nan : {"", ".NaN"})
          for (const std::string xorSign : {"", ".xorsign.abs"}) {
            if (type == "bf16" && !ftz.empty())
              continue;
            expectBoth((max ? "max" : "min") + ftz + nan + xorSign, type, cases, [&](const Case &c) {
              U64 a = ftz.empty() ? c[0] : flushBits(f, c[0]), b = ftz.empty() ? c[1] : flushBits(f, c[1]);
              const U64 sign = xorSign.empty() ? 0 : (a ^ b) & 0x8000;
              if (!xorSign.empty())
                a &= 0x7fff, b &= 0x7fff;
              const bool nanA = partsOf(f, a).nan, nanB = partsOf(f, b).nan;
              if ((nanA && nanB) || (!nan.empty() && (nanA || nanB)))
                return U64(0x7fff);
              if (nanA || nanB)
                return (nanA ? b : a) | sign;
              const auto key = [](U64 v) {
                return v & 0x8000 ? -static_cast<int>(v & 0x7fff) * 2 - 1 : static_cast<int>(v) * 2;
              };
              return ((key(a) < key(b)) != max ? a : b) | sign;
            });
            if (HasFailure())
              return;
          }
  }
}

TEST(HalfTest, SignsOfEveryValue) {
  for (const std::string type : {"f16", "bf16"}) {
    const Format &f = formatOf(type);
    std::vector<Case> every;
    for (U64 a = 0; a < 0x10000; ++a)
      every.push_back({a});
    for (const bool absolute : {false, true})
      for (const bool ftz : {false, true}) {
        if (ftz && type == "bf16")
          continue;
        expectBoth(std::string(absolute ? "abs" : "neg") + (ftz ? ".ftz" : ""), type, every, [&](const Case &c) -> U64 {
          if (partsOf(f, c[0]).nan)
            return 0x7fff; // the assembler's folder: neg.f16 of 0x7e01, abs.f16 of 0xfe01, neg.bf16 of 0xff81
          const U64 v = ftz ? flushBits(f, c[0]) : c[0];
          return absolute ? v & 0x7fff : v ^ 0x8000;
        });
      }
  }
}

TEST(HalfTest, OlderTargetsAreRefused) {
  for (const auto &[opcode, target] :
       std::vector<std::pair<std::string, std::string>>{{"fma.rn.bf16", "sm_75"},
                                                        {"add.rn.bf16", "sm_80"},
                                                        {"min.f16", "sm_75"},
                                                        {"fma.rn.relu.f16", "sm_75"},
                                                        {"max.xorsign.abs.bf16x2", "sm_80"},
                                                        {"fma.rn.oob.f16", "sm_80"}}) {
    HandlerHarness h(opcode, {}, target);
    EXPECT_FALSE(h.ok()) << opcode << " on " << target;
  }
}

} // namespace
