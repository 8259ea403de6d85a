// The table of section 2.1: which sums a target's matrix units round.
#include "runtime/device/emulator/matrix/MatrixModel.h"

#include "compiler/target/Target.h"

#include <iterator>

namespace kiln {

static constexpr std::string_view modeNames[] = {"exact", "fast"};

std::string_view matrixModeName(MatrixMode mode) {
  return modeNames[static_cast<std::size_t>(mode)];
}

Result<MatrixMode> parseMatrixMode(std::string_view name) {
  for (std::size_t i = 0; i < std::size(modeNames); ++i)
    if (name == modeNames[i])
      return static_cast<MatrixMode>(i);
  return Status::invalid("'" + std::string(name) + "' is none of exact, fast", "use exact or fast");
}

} // namespace kiln

namespace kiln::emulator {

std::optional<MatrixType> matrixTypeOf(ptx::Type t) {
  switch (t) {
  case ptx::Type::F16:
    return MatrixType::F16;
  case ptx::Type::BF16:
    return MatrixType::BF16;
  case ptx::Type::TF32:
    return MatrixType::TF32;
  case ptx::Type::E4M3:
    return MatrixType::E4M3;
  case ptx::Type::E5M2:
    return MatrixType::E5M2;
  case ptx::Type::S8:
    return MatrixType::S8;
  case ptx::Type::U8:
    return MatrixType::U8;
  case ptx::Type::S4:
    return MatrixType::S4;
  case ptx::Type::U4:
    return MatrixType::U4;
  case ptx::Type::F32:
    return MatrixType::F32;
  case ptx::Type::S32:
    return MatrixType::S32;
  default:
    return std::nullopt;
  }
}

static bool isByteFloat(MatrixType t) {
  return t == MatrixType::E4M3 || t == MatrixType::E5M2;
}

MatrixModel matrixModel(const Target &target, MatrixUnit unit, MatrixType a, MatrixType b, MatrixType c, MatrixType d,
                        unsigned k) {
  MatrixModel m;
  m.a = a;
  m.b = b;
  m.c = c;
  m.d = d;
  m.block = static_cast<std::uint8_t>(k);
  if (isIntegerMatrix(a))
    return m;
  if (isByteFloat(a)) {
    // Before sm_100 the units for fp8 keep 13 bits.  mma.sync on sm_90 is made of two products of f16 and an addition
    // (seen on an H200; tests/parity).
    const bool narrow = target.sm < 90 || (target.sm == 90 && unit == MatrixUnit::Wgmma);
    m.fraction = narrow ? 13 : 25;
    m.resultFraction = narrow ? 13 : 23;
    m.addsLast = target.sm == 90 && unit == MatrixUnit::MmaSync;
    if (m.addsLast) {
      m.block = static_cast<std::uint8_t>(k / 2);
      for (MatrixType *t : {&m.a, &m.b})
        *t = *t == MatrixType::E4M3 ? MatrixType::HalfE4M3 : *t;
    } else if (target.sm < 90) {
      m.block = 16;
    }
  } else if (target.sm < 90) {
    m.fraction = 24;
    m.block = a == MatrixType::TF32 ? 4 : 8;
  }
  if (m.block > k)
    m.block = static_cast<std::uint8_t>(k);
  return m;
}

} // namespace kiln::emulator
