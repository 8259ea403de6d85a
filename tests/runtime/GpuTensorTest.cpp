// Tensor copies of the GPU against the definition that the emulator is tested with; skipped without a GPU of sm_90 or
// newer.
#include "tests/emulator/TensorCases.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

/// What a case is about, for counting failures.
std::string family(const TensorCase &c) {
  std::string out = c.kind == TensorCase::Kind::Load    ? "load"
                    : c.kind == TensorCase::Kind::Store ? "store"
                                                        : "reduce " + c.reduction;
  const bool strided = std::any_of(c.map.elementStrides.begin() + 1, c.map.elementStrides.begin() + c.map.rank,
                                   [](std::uint32_t s) { return s != 1; });
  const bool short_ = c.map.box[0] * tensorMapTypeBytes(c.map.type) < tensorMapSwizzleBytes(c.map.swizzle);
  return out + " " + std::string(tensorMapTypeName(c.map.type)) + " " +
         std::string(tensorMapSwizzleName(c.map.swizzle)) + (short_ ? " short rows" : "") +
         (strided ? " strided" : "") + (c.map.elementStrides[0] != 1 ? " strided innermost" : "") +
         (c.map.fill == TensorMapFill::Nan ? " nan" : "");
}

class GpuTensor : public testing::TestWithParam<TensorCase::Kind> {};

TEST_P(GpuTensor, CopiesWhatTheDefinitionSays) {
  auto device = openDevice("cuda:0");
  if (!device)
    GTEST_SKIP() << device.status().toString();
  if ((*device)->info().sm < 90)
    GTEST_SKIP() << (*device)->info().name << " has no tensor copies";
  TensorRunner runner(**device);
  std::mt19937_64 random(7 + static_cast<unsigned>(GetParam()));
  const unsigned cases = pick(1500u, 12000u);
  std::map<std::string, unsigned> failures, refusals;
  std::vector<std::string> first;
  for (unsigned n = 0; n < cases; ++n) {
    const TensorCase c = randomTensorCase(random, GetParam());
    const TensorRunner::Outcome outcome = runner.run(c);
    if (outcome.refused) {
      ++refusals[std::string(tensorMapSwizzleName(c.map.swizzle))];
      continue;
    }
    if (outcome.why.empty())
      continue;
    if (failures[family(c)]++ == 0 && first.size() < 60)
      first.push_back(outcome.why);
    if (outcome.why.find("CUDA") != std::string::npos) // the device is of no more use
      break;
  }
  for (const auto &[swizzle, count] : refusals)
    std::printf("%u of %u maps with swizzle %s refused by the driver\n", count, cases, swizzle.c_str());
  for (const auto &[name, count] : failures)
    ADD_FAILURE() << count << " cases of " << name;
  for (const std::string &why : first)
    std::printf("%s\n", why.c_str());
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuTensor,
                         testing::Values(TensorCase::Kind::Load, TensorCase::Kind::Store, TensorCase::Kind::Reduce),
                         [](const auto &kind) {
                           return std::string(kind.param == TensorCase::Kind::Load    ? "Load"
                                              : kind.param == TensorCase::Kind::Store ? "Store"
                                                                                      : "Reduce");
                         });

} // namespace
