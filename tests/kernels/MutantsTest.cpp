//===- MutantsTest.cpp - The emulator finds mistakes made by machine ------------===//
//
// Every mutant of the PTX of every library kernel ends in a finding, a refused launch or a wrong result, or stands in
// equivalent-mutants.txt with the reason why it behaves like the original.  Default tier: a sample.
//
//===----------------------------------------------------------------------===//
#include "tests/mutants/Mutants.h"
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>

namespace kiln::test {
namespace {

using namespace kernels;

struct Outcome {
  std::string defect; ///< empty: none
  Arrays outputs;
};

Outcome run(const std::string &device, const std::string &cache, const Family &family, const Arrays &inputs,
            const std::map<std::string, std::string> &swaps, std::vector<std::string> *seen = nullptr) {
  Opening how{.cache = cache + "/kernels", .texts = seen, .swaps = swaps};
  how.emulator.instructionBudget = 3'000'000;
  how.emulator.hostThreads = 1;
  const auto on = openWith(device, how);
  if (!on)
    return {"no device", {}};
  auto ran = runCall(*on->jit, *family.callable, inputs, {});
  if (!ran.ok())
    return {ran.status().toString(), {}};
  for (const Finding &f : ran->findings)
    if (!f.note)
      return {f.toString(), {}};
  return {{}, std::move(ran->outputs)};
}

/// "family kind file:line" -> reason.
std::map<std::string, std::string> equivalents() {
  std::map<std::string, std::string> out;
  std::ifstream file(KILN_SOURCE_DIR "/tests/kernels/equivalent-mutants.txt");
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(" : "); colon != std::string::npos && line[0] != '#')
      out[line.substr(0, colon)] = line.substr(colon + 3);
  return out;
}

/// Ends inside a vector, a warp, a tile; whole tiles; rows in registers and in several passes.
std::vector<Shape> shapesOf(std::string_view family) {
  if (family == "reduce_sum")
    return {{70001}, {65536}, {1000}};
  if (family == "softmax" || family == "layer_norm" || family == "cumsum")
    return {{3, 1001}, {3, 1024}, {3, 520}, {2, 16387}, {2, 32768}, {5, 33}, {1, 33}};
  return {{3, 1001}, {64, 128}, {37, 70}};
}

struct Trial {
  Arrays inputs;
  Outcome right;
};

class KernelMutants : public testing::TestWithParam<std::string> {};

TEST_P(KernelMutants, AreFound) {
  const std::string &name = GetParam();
  if (!deviceNames().front().starts_with("emulator"))
    GTEST_SKIP() << "mutants run on emulators only";
  const TemporaryDirectory cache;
  const std::map<std::string, std::string> known = equivalents();
  const Family &family = familyOf(name);
  std::set<std::string> survived;
  unsigned made = 0, unreached = 0, turn = 0;
  for (const std::string device : {"emulator:sm_80", "emulator:sm_90a"})
    for (DType dtype : {DType::F32, DType::BF16}) {
      if (!isFullTier() && (dtype == DType::BF16 || device != "emulator:sm_90a"))
        continue;
      std::vector<Trial> trials;
      std::map<std::string, std::vector<std::size_t>> users; // by text: the trials that load it
      for (const Shape &shape : shapesOf(name)) {
        TensorTypes types = {{"x", {dtype, shape}}};
        if (name == "add")
          types["y"] = {dtype, shape};
        if (name == "layer_norm")
          types["weight"] = types["bias"] = {dtype, {shape.back()}};
        Trial trial{randomInputs(family, types, 11), {}};
        std::vector<std::string> texts;
        trial.right = run(device, cache.path(), family, trial.inputs, {}, &texts);
        ASSERT_EQ(trial.right.defect, "") << shapeText(shape);
        for (const std::string &text : texts)
          users[text].push_back(trials.size());
        trials.push_back(std::move(trial));
      }
      for (const auto &[text, users] : users) {
        const auto noticed = [&, &text = text, &users = users](const std::string &instead) {
          return std::any_of(users.begin(), users.end(), [&](std::size_t i) {
            const Outcome o = run(device, cache.path(), family, trials[i].inputs, {{text, instead}});
            if (!o.defect.empty())
              return true;
            const Arrays &right = trials[i].right.outputs;
            return std::any_of(right.begin(), right.end(), [&](const auto &output) {
              return o.outputs.at(output.first).data != output.second.data;
            });
          });
        };
        for (const Mutant &m : mutantsOf(text)) {
          if (turn++ % pick(16u, 1u) != 0)
            continue;
          ++made;
          if (noticed(edited(text, m.change)))
            continue;
          if (!noticed(edited(text, m.trap))) {
            ++unreached;
            continue;
          }
          const std::string key = name + " " + m.kind + " " + m.location;
          survived.insert(key);
          EXPECT_TRUE(known.count(key)) << "nobody noticed: " << key << " (" << device << " " << dtypeName(dtype)
                                        << ", PTX line " << m.line << ": " << m.instruction << ")";
        }
      }
    }
  EXPECT_GT(made, 0u);
  if (isFullTier())
    for (const auto &[key, reason] : known)
      if (key.starts_with(name + " "))
        EXPECT_TRUE(survived.count(key)) << "in the list, but found: " << key;
  std::cout << name << ": " << made << " mutants, " << unreached << " at places that no shape reaches, "
            << survived.size() << " places with equivalent ones\n";
}

std::vector<std::string> familyNames() {
  std::vector<std::string> out;
  for (const Family *family : shapeFamilies())
    out.emplace_back(family->name());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelMutants, testing::ValuesIn(familyNames()),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace kiln::test
