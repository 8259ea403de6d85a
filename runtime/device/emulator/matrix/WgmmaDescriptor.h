//===- WgmmaDescriptor.h - Matrices in shared memory, as wgmma sees them ---===//
//
// A 64-bit descriptor says where a matrix operand of wgmma.mma_async lies: section 2.2 of the emulator specification.
// An operand has 32 bytes of K.  K-major: rows of M or N, each with its K bytes side by side.  MN-major (16-bit types
// only): rows of K, each with its elements of M or N side by side.  Either way memory is read in pieces of 16 bytes
// that stay together under every swizzle.
//
// Pure functions of the descriptor; whether the bytes belong to the block is the caller's question.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMADESCRIPTOR_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMADESCRIPTOR_H

#include <cstdint>

namespace kiln::emulator {

struct WgmmaDescriptor {
  std::uint32_t start = 0;        ///< offset in shared memory, 18 bits
  std::uint32_t leading = 0;      ///< leading dimension byte offset
  std::uint32_t stride = 0;       ///< stride dimension byte offset
  std::uint32_t baseOffset = 0;   ///< 128-byte lines by which the swizzle pattern is moved
  std::uint32_t swizzleBytes = 0; ///< 128, 64, 32; 0: no swizzle
  std::uint64_t reserved = 0;     ///< bits that are set and must not be
};
WgmmaDescriptor wgmmaDescriptor(std::uint64_t bits);

/// How an operand of `extent` elements of M or N is read.
struct WgmmaOperand {
  bool mnMajor = false;
  std::uint32_t extent = 8;

  static constexpr unsigned bytesOfK = 32, pieceBytes = 16, rowsOfK = 16;
  std::uint32_t pieces() const { return 2 * extent; }
  /// MN-major: pieces of a row of K.
  std::uint32_t piecesOfRow() const { return mnMajor ? extent / 8 : bytesOfK / pieceBytes; }
  /// Piece i lies in this row (of M or N, or of K) and starts at this byte of it.
  std::uint32_t rowOf(std::uint32_t piece) const { return piece / piecesOfRow(); }
  std::uint32_t byteOf(std::uint32_t piece) const { return piece % piecesOfRow() * pieceBytes; }
};

/// Offset in shared memory of byte `byte` of row `row`: a row of M or N and a byte of K, or, MN-major, a row of K and a
/// byte along M or N.
std::uint32_t wgmmaOffset(const WgmmaDescriptor &descriptor, bool mnMajor, std::uint32_t row, std::uint32_t byte);
/// The offsets of all pieces of the operand; `out` has room for `pieces()`.
void wgmmaPieces(const WgmmaDescriptor &descriptor, const WgmmaOperand &operand, std::uint32_t *out);
/// Whether addresses of the operand depend on the leading or the stride byte offset.
bool usesLeading(const WgmmaDescriptor &descriptor, const WgmmaOperand &operand);
bool usesStride(const WgmmaDescriptor &descriptor, const WgmmaOperand &operand);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMADESCRIPTOR_H
