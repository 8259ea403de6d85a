//===- SampleTest.cpp - Samples of large references ------------------------------===//
#include "kernels/support/Sampling.h"
#include "tests/kernels/Bench.h"

namespace kiln::test {
namespace {

using namespace kernels;

TEST(Sample, OneOfEachPart) {
  for (const auto &[n, count] :
       {std::pair<std::uint64_t, std::uint64_t>{100, 7}, {1 << 20, 1000}, {5, 5}, {3, 9}, {1, 0}}) {
    const std::vector<std::uint64_t> sample = sampleOf(n, count);
    const std::uint64_t parts = std::clamp<std::uint64_t>(count, 1, n);
    ASSERT_EQ(sample.size(), parts) << n;
    for (std::uint64_t i = 0; i < parts; ++i) {
      EXPECT_GE(sample[i], i * (n / parts));
      EXPECT_LT(sample[i], (i + 1) * (n / parts));
    }
    EXPECT_EQ(sample, sampleOf(n, count)) << "not the same every time";
  }
  EXPECT_TRUE(sampleOf(0, 4).empty());
}

/// A sample of a reference holds the whole one's elements, and so do its tolerances; a wrong element in it is found,
/// with its place, one outside is not looked at.
void expectSampleOf(const Family &family, const Arrays &inputs, const OptionValues &options, double work) {
  SCOPED_TRACE(family.name());
  const HostTensors host = toHost(inputs);
  const Reference &reference = *family.reference;
  const auto whole = reference.compute(host, options);
  OptionValues limited = options;
  limited["reference_work"] = work;
  const auto part = reference.compute(host, limited);
  ASSERT_TRUE(whole.ok() && part.ok());
  ASSERT_EQ(whole->size(), part->size());
  const auto typeOf = [](std::string_view name) { return name == "lse" ? DType::F32 : DType::F16; };
  Arrays outputs;
  for (const auto &[name, all] : *whole) {
    const HostTensor &some = part->at(name);
    EXPECT_TRUE(all.sample.empty());
    ASSERT_FALSE(some.sample.empty());
    ASSERT_EQ(some.sample.size(), some.values.size());
    EXPECT_LT(some.values.size(), all.values.size() / 2);
    EXPECT_GT(some.values.size(), all.values.size() / 200);
    for (std::size_t i = 0; i < some.sample.size(); ++i)
      ASSERT_EQ(some.values[i], all.values[some.sample[i]]) << name << " " << some.sample[i];
    EXPECT_EQ(reference.allowed(name, typeOf(name), host, *part, limited).size(), some.values.size());
    outputs[name] = arrayOf(typeOf(name), all.shape, all.values);
  }
  const auto good = compareWithReference(family, inputs, limited, outputs);
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good->good()) << good->toString();
  EXPECT_LT(good->elements, good->all);
  EXPECT_NE(good->toString().find(", a sample of "), std::string::npos) << good->toString();
  const auto &[name, some] = *part->begin();
  const std::uint64_t seen = some.sample.back();
  std::vector<double> values = whole->at(name).values;
  values[seen] += 1000;
  outputs[name] = arrayOf(typeOf(name), some.shape, values);
  const auto bad = compareWithReference(family, inputs, limited, outputs);
  ASSERT_TRUE(bad.ok());
  EXPECT_EQ(bad->wrong, 1u);
  EXPECT_EQ(bad->worstIndex, seen);
}

void expectSample(const Family &family, const TensorTypes &types, const OptionValues &options, double work) {
  expectSampleOf(family, randomInputs(family, types, 11), options, work);
}

TEST(Sample, OfAttention) {
  const auto dense = [](std::uint64_t rows) {
    return TensorTypes{
        {"q", {DType::F16, {2, rows, 4, 16}}}, {"k", {DType::F16, {2, 50, 2, 16}}}, {"v", {DType::F16, {2, 50, 2, 8}}}};
  };
  expectSample(familyOf("attention"), dense(40), {{"causal", true}, {"lse", true}}, 40000);
  expectSample(familyOf("attention"), {{"qkv", {DType::F16, {50, 2, 8, 16}}}}, {{"heads", 4}, {"key_heads", 2}}, 40000);
}

TEST(Sample, OfAttentionDecode) {
  expectSample(familyOf("attention_decode"),
               {{"q", {DType::F16, {2, 4, 4, 16}}},
                {"k_cache", {DType::F16, {2, 50, 2, 16}}},
                {"v_cache", {DType::F16, {2, 50, 2, 8}}}},
               {{"causal", true}, {"lse", true}}, 80000);
}

TEST(Sample, OfAttentionBackward) {
  const Family &family = familyOf("attention_backward");
  Arrays inputs = randomInputs(family,
                               {{"q", {DType::F16, {2, 40, 4, 16}}},
                                {"k", {DType::F16, {2, 50, 2, 16}}},
                                {"v", {DType::F16, {2, 50, 2, 8}}},
                                {"o", {DType::F16, {2, 40, 4, 8}}},
                                {"do", {DType::F16, {2, 40, 4, 8}}}},
                               11);
  inputs["lse"] = arrayOf(DType::F32, {2, 4, 40}, std::vector<double>(320, 4.0));
  expectSampleOf(family, inputs, {{"causal", true}, {"scale", 0.01}}, 80000); // so that powers are small
}

/// A small error in every element: each is within tolerance, their mean is not.
TEST(Sample, TheMeanOfAttentionIsLimited) {
  const Family &family = familyOf("attention");
  const Arrays inputs = randomInputs(family, family.samples->calls(DType::F16, SampleUse::Check, false)[1].inputs, 3);
  const auto reference = family.reference->compute(toHost(inputs), {});
  ASSERT_TRUE(reference.ok());
  const HostTensor &o = reference->at("o");
  const double each = family.reference->allowed("o", DType::F16, toHost(inputs), *reference, {})[0];
  for (const double part : {0.0, 0.9}) {
    std::vector<double> values = o.values;
    for (double &v : values)
      v += part * each;
    const auto compared = compareWithReference(family, inputs, {}, {{"o", arrayOf(DType::F16, o.shape, values)}});
    ASSERT_TRUE(compared.ok());
    EXPECT_EQ(compared->wrong, 0u);
    EXPECT_EQ(compared->good(), part == 0) << compared->toString();
    EXPECT_EQ(compared->toString().find("the mean difference of 'o' is") != std::string::npos, part != 0);
  }
}

TEST(Sample, OfMatmul) {
  expectSample(familyOf("matmul"),
               {{"a", {DType::F16, {3, 20, 30}}}, {"b", {DType::F16, {24, 30}}}, {"bias", {DType::F16, {24}}}},
               {{"transpose_b", true}, {"scale", 0.5}, {"activation", "gelu"}}, 5000);
}

} // namespace
} // namespace kiln::test
