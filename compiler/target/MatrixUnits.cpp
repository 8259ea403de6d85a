#include "compiler/target/MatrixUnits.h"

namespace kiln {
namespace {

constexpr MatrixInstruction instructions[] = {
#define KILN_MATRIX_INSTRUCTION(unit, elements, sums, m, leastN, mostN, k, lhs, rhs, accumulator, needs, use)          \
  {MatrixUnit::unit,                                                                                                   \
   MatrixElements::elements,                                                                                           \
   MatrixSums::sums,                                                                                                   \
   m,                                                                                                                  \
   leastN,                                                                                                             \
   mostN,                                                                                                              \
   k,                                                                                                                  \
   MatrixPlace::lhs,                                                                                                   \
   MatrixPlace::rhs,                                                                                                   \
   MatrixPlace::accumulator,                                                                                           \
   Capability::needs,                                                                                                  \
   MatrixUse::use},
#include "compiler/target/MatrixUnits.def"
};

std::span<const std::string_view> typesOf(MatrixElements elements) {
  static constexpr std::string_view f16[] = {"f16"}, bf16[] = {"bf16"}, tf32[] = {"tf32"}, f8[] = {"e4m3", "e5m2"},
                                    i8[] = {"s8", "u8"};
  switch (elements) {
  case MatrixElements::F16:
    return f16;
  case MatrixElements::BF16:
    return bf16;
  case MatrixElements::TF32:
    return tf32;
  case MatrixElements::F8:
    return f8;
  case MatrixElements::I8:
    return i8;
  }
  return {};
}

std::string_view nameOf(MatrixSums sums) {
  return sums == MatrixSums::F16 ? "f16" : sums == MatrixSums::F32 ? "f32" : "s32";
}

} // namespace

std::string_view matrixUnitName(MatrixUnit unit) {
  return unit == MatrixUnit::MmaSync ? "mma.sync" : "wgmma";
}

unsigned MatrixInstruction::bits() const {
  switch (elements) {
  case MatrixElements::TF32:
    return 32;
  case MatrixElements::F16:
  case MatrixElements::BF16:
    return 16;
  case MatrixElements::F8:
  case MatrixElements::I8:
    return 8;
  }
  return 0;
}

bool MatrixInstruction::takesN(unsigned n) const {
  const unsigned step = sums == MatrixSums::S32 && n > 32 ? 16 : 8;
  return n >= leastN && n <= mostN && n % step == 0;
}

std::string MatrixInstruction::shape(unsigned n) const {
  return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
}

std::vector<std::string> MatrixInstruction::types() const {
  std::vector<std::string> out;
  for (const std::string_view a : typesOf(elements))
    for (const std::string_view b : typesOf(elements))
      out.push_back(std::string(nameOf(sums)) + "." + std::string(a) + "." + std::string(b));
  return out;
}

std::span<const MatrixInstruction> matrixInstructions() {
  return instructions;
}

const MatrixInstruction *loweredInstruction(MatrixUnit unit, MatrixElements elements) {
  for (const MatrixInstruction &i : instructions)
    if (i.use == MatrixUse::Lowered && i.unit == unit && i.elements == elements)
      return &i;
  return nullptr;
}

std::vector<MatrixInstruction> matrixInstructions(const Target &target, MatrixUnit unit, MatrixElements elements) {
  std::vector<MatrixInstruction> out;
  for (const MatrixInstruction &i : instructions)
    if (i.use == MatrixUse::Lowered && i.unit == unit && i.elements == elements && target.has(i.needs))
      out.push_back(i);
  return out;
}

bool multipliesMatrices(const Target &target, MatrixElements elements) {
  for (const MatrixInstruction &i : instructions)
    if (i.use == MatrixUse::Lowered && i.elements == elements && target.has(i.needs))
      return true;
  return false;
}

std::optional<MatrixElements> matrixElements(DType type, bool mayRound) {
  switch (type) {
  case DType::F16:
    return MatrixElements::F16;
  case DType::BF16:
    return MatrixElements::BF16;
  case DType::F32:
    return mayRound ? std::optional(MatrixElements::TF32) : std::nullopt;
  case DType::F8E4M3:
  case DType::F8E5M2:
    return MatrixElements::F8;
  case DType::I8:
    return MatrixElements::I8;
  default:
    return std::nullopt;
  }
}

} // namespace kiln
