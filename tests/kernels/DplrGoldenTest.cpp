//===- DplrGoldenTest.cpp - DPLR against vectors that an oracle outside the project made ---===//
//
// tests/kernels/data/dplr/README.md says where they come from.  The reference that every other test of these kernels
// believes, and the kernels themselves.
//
//===----------------------------------------------------------------------===//
#include "kernels/support/Runner.h"
#include "tests/kernels/DplrHarness.h"

#include <algorithm>
#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

struct Golden {
  Arrays inputs;       ///< of dplr_backward; those of dplr are among them
  HostTensors results; ///< of both
  double scale = 0;
};

constexpr const char *everyCall[] = {"dense", "wide_v", "packed", "pinned", "harsh"};
constexpr const char *everyDirection[] = {"dplr", "dplr_backward"};
/// What no gate of RWKV7 is below.
constexpr double boundOfRwkv7 = -0.60653067;

bool isOfRwkv7(std::string_view call) {
  return call == "dense" || call == "packed";
}

Array readFile(const std::string &call, const std::string &name) {
  auto array = readNpy(KILN_SOURCE_DIR "/tests/kernels/data/dplr/" + call + "/" + name + ".npy");
  EXPECT_TRUE(array.ok()) << array.status().toString();
  return array.ok() ? *array : Array();
}

Golden golden(const std::string &call) {
  Golden out;
  for (const char *name : {"q", "k", "v", "a", "b", "do"}) {
    auto bits = convertArray(readFile(call, name), DType::BF16, name);
    EXPECT_TRUE(bits.ok()) << bits.status().toString();
    out.inputs[name] = bits.ok() ? *bits : Array();
  }
  for (const char *name : {"g", "initial_state", "dht"})
    out.inputs[name] = readFile(call, name);
  if (call == "packed")
    out.inputs["cu_seqlens"] = readFile(call, "cu_seqlens");
  for (const char *name : {"o", "final_state", "dq", "dk", "dv", "da", "db", "dg", "dh0"})
    out.results[name] = toHost(readFile(call, name));
  const std::vector<double> scale = toHost(readFile(call, "scale")).values;
  EXPECT_EQ(scale.size(), 1u);
  out.scale = scale.empty() ? 0 : scale[0];
  return out;
}

/// Those of the results that a direction has.
HostTensors resultsOf(const Golden &golden, std::string_view direction) {
  HostTensors out;
  for (const TensorParameter &parameter : familyOf(direction).callable->tensors())
    if (parameter.output && parameter.name != "saved")
      out[parameter.name] = golden.results.at(parameter.name);
  return out;
}

OptionValues optionsOf(const Golden &golden) {
  return {{"scale", golden.scale}, {"final_state", true}, {"dh0", true}};
}

double largest(const std::vector<double> &values) {
  double out = 0;
  for (const double x : values)
    out = std::max(out, std::abs(x));
  return out;
}

/// The same sums in another order: some roundings of 2^-53, in parts of the largest element (5e-16 is the most that was
/// seen).  A gate's gradient is small by the gate's own decay: both sides without it, so that the gradient of a gate of
/// -129 is held to as many digits as any other.
constexpr double roundings = 1e-14;

TEST(DplrGolden, Reference) {
  for (const std::string call : everyCall) {
    const Golden given = golden(call);
    if (HasFailure())
      return;
    for (const char *direction : everyDirection) {
      const Family &family = familyOf(direction);
      const HostTensors inputs = toHost(inputsFor(family, given.inputs));
      const auto made = family.reference->compute(inputs, optionsOf(given));
      ASSERT_TRUE(made.ok()) << made.status().toString();
      for (const auto &[name, wanted] : resultsOf(given, direction)) {
        SCOPED_TRACE(call + ": " + name);
        const HostTensor &got = made->at(name);
        ASSERT_EQ(got.shape, wanted.shape);
        ASSERT_EQ(got.values.size(), wanted.values.size());
        std::vector<double> g = got.values, w = wanted.values;
        for (std::size_t i = 0; name == "dg" && i < w.size(); ++i) {
          const double undone = std::exp(-inputs.at("g").values[i]);
          g[i] *= undone, w[i] *= undone;
        }
        const double allowed = roundings * largest(w);
        ASSERT_GT(allowed, 0);
        for (std::size_t i = 0; i < w.size(); ++i)
          ASSERT_NEAR(g[i], w[i], allowed) << "element " << i;
      }
    }
  }
}

class DplrGoldenCalls : public Dplr {};

/// Chunks of every size; gates of RWKV7 with their bound, so that no chunk is looked at, others without one.
TEST_P(DplrGoldenCalls, AreTheOracles) {
  unsigned number = 0;
  for (const std::string call : everyCall) {
    const Golden given = golden(call);
    if (HasFailure())
      return;
    for (const int chunk : {16, 32, 64}) {
      if (!chosen(number++, 4)) // each size on one target, the next call on others
        continue;
      for (const char *direction : everyDirection) {
        const Shape &q = given.inputs.at("q").shape;
        DplrProblem p{q[0], q[1], q[2], q[3], given.inputs.at("v").shape[3]};
        p.dtype = DType::BF16;
        p.options = {{"scale", given.scale}, {"chunk_size", chunk}};
        if (isOfRwkv7(call))
          p.options["lower_bound"] = boundOfRwkv7;
        SCOPED_TRACE(deviceNames()[GetParam()] + ": " + call + ", " + direction + ", chunks of " +
                     std::to_string(chunk));
        const Family &family = familyOf(direction);
        const Arrays outputs = run(direction, given.inputs, p);
        ASSERT_FALSE(outputs.empty());
        const HostTensors inputs = toHost(inputsFor(family, given.inputs));
        const auto compared = compareWith(resultsOf(given, direction), *family.reference, inputs, p.options, outputs);
        ASSERT_TRUE(compared.ok()) << compared.status().toString();
        EXPECT_TRUE(compared->good()) << compared->toString();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrGoldenCalls, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
