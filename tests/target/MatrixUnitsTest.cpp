#include "compiler/target/MatrixUnits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace kiln;

namespace {

constexpr MatrixElements allElements[] = {MatrixElements::F16, MatrixElements::BF16, MatrixElements::TF32,
                                          MatrixElements::F8, MatrixElements::I8};

std::set<unsigned> depths(const Target &target, MatrixUnit unit, MatrixElements elements) {
  std::set<unsigned> out;
  for (const MatrixInstruction &i : matrixInstructions(target, unit, elements))
    out.insert(i.k);
  return out;
}

} // namespace

TEST(MatrixUnits, RowsAreDistinctAndPossible) {
  std::set<std::string> seen;
  for (const MatrixInstruction &i : matrixInstructions()) {
    const std::string name = std::string(matrixUnitName(i.unit)) + " " + i.shape(i.leastN) + " " + i.types().front();
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_LE(i.leastN, i.mostN) << name;
    EXPECT_TRUE(i.takesN(i.leastN) && i.takesN(i.mostN)) << name;
    EXPECT_FALSE(i.takesN(i.leastN - 1) || i.takesN(i.mostN + 8)) << name;
    // A thread has one or two words of a row along K; wgmma reads 32 bytes of K.
    if (i.unit == MatrixUnit::MmaSync)
      EXPECT_TRUE(i.wordsOfK() == 1 || i.wordsOfK() == 2) << name;
    else
      EXPECT_EQ(i.k * i.bits(), 256u) << name;
    EXPECT_TRUE(std::ranges::any_of(allTargets(), [&](const Target &t) { return t.has(i.needs); })) << name;
  }
}

TEST(MatrixUnits, TheShortestKIsFirst) {
  for (const Target &target : allTargets())
    for (const MatrixUnit unit : {MatrixUnit::MmaSync, MatrixUnit::Wgmma})
      for (const MatrixElements elements : allElements) {
        const auto list = matrixInstructions(target, unit, elements);
        EXPECT_TRUE(std::ranges::is_sorted(list, {}, &MatrixInstruction::k)) << target.name;
        for (const MatrixInstruction &i : list)
          EXPECT_EQ(i.use, MatrixUse::Lowered) << target.name;
      }
}

// By the architectures of PTX ISA 9.0, not by the table's own capabilities.
TEST(MatrixUnits, TargetsMultiplyWhatTheirArchitectureDoes) {
  using Depths = std::set<unsigned>;
  for (const Target &t : allTargets()) {
    const bool ampere = t.sm >= 80, ada = t.sm >= 89, hopper = t.name == "sm_90a";
    const auto mma = [&](MatrixElements e) { return depths(t, MatrixUnit::MmaSync, e); };
    EXPECT_EQ(mma(MatrixElements::F16), ampere ? (Depths{8, 16}) : Depths{8}) << t.name;
    EXPECT_EQ(mma(MatrixElements::BF16), ampere ? (Depths{8, 16}) : Depths{}) << t.name;
    EXPECT_EQ(mma(MatrixElements::TF32), ampere ? (Depths{4, 8}) : Depths{}) << t.name;
    EXPECT_EQ(mma(MatrixElements::I8), ampere ? (Depths{16, 32}) : Depths{16}) << t.name;
    EXPECT_EQ(mma(MatrixElements::F8), ada ? Depths{32} : Depths{}) << t.name;
    const auto wgmma = [&](MatrixElements e) { return depths(t, MatrixUnit::Wgmma, e); };
    EXPECT_EQ(wgmma(MatrixElements::F16), hopper ? Depths{16} : Depths{}) << t.name;
    EXPECT_EQ(wgmma(MatrixElements::BF16), hopper ? Depths{16} : Depths{}) << t.name;
    EXPECT_EQ(wgmma(MatrixElements::TF32), hopper ? Depths{8} : Depths{}) << t.name;
    for (const MatrixElements e : allElements)
      EXPECT_EQ(multipliesMatrices(t, e), !mma(e).empty() || !wgmma(e).empty()) << t.name;
  }
}

TEST(MatrixUnits, ACapabilityThatIsTakenAwayTakesItsInstructions) {
  Target target = **findTarget("sm_90a");
  target.capabilities.erase(Capability::Wgmma);
  EXPECT_TRUE(matrixInstructions(target, MatrixUnit::Wgmma, MatrixElements::BF16).empty());
  EXPECT_TRUE(multipliesMatrices(target, MatrixElements::BF16));
  target.capabilities.erase(Capability::Bf16Mma);
  EXPECT_FALSE(multipliesMatrices(target, MatrixElements::BF16));
  EXPECT_TRUE(multipliesMatrices(target, MatrixElements::F16));
  target.capabilities.erase(Capability::Mma);
  EXPECT_FALSE(multipliesMatrices(target, MatrixElements::F16));
}

TEST(MatrixUnits, TypesAreMixedOnlyWhereTheUnitMixesThem) {
  for (const MatrixInstruction &i : matrixInstructions()) {
    const bool mixes = i.elements == MatrixElements::F8 || i.elements == MatrixElements::I8;
    EXPECT_EQ(i.types().size(), mixes ? 4u : 1u);
  }
  EXPECT_EQ(loweredInstruction(MatrixUnit::MmaSync, MatrixElements::F8)->types()[1], "f32.e4m3.e5m2");
  EXPECT_EQ(loweredInstruction(MatrixUnit::Wgmma, MatrixElements::TF32)->shape(40), "m64n40k8");
  EXPECT_EQ(loweredInstruction(MatrixUnit::Wgmma, MatrixElements::I8), nullptr);
}

TEST(MatrixUnits, IntegersHaveFewerN) {
  for (const MatrixInstruction &i : matrixInstructions())
    if (i.unit == MatrixUnit::Wgmma) {
      unsigned count = 0;
      for (unsigned n = 1; n <= 300; ++n)
        count += i.takesN(n);
      EXPECT_EQ(count, i.sums == MatrixSums::S32 ? 18u : 32u);
    }
}

TEST(MatrixUnits, ElementTypes) {
  EXPECT_EQ(matrixElements(DType::F32, false), std::nullopt);
  EXPECT_EQ(matrixElements(DType::F32, true), MatrixElements::TF32);
  EXPECT_EQ(matrixElements(DType::F8E5M2, false), MatrixElements::F8);
  EXPECT_EQ(matrixElements(DType::F64, true), std::nullopt);
  EXPECT_EQ(matrixElements(DType::I32, true), std::nullopt);
}
