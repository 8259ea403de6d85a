// mma.sync: every shape and type against the scalar statement of the model in MatrixReference.h, with fragments as the
// table of the code generation reference says, at every CPU level and for every class of targets.
#include "tests/emulator/MatrixFragments.h"
#include "tests/emulator/MatrixReference.h"
#include "tests/emulator/PtxHarness.h"

#include "compiler/target/Target.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

/// One warp's operands as the words of its registers: word r of lane l at [r][l].
using Words = std::vector<std::array<std::uint32_t, 32>>;

unsigned wordsOf(unsigned elements, unsigned bits) {
  return elements * bits / 32 / 32;
}

/// The element of a fragment at a place, cut out of the registers.
std::uint32_t elementOf(const Words &words, unsigned bits, unsigned lane, unsigned element) {
  const unsigned perWord = 32 / bits;
  return words[element / perWord][lane] >> (element % perWord * bits) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

struct Form {
  const MatrixShape *shape;
  std::string d, a, b, c, modifiers; ///< types; "satfinite", "and.popc", ..
  std::string opcode() const {
    std::string o = "mma.sync.aligned." + std::string(shape->name) + ".row.col";
    if (modifiers == "satfinite")
      o += ".satfinite";
    o += "." + d + "." + a + "." + b + "." + c;
    if (!modifiers.empty() && modifiers != "satfinite")
      o += "." + modifiers;
    return o;
  }
  unsigned bitsC() const { return c == "f16" ? 16 : 32; }
  unsigned wordsA() const { return wordsOf(shape->m * shape->k, shape->bits); }
  unsigned wordsB() const { return wordsOf(shape->n * shape->k, shape->bits); }
  unsigned wordsC() const { return wordsOf(shape->m * shape->n, bitsC()); }
  unsigned words() const { return wordsA() + wordsB() + wordsC(); }
};

std::string vectorText(const char *prefix, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i)
    names.push_back(prefix + std::to_string(i));
  return "{" + join(names, ", ") + "}";
}

/// A kernel of one warp a block: its operands are at in + block * words * 128, one word of all lanes after the other.
std::string kernelOf(const Form &f, const std::string &before = "") {
  std::string s = ".reg .b32 %a<16>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %d<8>; .reg .u64 %in, %to;\n"
                  "ld.param.u64 %in, [in]; ld.param.u64 %to, [out]; mov.u32 %r1, %laneid; mov.u32 %r2, %ctaid.x;\n";
  s += format("mul.lo.u32 %%r3, %%r2, %u; mad.lo.u32 %%r3, %%r1, 4, %%r3; cvt.u64.u32 %%rd1, %%r3; add.u64 %%in, %%in, "
              "%%rd1;\n",
              f.words() * 128);
  s += format("mul.lo.u32 %%r3, %%r2, %u; mad.lo.u32 %%r3, %%r1, 4, %%r3; cvt.u64.u32 %%rd1, %%r3; add.u64 %%to, %%to, "
              "%%rd1;\n",
              f.wordsC() * 128);
  unsigned at = 0;
  for (const auto &[prefix, count] :
       {std::pair("%a", f.wordsA()), std::pair("%b", f.wordsB()), std::pair("%c", f.wordsC())})
    for (unsigned i = 0; i < count; ++i)
      s += format("ld.global.b32 %s%u, [%%in+%u];\n", prefix, i, 128 * at++);
  for (unsigned i = 0; i < f.wordsC(); ++i)
    s += format("mov.b32 %%d%u, 0x5A5A5A5A;\n", i);
  s += before + f.opcode() + " " + vectorText("%d", f.wordsC()) + ", " + vectorText("%a", f.wordsA()) + ", " +
       vectorText("%b", f.wordsB()) + ", " + vectorText("%c", f.wordsC()) + ";\n";
  for (unsigned i = 0; i < f.wordsC(); ++i)
    s += format("st.global.b32 [%%to+%u], %%d%u;\n", 128 * i, i);
  return kernelText(".param .u64 in, .param .u64 out", s, "sm_75");
}

FloatFormat formatOf(const std::string &type) {
  return type == "f16"    ? f16Format
         : type == "bf16" ? bf16Format
         : type == "tf32" ? tf32Format
         : type == "e4m3" ? e4m3Format
         : type == "e5m2" ? e5m2Format
                          : f32Format;
}
bool isInteger(const Form &f) {
  return f.d == "s32";
}

