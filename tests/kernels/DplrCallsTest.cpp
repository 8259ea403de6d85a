//===- DplrCallsTest.cpp - How the chunked forms of DPLR may be called ------------===//
//
// Tensors of any strides, as many warps as asked for, and what is refused: with a message that names the argument, a
// remedy, and outputs as they were.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/DplrHarness.h"
#include "tests/kernels/Operand.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

class DplrCalls : public Dplr {};

std::vector<std::int64_t> extentsOf(const Tensor &t) {
  return {t.shape.begin(), t.shape.begin() + t.rank};
}

/// Every tensor lies in an order of its own, with memory between its rows that must stay as it is.
TEST_P(DplrCalls, AnyStrides) {
  const DplrProblem p{2, 75, 3, 40, 24, {1, .2}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  unsigned turn = static_cast<unsigned>(GetParam());
  for (const char *name : {"dplr", "dplr_backward"}) {
    if (on->emulated() && !isFullTier() && (name[4] != 0) == (GetParam() % 2 == 0))
      continue;
    SCOPED_TRACE(name);
    const Family &family = familyOf(name);
    const OptionValues options{{std::string(name) == "dplr" ? "final_state" : "dh0", true}};
    const Arrays mine = inputsFor(family, inputs);
    auto placed = PlacedCall::create(*on->device, *family.callable, mine, options);
    ASSERT_TRUE(placed.ok()) << placed.status().toString();
    Call call = placed->call();
    std::vector<Operand> operands;
    std::map<std::string, std::size_t> outputs;
    const std::vector<std::vector<unsigned>> orders{{0, 1, 2, 3}, {2, 0, 1, 3}, {1, 2, 0, 3}, {1, 0, 2, 3}};
    for (auto &[tensor, placedAt] : call.tensors) {
      const MemoryOrder order{orders[turn % 4], static_cast<std::int64_t>(turn % 3 * 5), 3};
      ++turn;
      const bool isInput = mine.count(tensor);
      if (isInput)
        operands.push_back(
            upload(*on->device, placedAt.dtype, extentsOf(placedAt), toHost(mine.at(tensor)).values, order));
      else
        operands.push_back(allocateOutput(*on->device, placedAt.dtype, extentsOf(placedAt), order));
      if (!isInput)
        outputs[tensor] = operands.size() - 1;
      placedAt = operands.back().tensor;
    }
    const Status ran = family.callable->run(*on->jit, call, {});
    ASSERT_TRUE(ran.ok()) << ran.toString();
    ASSERT_TRUE(on->device->defaultStream().synchronize().ok());
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.toString();
    Arrays got;
    for (const auto &[tensor, number] : outputs) {
      const Tensor &t = operands[number].tensor;
      got[tensor] = arrayOf(t.dtype, Shape(t.shape.begin(), t.shape.begin() + t.rank), download(operands[number]));
    }
    ASSERT_EQ(got.size(), std::string(name) == "dplr" ? 2u : 7u);
    ASSERT_NO_FATAL_FAILURE(compare(name, inputs, p, got));
  }
}

TEST_P(DplrCalls, TilesAsAskedFor) {
  struct Tiles {
    std::int64_t warps, blockV, chainWarps, stages;
    std::uint64_t dim;
    std::int64_t segment = 0;
  };
  const Tiles all[] = {{4, 16, 1, 1, 32},    {4, 64, 4, 3, 64},     {8, 32, 8, 2, 32},    {8, 16, 4, 4, 64},
                       {16, 32, 1, 3, 32},   {16, 32, 2, 1, 64},    {4, 32, 4, 1, 64, 1}, {8, 16, 8, 3, 32, 1},
                       {8, 64, 8, 2, 128},   {16, 16, 2, 1, 128},   {8, 32, 4, 1, 256},   {4, 16, 4, 2, 48},
                       {8, 64, 1, 1, 64, 2}, {16, 64, 2, 1, 128, 1}};
  unsigned number = 0;
  for (const Tiles &t : all) {
    if (!chosen(number++, 8))
      continue;
    OptionValues options{
        {"warps", t.warps}, {"block_v", t.blockV}, {"chain_warps", t.chainWarps}, {"stages", t.stages}};
    if (t.segment)
      options["segment_size"] = t.segment;
    const DplrProblem p{1, 130, 1, t.dim, t.dim, {1, .2}, options, DType::BF16};
    ASSERT_NO_FATAL_FAILURE(check(p));
  }
}

TEST_P(DplrCalls, WrongArgumentsAreRefused) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 20, 2, 32, 16, {}, {}, DType::BF16};
  const auto zeros = [](DType type, std::vector<std::uint64_t> shape) {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape)
      n *= extent;
    return arrayOf(type, Shape(shape.begin(), shape.end()), std::vector<double>(n));
  };
  struct Wrong {
    const char *what; ///< in the message
    std::function<void(Arrays &, OptionValues &)> change;
  };
  const auto tensor = [&](const char *name, const Array &array) {
    return [=](Arrays &inputs, OptionValues &) { inputs[name] = array; };
  };
  const auto option = [](const char *name, const OptionValue &value) {
    return [=](Arrays &, OptionValues &options) { options[name] = value; };
  };
  const auto offsets = [](std::vector<std::uint64_t> values) {
    DplrProblem packed{1, 20, 2, 32, 16};
    packed.offsets = std::move(values);
    return packed.offsetsArray();
  };
  const std::vector<Wrong> all{
      {"'k'", tensor("k", zeros(DType::F16, {1, 20, 2, 32}))},
      {"'k' has shape [1, 19, 2, 32]", tensor("k", zeros(DType::BF16, {1, 19, 2, 32}))},
      {"'a'", tensor("a", zeros(DType::BF16, {1, 20, 2, 31}))},
      {"'b'", tensor("b", zeros(DType::F32, {1, 20, 2, 32}))},
      {"'g'", tensor("g", zeros(DType::F16, {1, 20, 2, 32}))},
      {"'v'", tensor("v", zeros(DType::BF16, {1, 20, 3, 16}))},
      {"initial_state", tensor("initial_state", zeros(DType::F32, {2, 2, 32, 16}))},
      {"initial_state", tensor("initial_state", zeros(DType::F32, {1, 2, 16, 32}))},
      {"cu_seqlens", tensor("cu_seqlens", offsets({0, 12, 19}))},
      {"cu_seqlens", tensor("cu_seqlens", offsets({1, 12, 20}))},
      {"cu_seqlens", tensor("cu_seqlens", offsets({0, 12, 9, 20}))},
      {"lower_bound = 0", option("lower_bound", 0)},
      {"lower_bound = 0.5", option("lower_bound", .5)},
      {"chunk_size = 48", option("chunk_size", 48)},
      {"warps = 3", option("warps", 3)},
      {"warps = 32", option("warps", 32)},
      {"block_v = 128", option("block_v", 128)},
      {"block_v = 32 for tiles of 32 columns of q and 16 of v: at most 16", option("block_v", 32)},
      {"chain_warps = 16", option("chain_warps", 16)},
      {"stages = 5", option("stages", 5)},
      {"stages = -1", option("stages", -1)},
      {"segment_size = 3", option("segment_size", 3)},
      {"segment_size = -2", option("segment_size", -2)},
      {"scale", option("scale", std::numeric_limits<double>::infinity())},
      {"cu_seqlens",
       [&](Arrays &inputs, OptionValues &) { // several batches
         for (const char *name : {"q", "k", "a", "b", "g"})
           inputs[name] = zeros(inputs.at(name).type, {2, 10, 2, 32});
         inputs["v"] = zeros(DType::BF16, {2, 10, 2, 16});
         inputs["cu_seqlens"] = offsets({0, 10, 20});
         inputs.erase("initial_state");
       }},
      {"257",
       [&](Arrays &inputs, OptionValues &) { // wider than any head
         for (const char *name : {"q", "k", "a", "b", "g"})
           inputs[name] = zeros(inputs.at(name).type, {1, 4, 1, 257});
         inputs["v"] = zeros(DType::BF16, {1, 4, 1, 16});
         inputs.erase("initial_state");
       }},
  };
  const Family &family = familyOf("dplr");
  for (const Wrong &wrong : all) {
    SCOPED_TRACE(wrong.what);
    Arrays inputs = inputsFor(family, inputsOf(p));
    OptionValues options{{"final_state", true}};
    wrong.change(inputs, options);
    Status refused = family.callable->complete(inputs, options);
    if (refused.ok()) {
      auto placed = PlacedCall::create(*on->device, *family.callable, inputs, options);
      refused = placed.ok() ? family.callable->run(*on->jit, placed->call(), {}) : placed.status();
      if (placed.ok()) {
        const auto outputs = placed->readOutputs();
        ASSERT_TRUE(outputs.ok());
        const auto fresh = PlacedCall::create(*on->device, *family.callable, inputs, options);
        ASSERT_TRUE(fresh.ok());
        const auto untouched = fresh->readOutputs();
        ASSERT_TRUE(untouched.ok());
        for (const auto &[name, array] : *untouched)
          EXPECT_EQ(outputs->at(name).data, array.data) << name;
      }
    }
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.toString().find(wrong.what), std::string::npos) << refused.toString();
    EXPECT_FALSE(refused.remedy().empty()) << refused.toString();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrCalls, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
