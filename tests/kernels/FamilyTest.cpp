//===- FamilyTest.cpp - A family that is only called ------------------------------===//
#include "kernels/copy/CopyOperation.h"
#include "tests/kernels/Bench.h"

namespace kiln::test {
namespace {

using namespace kernels;

/// As copy, without a reference and samples.
class PlainCopy : public Callable {
public:
  std::string_view name() const override { return "plain_copy"; }
  std::string_view summary() const override { return "out = x"; }
  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "any shape"}, {"out", true, false, "as x"}};
  }
  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    return TensorTypes{{"out", inputs.at("x")}};
  }
  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<CopyOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }
  std::vector<FieldInfo> settings() const override { return fieldsOf<CopyConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, CopyConfig(), [&](const CopyConfig &c) { return copy(element, c); });
  }
};

TEST(Family, OfACallAloneIsRunAndRecorded) {
  Opened *on = openedDevice(deviceNames().front());
  ASSERT_TRUE(on);
  const Family family{std::make_unique<PlainCopy>()};
  EXPECT_EQ(family.name(), "plain_copy");
  EXPECT_TRUE(family.callable->record(DType::I32, {{"block", "2048"}}).ok());
  EXPECT_FALSE(family.callable->record(DType::I32, {{"block", "x"}}).ok());
  const Arrays inputs = randomInputs(family, {{"x", {DType::F32, {3, 1000}}}}, 5);
  ASSERT_EQ(inputs.size(), 1u);
  const auto ran = runCall(*on->jit, *family.callable, inputs, {});
  ASSERT_TRUE(ran.ok()) << ran.status().toString();
  EXPECT_TRUE(ran->findings.empty());
  EXPECT_EQ(ran->outputs.at("out").data, inputs.at("x").data);
  EXPECT_EQ(ran->bytes, 2.0 * 3000 * 4);
}

TEST(Family, WithoutAPartSaysSo) {
  const Family family{std::make_unique<PlainCopy>()};
  const Array x = randomArray({DType::F32, {8}}, 1);
  const Status compared = compareWithReference(family, {{"x", x}}, {}, {{"out", x}}).status();
  EXPECT_EQ(compared.code(), StatusCode::InvalidArgument);
  EXPECT_NE(compared.message().find("kernel 'plain_copy' has no reference"), std::string::npos) << compared.toString();
  const Status sampled = samplesOf(family).status();
  EXPECT_NE(sampled.message().find("kernel 'plain_copy' has no samples"), std::string::npos) << sampled.toString();
  EXPECT_NE(sampled.remedy().find("kiln run"), std::string::npos);
}

TEST(Family, OfTheLibraryHaveAllParts) {
  const auto all = selectFamilies({}), whole = selectFamilies({}, {.reference = true, .samples = true});
  ASSERT_TRUE(all.ok() && whole.ok());
  EXPECT_EQ(*all, *whole);
  EXPECT_EQ(all->size(), families().size());
}

} // namespace
} // namespace kiln::test