/// The operands of `blocks` warps: some of everything.
std::vector<std::uint32_t> inputsOf(const Form &f, unsigned blocks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> in;
  for (unsigned block = 0; block < blocks; ++block) {
    const unsigned kind = block % 4;
    auto word = [&](const std::string &type) -> std::uint32_t {
      const FloatFormat fmt = formatOf(type);
      if (isInteger(f) || kind == 0 || (kind == 1 && random() % 50 == 0))
        return static_cast<std::uint32_t>(random());
      std::uint32_t w = 0;
      for (unsigned shift = 0; shift < 32; shift += fmt.bits) {
        const int bias = (1 << (fmt.exponentBits - 1)) - 1;
        const int spread = kind == 2 ? 14 : 3;
        const int e = std::clamp(bias + int(random() % unsigned(2 * spread + 1)) - spread, 0, 2 * bias);
        const std::uint32_t low = random() & ((1u << (fmt.skip + fmt.fractionBits)) - 1);
        w |= (static_cast<std::uint32_t>(e) << (fmt.skip + fmt.fractionBits) | low | (random() & 1) << (fmt.bits - 1))
             << shift;
      }
      return kind == 3 && random() % 3 == 0 ? 0 : w;
    };
    for (unsigned i = 0; i < f.wordsA() * 32; ++i)
      in.push_back(word(f.a));
    for (unsigned i = 0; i < f.wordsB() * 32; ++i)
      in.push_back(word(f.b));
    for (unsigned i = 0; i < f.wordsC() * 32; ++i) {
      in.push_back(word(f.c));
      if (isInteger(f) && kind >= 2)
        in.back() = (kind == 2 ? 0x7fffffffu : 0x80000000u) ^ (random() & 0xfff);
    }
  }
  return in;
}

std::int64_t integerOf(const std::string &type, std::uint32_t bits) {
  const unsigned n = static_cast<unsigned>(std::stoi(type.substr(1)));
  return type[0] == 's' && bits >> (n - 1) ? static_cast<std::int64_t>(bits) - (1 << n)
                                           : static_cast<std::int64_t>(bits);
}

/// Combines rows of A with columns of B for one element.
using Dot = std::function<std::uint32_t(const std::vector<std::uint32_t> &a, const std::vector<std::uint32_t> &b,
                                        std::uint32_t c)>;

Dot integerDot(const Form &f) {
  return [&f](const std::vector<std::uint32_t> &a, const std::vector<std::uint32_t> &b, std::uint32_t c) {
    std::int64_t sum = static_cast<std::int32_t>(c);
    for (std::size_t k = 0; k < a.size(); ++k)
      sum += f.a == "b1" ? (f.modifiers.starts_with("xor") ? a[k] ^ b[k] : a[k] & b[k])
                         : integerOf(f.a, a[k]) * integerOf(f.b, b[k]);
    if (f.modifiers == "satfinite")
      sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
  };
}

/// What the specification's table says of a target.
ReferenceModel referenceModel(const Form &f, unsigned sm) {
  const bool narrow = f.shape->bits == 8;
  ReferenceModel m{formatOf(f.a), formatOf(f.b), formatOf(f.c), formatOf(f.d), 25, 23, f.shape->k};
  if (sm < 90) {
    m.fraction = narrow ? 13 : 24;
    m.resultFraction = narrow ? 13 : 23;
    m.block = 16 * 8 / f.shape->bits; // 16 bytes of K
  } else if (sm == 90 && narrow) {
    m.block = f.shape->k / 2; // two products of f16, and C
    m.addsLast = true;
    m.a.normalizes = f.a == "e4m3";
    m.b.normalizes = f.b == "e4m3";
  }
  return m;
}

std::vector<std::uint32_t> expectedOf(const Form &f, const std::vector<std::uint32_t> &in, unsigned blocks,
                                      const Dot &dot) {
  const MatrixShape &s = *f.shape;
  const FragmentMap mapA = mapOf(s.elementsA, s.lanes, 'm'), mapB = mapOf(s.elementsB, s.lanes, 'n'), mapC = mapOfC(s);
  std::vector<std::uint32_t> out;
  const std::uint32_t *at = in.data();
  auto take = [&at](unsigned count) {
    Words w(count);
    for (auto &word : w)
      for (std::uint32_t &lane : word)
        lane = *at++;
    return w;
  };
  auto elements = [](unsigned total) { return total / 32; };
  for (unsigned block = 0; block < blocks; ++block) {
    const Words wa = take(f.wordsA()), wb = take(f.wordsB()), wc = take(f.wordsC());
    std::vector<std::vector<std::uint32_t>> a(s.m, std::vector<std::uint32_t>(s.k)),
        b(s.n, std::vector<std::uint32_t>(s.k));
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned e = 0; e < elements(s.m * s.k); ++e) {
        const auto p = mapA.at(l, e);
        a[p.m][p.k] = elementOf(wa, s.bits, l, e);
      }
      for (unsigned e = 0; e < elements(s.n * s.k); ++e) {
        const auto p = mapB.at(l, e);
        b[p.n][p.k] = elementOf(wb, s.bits, l, e);
      }
    }
    Words wd(f.wordsC());
    const unsigned perWord = 32 / f.bitsC();
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned e = 0; e < elements(s.m * s.n); ++e) {
        const auto p = mapC.at(l, e);
        wd[e / perWord][l] |= dot(a[p.m], b[p.n], elementOf(wc, f.bitsC(), l, e)) << (e % perWord * f.bitsC());
      }
    for (const auto &word : wd)
      out.insert(out.end(), word.begin(), word.end());
  }
  return out;
}

