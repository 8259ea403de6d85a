//===- RuleTest.cpp - The other rules of the DPLR family ---------------------------===//
//
// IPLR, KDA, gated delta rule, delta rule, GLA, simple GLA: kernels against the families' references, and these against
// recurrences that are written down here once more, each as its paper has it.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;

constexpr std::array rules{"iplr", "kda", "gated_delta_rule", "delta_rule", "gla", "simple_gla"};

/// Every input that a rule can have, of one size; `random` as the family draws them.
Arrays drawn(const std::string &rule, const DplrProblem &p, std::uint64_t seed) {
  const Family &family = familyOf(rule + "_backward");
  const Shape keys{p.batch, p.tokens, p.heads, p.dim}, values{p.batch, p.tokens, p.heads, p.dimV},
      head{p.batch, p.tokens, p.heads}, state{p.sequences(), p.heads, p.dim, p.dimV};
  Arrays out;
  for (const char *name : {"q", "k", "a", "b"})
    out[name] = randomInput(family, name, {p.dtype, keys}, seed);
  for (const char *name : {"v", "do"})
    out[name] = randomInput(family, name, {p.dtype, values}, seed);
  const bool ofHead = rule == "gated_delta_rule" || rule == "simple_gla";
  out["g"] = randomInput(family, "g", {p.gateType, ofHead ? head : keys}, seed);
  out["beta"] = randomInput(family, "beta", {p.gateType, head}, seed);
  if (p.first)
    out["initial_state"] = randomInput(family, "initial_state", {*p.first, state}, seed);
  if (p.last)
    out["dht"] = randomInput(family, "dht", {*p.last, state}, seed);
  if (!p.offsets.empty())
    out["cu_seqlens"] = p.offsetsArray();
  return out;
}

/// The same with q, k and v in [0, 1), of q and k each row of length 1, and gates of 0.
Arrays nearlyParallel(Arrays inputs, const DplrProblem &p) {
  std::mt19937_64 random(13);
  std::uniform_real_distribution<double> uniform;
  for (const char *name : {"q", "k", "v"}) {
    std::vector<double> x = toHost(inputs.at(name)).values;
    for (double &y : x)
      y = uniform(random);
    for (std::size_t row = 0; *name != 'v' && row < x.size(); row += p.dim) {
      double squares = 0;
      for (std::size_t i = row; i < row + p.dim; ++i)
        squares += x[i] * x[i];
      for (std::size_t i = row; i < row + p.dim; ++i)
        x[i] /= std::sqrt(squares);
    }
    inputs[name] = arrayOf(p.dtype, inputs.at(name).shape, x);
  }
  Array &g = inputs.at("g");
  std::ranges::fill(g.data, std::byte(0));
  return inputs;
}

/// Calls whose number is this device's: every rule on every device, each time another call.
std::vector<DplrProblem> calls() {
  std::vector<DplrProblem> out{{2, 130, 2, 64, 64, {}, {}, DType::BF16},
                               {1, 100, 2, 40, 24, {}, {{"chunk_size", 16}}, DType::F16},
                               {1, 150, 1, 64, 32, {}, {{"chunk_size", 32}, {"scale", .3}}, DType::BF16},
                               {1, 96, 1, 128, 128, {}, {}, DType::F16},
                               {1, 100, 2, 90, 40, {}, {}, DType::BF16}, // slices of 48 of K, the second not full
                               {1, 70, 1, 130, 16, {}, {}, DType::BF16}, // of 192 columns, the last slice outside K
                               {1, 70, 1, 200, 160, {}, {}, DType::F16}, // slices of K, parts of V
                               {1, 70, 1, 32, 150, {}, {}, DType::BF16},
                               {1, 100, 1, 48, 32, {}, {{"chunk_size", 16}, {"segment_size", 2}}, DType::BF16}};
  out[1].offsets = {0, 0, 15, 15, 64, 65, 100, 100};
  out[4].offsets = out[1].offsets;
  out[2].gateType = DType::BF16, out[2].first = DType::BF16, out[2].last.reset();
  out[3].first.reset(), out[3].gateType = DType::F16;
  return out;
}

class Rule : public Dplr {};

TEST_P(Rule, BothDirections) {
  const std::vector<DplrProblem> all = calls();
  for (std::size_t n = 0; n < rules.size(); ++n) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (on->emulated() && !isFullTier() && i != (n + GetParam()) % all.size())
        continue;
      const std::string name = rules[n];
      SCOPED_TRACE(name + " " + all[i].text());
      const Arrays inputs = drawn(name, all[i], 7 + i);
      for (const std::string &family : {name, name + "_backward"}) {
        if (!chosen(static_cast<unsigned>(n + (family != name)), 2)) // one direction a rule and target
          continue;
        const Arrays outputs = run(family, inputs, all[i]);
        ASSERT_FALSE(outputs.empty());
        ASSERT_NO_FATAL_FAILURE(compare(family, inputs, all[i], outputs));
      }
    }
  }
}

