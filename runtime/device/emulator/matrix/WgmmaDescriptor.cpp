#include "runtime/device/emulator/matrix/WgmmaDescriptor.h"

namespace kiln::emulator {

static constexpr std::uint64_t bitsOf(unsigned first, unsigned last) {
  return ((std::uint64_t(1) << (last - first + 1)) - 1) << first;
}
/// Of the fields; all other bits must be 0.
static constexpr std::uint64_t known =
    bitsOf(0, 13) | bitsOf(16, 29) | bitsOf(32, 45) | bitsOf(49, 51) | bitsOf(62, 63);

WgmmaDescriptor wgmmaDescriptor(std::uint64_t bits) {
  constexpr std::uint32_t swizzles[] = {0, 128, 64, 32};
  auto bytes = [&](unsigned first) { return static_cast<std::uint32_t>(bits >> first & 0x3FFF) << 4; };
  WgmmaDescriptor d;
  d.start = bytes(0);
  d.leading = bytes(16);
  d.stride = bytes(32);
  d.baseOffset = static_cast<std::uint32_t>(bits >> 49 & 7);
  d.swizzleBytes = swizzles[bits >> 62];
  d.reserved = bits & ~known;
  return d;
}

std::uint32_t wgmmaOffset(const WgmmaDescriptor &d, bool mnMajor, std::uint32_t row, std::uint32_t byte) {
  const std::uint32_t s = d.swizzleBytes, eights = row / 8, line = row % 8;
  if (!s) {
    const std::uint32_t along = byte / 16, inside = line * 16 + byte % 16;
    return mnMajor ? d.start + along * d.stride + eights * d.leading + inside
                   : d.start + eights * d.stride + along * d.leading + inside;
  }
  const auto log = static_cast<unsigned>(__builtin_ctz(s));
  const std::uint32_t at = mnMajor
                               ? d.start + (byte >> log) * d.leading + eights * d.stride + line * s + (byte & (s - 1))
                               : d.start + eights * d.stride + line * s + byte;
  // The lines of 128 bytes decide which pieces of 16 bytes change places.
  return at ^ (((at >> 7) - d.baseOffset) & (s / 16 - 1)) << 4;
}

void wgmmaPieces(const WgmmaDescriptor &d, const WgmmaOperand &operand, std::uint32_t *out) {
  const std::uint32_t inRow = operand.piecesOfRow(), rows = operand.pieces() / inRow;
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::uint32_t p = 0; p < inRow; ++p)
      *out++ = wgmmaOffset(d, operand.mnMajor, r, p * WgmmaOperand::pieceBytes);
}

bool usesLeading(const WgmmaDescriptor &d, const WgmmaOperand &operand) {
  if (!d.swizzleBytes)
    return true; // two pieces of 16 bytes of K, or two times 8 rows of K
  return operand.mnMajor && operand.extent * 2 > d.swizzleBytes;
}

bool usesStride(const WgmmaDescriptor &d, const WgmmaOperand &operand) {
  if (operand.mnMajor && d.swizzleBytes)
    return true; // 16 rows of K
  return operand.extent > 8;
}

} // namespace kiln::emulator