std::vector<Form> floatForms(bool bytes) {
  std::vector<Form> out;
  if (bytes) {
    for (const char *shape : {"m16n8k16", "m16n8k32"})
      for (const char *a : {"e4m3", "e5m2"})
        for (const char *b : {"e4m3", "e5m2"})
          for (const char *c : {"f32", "f16"})
            out.push_back({findMatrixShape(shape, 8), c, a, b, c, ""});
    return out;
  }
  for (const char *shape : {"m16n8k8", "m16n8k16"}) {
    for (const char *c : {"f32", "f16"})
      out.push_back({findMatrixShape(shape, 16), c, "f16", "f16", c, ""});
    out.push_back({findMatrixShape(shape, 16), "f32", "bf16", "bf16", "f32", ""});
  }
  for (const char *shape : {"m16n8k4", "m16n8k8"})
    out.push_back({findMatrixShape(shape, 32), "f32", "tf32", "tf32", "f32", ""});
  return out;
}

std::vector<Form> integerForms() {
  std::vector<Form> out;
  for (const auto &[shape, bits] : {std::pair("m8n8k16", 8u), std::pair("m16n8k16", 8u), std::pair("m16n8k32", 8u),
                                    std::pair("m8n8k32", 4u), std::pair("m16n8k32", 4u), std::pair("m16n8k64", 4u)})
    for (char a : {'s', 'u'})
      for (char b : {'s', 'u'})
        for (const char *modifier : {"", "satfinite"})
          out.push_back({findMatrixShape(shape, bits), "s32", a + std::to_string(bits), b + std::to_string(bits), "s32",
                         modifier});
  for (const char *shape : {"m8n8k128", "m16n8k128", "m16n8k256"})
    for (const char *modifier : {"and.popc", "xor.popc"})
      out.push_back({findMatrixShape(shape, 1), "s32", "b1", "b1", "s32", modifier});
  return out;
}

void check(const Form &f, const std::string &target, std::string_view level, unsigned seed, const Dot &dot) {
  const unsigned blocks = pick(8u, 40u);
  const std::vector<std::uint32_t> in = inputsOf(f, blocks, seed);
  const std::vector<std::uint32_t> expected = expectedOf(f, in, blocks, dot);
  EmulatorOptions options;
  options.cpuLevel = level;
  options.hostThreads = 1;
  Emulator gpu(target, options);
  Buffer &from = gpu.upload(in, "in"), &to = gpu.allocate(expected.size() * 4, "out");
  const Launched r = gpu.run(kernelOf(f), {blocks}, {32}, {from, to});
  ASSERT_TRUE(r.clean()) << f.opcode() << " on " << target << ": " << r.text();
  const auto got = gpu.download<std::uint32_t>(to);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], expected[i]) << std::hex << got[i] << " for " << expected[i] << std::dec << ": " << f.opcode()
                                   << " on " << target << " " << level << " block " << i / (32 * f.wordsC())
                                   << " register " << i / 32 % f.wordsC() << " lane " << i % 32;
}

} // namespace

TEST(Mma, FloatingPointOnEveryClassOfTargets) {
  unsigned seed = 1;
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120a"}) {
    const unsigned sm = static_cast<unsigned>(std::stoi(target + 3));
    for (bool bytes : {false, true})
      for (const Form &f : floatForms(bytes)) {
        if (bytes && sm < 89)
          continue;
        const ReferenceModel m = referenceModel(f, sm);
        const Dot dot = [&m](const auto &a, const auto &b, std::uint32_t c) {
          return m.addsLast ? referenceDot(m, pairsApart(a), pairsApart(b), c) : referenceDot(m, a, b, c);
        };
        for (const std::string &level : usableLevels())
          check(f, target, level, seed, dot);
        ++seed;
        if (testing::Test::HasFailure())
          return;
      }
  }
}

TEST(Mma, IntegersOfEveryShape) {
  unsigned seed = 100;
  for (const Form &f : integerForms()) {
    for (const std::string &level : usableLevels())
      check(f, "sm_80", level, seed, integerDot(f));
    ++seed;
    if (testing::Test::HasFailure())
      return;
  }
}