/// Rules without gates in segments of chunks of 64: their maps are chains of products with nothing in between.  So many
/// heads that programs take whole maps.
TEST_P(Rule, SegmentsOfMapsWithoutGates) {
  const DplrProblem p{1, 200, 32, 64, 64, {}, {{"segment_size", 2}}, DType::BF16};
  for (const std::string family : {"iplr", "delta_rule"}) {
    if (on->emulated() && !isFullTier() && (family == "iplr") != (GetParam() % 2 == 0))
      continue;
    const Arrays inputs = drawn(family, p, 5), outputs = run(family, inputs, p);
    ASSERT_FALSE(outputs.empty());
    ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, outputs));
  }
}

TEST_P(Rule, GradientsFromWhatWasSaved) {
  const std::vector<DplrProblem> all = calls();
  for (std::size_t n = 0; n < rules.size(); ++n)
    for (std::size_t i = 0; i < all.size(); ++i)
      if (isFullTier() || ((n % 3 == GetParam() % 3 || !on->emulated()) && i == (n + GetParam() + 4) % all.size()))
        ASSERT_NO_FATAL_FAILURE(checkSaved(rules[n], drawn(rules[n], all[i], 11 + i), all[i]));
}

/// Gates of -20 in all channels of half of the tokens: no half of a chunk can be taken around its middle.
TEST_P(Rule, GatesOfAnySize) {
  for (const std::string name : {"kda", "gated_delta_rule", "gla", "simple_gla"}) {
    if (on->emulated() && !isFullTier() && (name.size() + GetParam()) % 2)
      continue;
    SCOPED_TRACE(name);
    // One slice of K, and two.
    for (const unsigned dim : {64u, 96u}) {
      if (on->emulated() && !isFullTier() && (dim > 64) != (GetParam() / 2 % 2 == 1))
        continue;
      const DplrProblem p{1, 130, 1, dim, 64, {}, {}, DType::BF16};
      Arrays inputs = drawn(name, p, 3);
      std::vector<double> g = toHost(inputs.at("g")).values;
      const std::size_t columns = g.size() / p.tokens;
      for (std::size_t i = 0; i < g.size(); ++i)
        if (i / columns % 2)
          g[i] = -20;
      inputs["g"] = arrayOf(DType::F32, inputs.at("g").shape, g);
      for (const std::string &family : {name, name + "_backward"})
        ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, run(family, inputs, p)));
    }
  }
}

/// Gates with a bound, for which no chunk is looked at: chunks of 16 and of 64, one slice of K and several.
TEST_P(Rule, BoundedGates) {
  struct Case {
    int chunk;
    double bound;
    unsigned dim;
  };
  unsigned number = 0;
  for (const std::string name : {"kda", "gla"})
    for (const Case &it : {Case{16, -7, 64}, {64, -1.8, 64}, {64, -1.8, 144}, {32, -3, 96}}) {
      if (!chosen(number++, 4))
        continue;
      const DplrProblem p{
          1,         130, 1, it.dim, 64, {}, {{"chunk_size", it.chunk}, {"safe_gate", true}, {"lower_bound", it.bound}},
          DType::F16};
      SCOPED_TRACE(deviceNames()[GetParam()] + ": " + name + " " + p.text());
      Arrays inputs = drawn(name, p, 19);
      std::vector<double> g = toHost(inputs.at("g")).values;
      for (std::size_t i = 0; i < g.size(); ++i)
        g[i] = std::max(g[i], it.bound) * (i % 3 == 0 ? 0.1 : 1);
      inputs["g"] = arrayOf(DType::F32, inputs.at("g").shape, g);
      ASSERT_NO_FATAL_FAILURE(compare(name + "_backward", inputs, p, run(name + "_backward", inputs, p)));
    }
}

