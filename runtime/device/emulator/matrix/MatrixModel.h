//===- MatrixModel.h - How matrix instructions compute --------------------===//
//
// The numeric model of mma.sync, wmma and wgmma: section 2.1 of the emulator specification.  A matrix product works on
// tiles of decoded operands, not on fragments: instructions unpack their registers or shared memory into raw elements,
// call `decodeElements` for both operands, and `multiplyTile` for D = A * B + C.
//
// Floating point, mode Exact.  For each element of D and each block of K: products are exact; E is the largest exponent
// among them (the sum of the operands' exponents, not normalised) and C's; every addend is truncated toward zero to a
// multiple of 2^(E - fraction); the sum is exact; the result is truncated to f32 or rounded to nearest even to f16.  It
// is the next block's C.  A zero is +0.  Mode Fast: f32 fma with k ascending.  Integers are exact in both modes.
//
// The functions on tiles are in insn/MatrixTile.h, one copy a CPU level.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXMODEL_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXMODEL_H

#include "compiler/target/MatrixUnits.h"
#include "kiln/Device.h"
#include "runtime/ptx/Ast.h"

#include <cstdint>
#include <optional>

namespace kiln::emulator {

/// Types of the elements of A and B (but for f64 and b1, which have functions of their own), and of C and D.  HalfE4M3:
/// e4m3 converted to f16 before it is multiplied, so that its subnormal numbers are none.
enum class MatrixType : std::uint8_t { F16, BF16, TF32, E4M3, HalfE4M3, E5M2, S8, U8, S4, U4, F32, S32 };

/// Of an instruction's type; f64 and b1 have none.
std::optional<MatrixType> matrixTypeOf(ptx::Type t);

/// Bits of an element as it lies in a register or in memory.
constexpr unsigned matrixTypeBits(MatrixType t) {
  switch (t) {
  case MatrixType::F16:
  case MatrixType::BF16:
    return 16;
  case MatrixType::E4M3:
  case MatrixType::HalfE4M3:
  case MatrixType::E5M2:
  case MatrixType::S8:
  case MatrixType::U8:
    return 8;
  case MatrixType::S4:
  case MatrixType::U4:
    return 4;
  default:
    return 32;
  }
}
constexpr bool isIntegerMatrix(MatrixType t) {
  return t == MatrixType::S8 || t == MatrixType::U8 || t == MatrixType::S4 || t == MatrixType::U4 ||
         t == MatrixType::S32;
}

/// How one instruction computes.
struct MatrixModel {
  MatrixType a = MatrixType::F16, b = MatrixType::F16, c = MatrixType::F32, d = MatrixType::F32;
  std::uint8_t fraction = 25;       ///< F: bits below 2^E that an addend keeps
  std::uint8_t resultFraction = 23; ///< fraction bits of an f32 result; lower ones are truncated
  std::uint8_t block = 16;          ///< elements of K that are summed at once
  bool saturate : 1 = false;        ///< integers: .satfinite
  /// The unit multiplies with C = 0, elements k with k mod 4 < 2 first (`block` is half of K, the caller orders them),
  /// and C is added to the result by an ordinary addition, rounded to nearest.
  bool addsLast : 1 = false;
};
static_assert(sizeof(MatrixModel) == 8, "it fits in Op::imm");

/// The model of `unit` on `target` for a product with `k` elements of K; c and d are F32, F16 or S32.
MatrixModel matrixModel(const Target &target, MatrixUnit unit, MatrixType a, MatrixType b, MatrixType c, MatrixType d,
                        unsigned k);

/// A decoded tile of A or B: element (k, i) at k * stride + i, i a row of A or a column of B.  Exact: an element is
/// significand * 2^exponent, the significand in (-2, 2) or not finite.  Fast, and integers: the significand is the
/// value and exponents are not used.
struct MatrixOperand {
  const float *significand = nullptr;
  const std::int32_t *exponent = nullptr;
  std::uint32_t stride = 0;
  bool special = false; ///< some element is infinite or NaN
};

/// The functions of insn/MatrixTile.h at one CPU level, for code outside a level.
struct MatrixArithmetic {
  bool (*decode)(MatrixType type, MatrixMode mode, const std::uint32_t *raw, std::uint32_t count, bool negate,
                 float *significand, std::int32_t *exponent);
  void (*multiply)(const MatrixModel &model, MatrixMode mode, const MatrixOperand &a, const MatrixOperand &b,
                   std::uint32_t *tile, std::uint32_t stride, std::uint32_t rows, std::uint32_t columns,
                   std::uint32_t k);
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXMODEL_H
