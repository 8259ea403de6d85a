//===- MatrixTile.h - Matrix products of decoded tiles --------------------===//
//
// The arithmetic of matrix instructions (MatrixModel.h) as a fast loop over tiles.
//
// Element (k, i) of an operand lies at k * stride + i; i is a row of A or a column of B.  Element (i, j) of C and D
// lies at j * stride + i as 32 bits: an f32, an f16 zero-extended, or an integer.  Rows are worked on 16 at a time: A,
// C and D have a multiple of 16 rows (unused ones may hold anything, zero is best) and strides that are multiples of
// 16; all arrays are aligned to 64 bytes.  A and B may change places: the model is symmetric.
//
// One copy a CPU level: for code between LevelBegin.h and LevelEnd.h.  All levels give equal bits.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_INSN_MATRIXTILE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_INSN_MATRIXTILE_H

#include "runtime/device/emulator/matrix/MatrixModel.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {

/// Decodes `count` elements (a multiple of 16) of `type`, each in the low bits of 32: significands and exponents at the
/// same places.  True if one is infinite or NaN.  `negate`: with the other sign.
bool decodeElements(MatrixType type, MatrixMode mode, const std::uint32_t *raw, std::uint32_t count, bool negate,
                    float *significand, std::int32_t *exponent);

/// D = A * B + C for `rows` (a multiple of 16) and `columns`; `tile` holds C before and D after.
void multiplyTile(const MatrixModel &model, MatrixMode mode, const MatrixOperand &a, const MatrixOperand &b,
                  std::uint32_t *tile, std::uint32_t stride, std::uint32_t rows, std::uint32_t columns,
                  std::uint32_t k);

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#endif // KILN_RUNTIME_DEVICE_EMULATOR_INSN_MATRIXTILE_H