/// A number that is none stays none on its way to gradients, by the rows of its chunk that it is multiplied with.
TEST_P(Rule, NotANumberIsSeen) {
  if (!chosen(1, 2))
    return;
  const DplrProblem p{1, 64, 1, 64, 64, {}, {}, DType::BF16};
  Arrays inputs = drawn("gla", p, 23);
  std::vector<double> k = toHost(inputs.at("k")).values;
  k[10 * p.dim + 3] = std::numeric_limits<double>::quiet_NaN();
  inputs["k"] = arrayOf(p.dtype, inputs.at("k").shape, k);
  const Arrays outputs = run("gla_backward", inputs, p);
  ASSERT_FALSE(outputs.empty());
  const std::vector<double> dq = toHost(outputs.at("dq")).values, dg = toHost(outputs.at("dg")).values;
  for (std::size_t t = 10; t < p.tokens; ++t)
    EXPECT_TRUE(std::isnan(dq[t * p.dim + 3])) << t;
  EXPECT_TRUE(std::isnan(dg[10 * p.dim + 3]));
  EXPECT_FALSE(std::isnan(dq[10 * p.dim + 4]));
}

/// Nothing is left of a state that decays by e^-30, and nothing by that gate as a gradient; what pairs of tokens before
/// it and after it gain and lose there is the same but for rounding: of f32 by halves; around the middle, where few
/// gates are as strong, of rows to 11 bits (Decay.h).
TEST_P(Rule, GradientsByStrongGatesAreNothing) {
  unsigned number = 0;
  for (const std::string name : {"kda", "gla"})
    for (const auto [every, limit] : {std::pair<std::size_t, double>{40, 2e-4}, {5, 1e-6}}) {
      if (!chosen(number++, 4))
        continue;
      const DplrProblem p{1, 128, 1, 64, 64, {}, {}, DType::F16};
      SCOPED_TRACE(deviceNames()[GetParam()] + ": " + name + ", one gate of " + std::to_string(every));
      Arrays inputs = drawn(name, p, 17);
      std::vector<double> g = toHost(inputs.at("g")).values;
      const auto isStrong = [&](std::size_t i) { return (i / p.dim + i % p.dim) % every == 0; };
      for (std::size_t i = 0; i < g.size(); ++i)
        g[i] = isStrong(i) ? -30 : 0.1 * g[i];
      inputs["g"] = arrayOf(DType::F32, inputs.at("g").shape, g);
      const Arrays outputs = run(name + "_backward", inputs, p);
      ASSERT_NO_FATAL_FAILURE(compare(name + "_backward", inputs, p, outputs));
      const std::vector<double> dg = toHost(outputs.at("dg")).values;
      double strong = 0, all = 0;
      for (std::size_t i = 0; i < dg.size(); ++i)
        all += dg[i] * dg[i], strong += isStrong(i) ? dg[i] * dg[i] : 0;
      EXPECT_LE(std::sqrt(strong / all), limit);
    }
}

/// Keys of positive numbers, any two of which are nearly parallel, and nothing decays: of what a chunk's tokens read of
/// each other little is left once each is corrected (Rule.h).
TEST_P(Rule, NearlyParallelKeysThatNothingDecays) {
  struct Case {
    const char *suffix;
    DType dtype;
    double most; ///< of what the specification allows
  };
  // Gradients in bf16 come near to that: the gradients of the states cancel, too.
  const std::array<Case, 3> cases{{{"", DType::F16, 0.25}, {"", DType::BF16, 0.8}, {"_backward", DType::F16, 0.25}}};
  const std::array delta{"gated_delta_rule", "delta_rule", "kda"};
  for (unsigned n = 0; n < delta.size(); ++n)
    for (unsigned i = 0; i < cases.size(); ++i) {
      if (!chosen(n, 3) || !chosen(i, 3))
        continue;
      DplrProblem p{1, 192, 1, 64, 64, {}, {}, cases[i].dtype};
      p.first.reset();
      const std::string name = delta[n] + std::string(cases[i].suffix);
      SCOPED_TRACE(deviceNames()[GetParam()] + ": " + name + " " + p.text());
      const Arrays inputs = nearlyParallel(drawn(delta[n], p, 13), p);
      const Arrays outputs = run(name, inputs, p);
      ASSERT_FALSE(outputs.empty());
      const OptionValues options{{*cases[i].suffix ? "dh0" : "final_state", true}};
      const auto compared = compareWithReference(familyOf(name), inputsFor(familyOf(name), inputs), options, outputs);
      ASSERT_TRUE(compared.ok()) << compared.status().toString();
      EXPECT_TRUE(compared->good()) << compared->toString();
      EXPECT_LE(compared->ratioExcess, cases[i].most);
    }
}

