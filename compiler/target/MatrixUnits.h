//===- MatrixUnits.h - Which unit multiplies what -----------------------------===//
//
// One row an instruction, in MatrixUnits.def.  Passes choose the unit of a product from it, lowering the instruction,
// kernels their tiles; `kiln explain` names units by it, and the emulator has the forms that it lists.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_MATRIXUNITS_H
#define KILN_TARGET_MATRIXUNITS_H

#include "compiler/target/Target.h"
#include "support/DType.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class MatrixUnit : std::uint8_t {
  MmaSync, ///< a warp's
  Wgmma,   ///< of four warps
};
/// "mma.sync", "wgmma".
std::string_view matrixUnitName(MatrixUnit unit);

/// Of both operands.  TF32: f32 of which the upper 19 bits are read.
enum class MatrixElements : std::uint8_t { F16, BF16, TF32, F8, I8 };
/// Of the accumulator.
enum class MatrixSums : std::uint8_t { F16, F32, S32 };
/// Where an operand lies; Either: the kernel's choice.
enum class MatrixPlace : std::uint8_t { Registers, Shared, Either };

/// Whether products of tiles become this instruction, or only the emulator knows it.
enum class MatrixUse : std::uint8_t { Lowered, Emulated };

/// D = A * B + C, of m x k, k x n and m x n elements.
struct MatrixInstruction {
  MatrixUnit unit;
  MatrixElements elements;
  MatrixSums sums;
  unsigned m, leastN, mostN, k;
  MatrixPlace lhs, rhs, accumulator;
  Capability needs;
  MatrixUse use;

  /// Bits of an operand's element where it lies.
  unsigned bits() const;
  /// 32-bit words of a thread along K, of an instruction of one warp: four threads share a row.
  unsigned wordsOfK() const { return k * bits() / (4 * 32); }
  bool takesN(unsigned n) const;
  /// "m16n8k16".
  std::string shape(unsigned n) const;
  /// The types as PTX names them, "f32.f16.f16": sums, A, B, for each pair that the elements stand for.
  std::vector<std::string> types() const;
};

/// All of them, by unit and elements, the shortest K first.
std::span<const MatrixInstruction> matrixInstructions();

/// The unit's first instruction that products of such elements become, on whatever target; null if there is none.
const MatrixInstruction *loweredInstruction(MatrixUnit unit, MatrixElements elements);

/// What products of such elements can become on the target, in the order of the table.
std::vector<MatrixInstruction> matrixInstructions(const Target &target, MatrixUnit unit, MatrixElements elements);

/// Some unit of the target multiplies them.
bool multipliesMatrices(const Target &target, MatrixElements elements);

/// What operands of the type are to a matrix unit; f32 only where it may be rounded.  Nothing: no unit takes the type.
std::optional<MatrixElements> matrixElements(DType type, bool mayRound);

} // namespace kiln

#endif // KILN_TARGET_MATRIXUNITS_H
