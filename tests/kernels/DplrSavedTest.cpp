// Gradients from what the forward call saved, of every kind of rule: against float64, within the limits of calls that
// make it again; and memory of the wrong size, type or place.
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class DplrSaved : public Dplr {};

std::vector<DplrProblem> problems() {
  std::vector<DplrProblem> out{{2, 100, 1, 64, 64, {1, 0}, {}, DType::BF16},
                               {1, 70, 2, 40, 24, {.1, .5}, {{"chunk_size", 16}}, DType::F16},
                               {1, 90, 1, 128, 96, {1, 0}, {{"safe_gate", true}}, DType::BF16},
                               {1, 150, 1, 32, 64, {1, 0}, {{"chunk_size", 16}, {"segment_size", 2}}, DType::BF16},
                               {1, 227, 1, 64, 32, {1, 0}, {{"chunk_size", 16}, {"segment_size", 4}}, DType::F16},
                               {1, 100, 1, 192, 64, {1, 0}, {}, DType::BF16},
                               {1, 133, 2, 64, 64, {1, 0}, {{"chunk_size", 32}}, DType::BF16}};
  out[2].gates.lowest = -5;
  out[2].first.reset(), out[2].last.reset();
  out[4].offsets = {0, 0, 5, 69, 69, 133, 227, 227};
  out[6].offsets = {0, 32, 33, 33, 133}, out[6].offsetType = DType::I64, out[6].first = DType::BF16;
  return out;
}

TEST_P(DplrSaved, BothDirections) {
  const std::vector<DplrProblem> all = problems();
  for (std::size_t n = 0; n < all.size(); ++n)
    if (chosen(static_cast<unsigned>(n), 4))
      ASSERT_NO_FATAL_FAILURE(checkSaved("dplr", inputsOf(all[n]), all[n]));
}

/// What is saved is more than what lies between the launches: the call allocates nothing for it.
TEST_P(DplrSaved, TakesThePlaceOfTheWorkspace) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 64, 1, 64, 64, {1, 0}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  const auto workspaceOf = [&](const char *name, const Arrays &from, const OptionValues &options) {
    auto placed = PlacedCall::create(*on->device, *familyOf(name).callable, inputsFor(familyOf(name), from), options);
    EXPECT_TRUE(placed.ok()) << placed.status().toString();
    WorkspacePlan size;
    if (placed.ok())
      EXPECT_TRUE(familyOf(name).callable->bind(*on->jit)(placed->call(), size).ok());
    return size.bytes;
  };
  // F, R, Qh, Oh in bf16, e^L in f32; R and Oh.
  EXPECT_EQ(workspaceOf("dplr", inputs, {}), 4u * 8192 + 256);
  EXPECT_EQ(workspaceOf("dplr", inputs, {{"saved", true}}), 2u * 8192);
  // F, R, Rh, h, dh, y, what was written, four matrices, e^L; dh, y, what was written.
  EXPECT_EQ(workspaceOf("dplr_backward", inputs, {}), 11u * 8192 + 256);
  Arrays saved = inputs;
  saved["saved"] = {DType::U8, {7 * 8192 + 256}, std::vector<std::byte>(7 * 8192 + 256)};
  EXPECT_EQ(workspaceOf("dplr_backward", saved, {}), 3u * 8192);
}

TEST_P(DplrSaved, WrongMemoryIsRefused) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 64, 1, 64, 64, {1, 0}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  for (const auto &[name, options] :
       {std::pair("dplr", OptionValues{{"saved", true}}), {"dplr_backward", OptionValues{}}}) {
    const Family &family = familyOf(name);
    Arrays mine = inputsFor(family, inputs);
    if (options.empty())
      mine["saved"] = {DType::U8, {7 * 8192 + 256}, std::vector<std::byte>(7 * 8192 + 256)};
    auto placed = PlacedCall::create(*on->device, *family.callable, mine, options);
    ASSERT_TRUE(placed.ok()) << placed.status().toString();
    const auto refusal = [&](const auto &change) {
      Call call = placed->call();
      change(call.tensors.find("saved")->second, call);
      const Status status = family.callable->run(*on->jit, call, {});
      EXPECT_FALSE(status.ok()) << name;
      EXPECT_FALSE(status.remedy().empty()) << status.toString();
      return status.message();
    };
    const auto has = [](const std::string &message, const char *word) {
      EXPECT_NE(message.find(word), std::string::npos) << message;
    };
    has(refusal([](Tensor &t, Call &) { t.shape[0] -= 256; }), "57600");
    has(refusal([](Tensor &t, Call &) { t.dtype = DType::I8; }), "'saved'");
    has(refusal([](Tensor &t, Call &) { t.address += 16; }), "'saved'");
    // In an input's memory, of the backward call in a gradient's.
    const char *other = options.empty() ? "dk" : "k";
    has(refusal([&](Tensor &t, Call &call) { t.address = call.tensors.find(other)->second.address; }), "overlaps");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrSaved, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