/// A gate of a head is a gate of each of its channels.
TEST_P(Rule, HeadGatesAreEqualChannelGates) {
  if (GetParam() % 2 && on->emulated() && !isFullTier())
    return;
  const DplrProblem p{1, 70, 2, 32, 32, {}, {}, DType::F16};
  for (const auto &[ofHead, ofChannel] : {std::pair("gated_delta_rule", "kda"), {"simple_gla", "gla"}}) {
    const Arrays inputs = drawn(ofHead, p, 5);
    const std::vector<double> g = toHost(inputs.at("g")).values;
    std::vector<double> wide;
    for (const double x : g)
      wide.insert(wide.end(), p.dim, x);
    Arrays other = inputs;
    other["g"] = arrayOf(DType::F32, {1, p.tokens, p.heads, p.dim}, wide);
    const Arrays one = run(ofHead, inputs, p);
    ASSERT_NO_FATAL_FAILURE(compare(ofChannel, other, p, one)); // against the other's reference
  }
}

TEST_P(Rule, WrongArgumentsAreRefused) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 20, 2, 32, 32, {}, {}, DType::BF16};
  Arrays inputs = drawn("gated_delta_rule", p, 1);
  const auto refusal = [&](const char *name, const Array &wrong) {
    Arrays bad = inputs;
    bad[name] = wrong;
    const Family &family = familyOf("gated_delta_rule");
    auto placed = PlacedCall::create(*on->device, *family.callable, inputsFor(family, bad), {});
    if (!placed.ok())
      return placed.status().toString();
    return family.callable->run(*on->jit, placed->call(), {}).toString();
  };
  EXPECT_NE(refusal("beta", arrayOf(DType::F32, {1, 20, 3}, std::vector<double>(60))).find("beta"), std::string::npos);
  EXPECT_NE(refusal("g", arrayOf(DType::F16, {1, 20, 2}, std::vector<double>(40))).find("'g'"), std::string::npos);
  EXPECT_NE(refusal("k", arrayOf(DType::F16, {1, 20, 2, 32}, std::vector<double>(1280))).find("'k'"),
            std::string::npos);
}

/// Every output of the backward pass in the memory of every input and of every other output.
TEST_P(Rule, OutputsHaveMemoryOfTheirOwn) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 20, 2, 32, 32, {}, {}, DType::BF16, {}, DType::I32, DType::F32, DType::F32};
  const Family &family = familyOf("dplr_backward");
  auto placed =
      PlacedCall::create(*on->device, *family.callable, inputsFor(family, drawn("iplr", p, 1)), {{"dh0", true}});
  ASSERT_TRUE(placed.ok()) << placed.status().toString();
  const std::vector<const char *> outputs{"dq", "dk", "dv", "da", "db", "dg", "dh0"},
      others{"q", "k", "v", "a", "b", "g", "do", "dq", "dk", "dv", "da", "db", "dg", "dh0"};
  unsigned refused = 0;
  for (const std::string output : outputs)
    for (const std::string other : others) {
      if (output == other)
        continue;
      Call call = placed->call();
      call.tensors.find(output)->second.address = call.tensors.find(other)->second.address;
      const Status status = family.callable->run(*on->jit, call, {});
      EXPECT_NE(status.toString().find("overlaps"), std::string::npos) << output << " in " << other;
      ++refused;
    }
  Call call = placed->call();
  call.tensors.find("dh0")->second.address = call.tensors.find("initial_state")->second.address;
  EXPECT_NE(family.callable->run(*on->jit, call, {}).toString().find("overlaps 'initial_state'"), std::string::npos);
  EXPECT_EQ(refused, 7 * 13u);
}

INSTANTIATE_TEST_SUITE_P(Devices, Rule, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

//===----------------------------------------------------------------------===//
// The references
//===----------------------------------------------------------------------===//

/// One head, T x K and T x V, by the rule as it is usually written.
struct Direct {
  std::size_t tokens, dim, dimV;
  double scale;
  std::vector<double> q, k, v, a, b, g, beta, first;

  /// Outputs, then the last state.
  std::vector<double> run(const std::string &rule) const {
    std::vector<double> s = first, out;
    for (std::size_t t = 0; t < tokens; ++t) {
      const auto gate = [&](std::size_t i) {
        return rule == "kda" || rule == "gla"                       ? std::exp(g[t * dim + i])
               : rule == "gated_delta_rule" || rule == "simple_gla" ? std::exp(g[t])
                                                                    : 1.0;
      };
      std::vector<double> along(dimV), next(s.size());
      // IPLR reads the state along a before anything; the delta rules along k what is left of it.
      for (std::size_t j = 0; j < dimV; ++j)
        for (std::size_t i = 0; i < dim; ++i)
          along[j] += rule == "iplr" ? a[t * dim + i] * s[i * dimV + j] : k[t * dim + i] * gate(i) * s[i * dimV + j];
      for (std::size_t i = 0; i < dim; ++i)
        for (std::size_t j = 0; j < dimV; ++j) {
          const double value = v[t * dimV + j], key = k[t * dim + i];
          next[i * dimV + j] =
              gate(i) * s[i * dimV + j] + (rule == "iplr"          ? b[t * dim + i] * along[j] + key * value
                                           : rule.ends_with("gla") ? key * value
                                                                   : beta[t] * key * (value - along[j]));
        }
      s = next;
      for (std::size_t j = 0; j < dimV; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < dim; ++i)
          sum += q[t * dim + i] * s[i * dimV + j];
        out.push_back(scale * sum);
      }
    }
    out.insert(out.end(), s.begin(), s.end());
    return out;
  }
};

TEST(RuleReference, IsTheRuleAndItsGradientsAreDifferences) {
  for (const std::string rule : rules) {
    SCOPED_TRACE(rule);
    const std::size_t T = 7, K = 4, V = 3;
    std::mt19937_64 random(11);
    std::normal_distribution<double> normal;
    const auto draw = [&](std::size_t n) {
      std::vector<double> x(n);
      for (double &y : x)
        y = 0.5 * normal(random);
      return x;
    };
    const bool ofHead = rule == "gated_delta_rule" || rule == "simple_gla";
    Direct d{T,           K,           V,           0.7,         draw(T * K),
             draw(T * K), draw(T * V), draw(T * K), draw(T * K), draw(ofHead ? T : T * K),
             draw(T),     draw(K * V)};
    for (double &g : d.g)
      g = -std::abs(g);
    const std::vector<double> dOut = draw(T * V), dLast = draw(K * V);
    const auto lossOf = [&](const Direct &x) {
      const std::vector<double> y = x.run(rule);
      double loss = 0;
      for (std::size_t i = 0; i < T * V; ++i)
        loss += y[i] * dOut[i];
      for (std::size_t i = 0; i < K * V; ++i)
        loss += y[T * V + i] * dLast[i];
      return loss;
    };
    const auto host = [](const Shape &shape, const std::vector<double> &values) { return HostTensor{shape, values}; };
    const Shape keys{1, T, 1, K}, values{1, T, 1, V}, head{1, T, 1}, state{1, 1, K, V};
    const HostTensors inputs{{"q", host(keys, d.q)},       {"k", host(keys, d.k)},
                             {"v", host(values, d.v)},     {"a", host(keys, d.a)},
                             {"b", host(keys, d.b)},       {"g", host(ofHead ? head : keys, d.g)},
                             {"beta", host(head, d.beta)}, {"initial_state", host(state, d.first)},
                             {"do", host(values, dOut)},   {"dht", host(state, dLast)}};
    const auto forward = familyOf(rule).reference->compute(inputs, {{"scale", 0.7}, {"final_state", true}});
    const auto backward = familyOf(rule + "_backward").reference->compute(inputs, {{"scale", 0.7}, {"dh0", true}});
    ASSERT_TRUE(forward.ok() && backward.ok());
    const std::vector<double> wanted = d.run(rule);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(i < T * V ? forward->at("o").values[i] : forward->at("final_state").values[i - T * V], wanted[i],
                  1e-7);
    const auto differences = [&](const char *name, std::vector<double> Direct::*input) {
      const auto found = backward->find(name);
      if (found == backward->end())
        return;
      ASSERT_EQ(found->second.values.size(), (d.*input).size()) << name;
      for (std::size_t i = 0; i < (d.*input).size(); ++i) {
        double &x = (d.*input)[i];
        const double was = x, by = 1e-5;
        x = was + by;
        const double more = lossOf(d);
        x = was - by;
        const double less = lossOf(d);
        x = was;
        ASSERT_NEAR(found->second.values[i], (more - less) / (2 * by), 1e-6) << name << "[" << i << "]";
      }
    };
    for (const auto &[name, input] : {std::pair("dq", &Direct::q),
                                      {"dk", &Direct::k},
                                      {"dv", &Direct::v},
                                      {"da", &Direct::a},
                                      {"db", &Direct::b},
                                      {"dg", &Direct::g},
                                      {"dbeta", &Direct::beta},
                                      {"dh0", &Direct::first}})
      ASSERT_NO_FATAL_FAILURE(differences(name, input));
    const std::size_t inputsOfRule = rule == "iplr" ? 6 : rule == "delta_rule" ? 5 : rule.ends_with("gla") ? 5 : 6;
    EXPECT_EQ(backward->size(), inputsOfRule);
  }
}

} // namespace
} // namespace kiln::test
