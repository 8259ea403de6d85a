//===- Redzones.h - Memory around a tensor that no call may write ------------===//
//
// A buffer whose first and last `redzoneBytes` hold a pattern, and the tensor between them.  A GPU does not notice a
// store that goes past a tensor and stays inside of memory that the process has; what it did to the pattern shows it.
//
// The zones are as wide as a tile of 128 rows of 8 KiB.  They keep the alignment of what lies between them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_REDZONES_H
#define KILN_KERNELS_SUPPORT_REDZONES_H

#include "kiln/Device.h"

#include <optional>
#include <string>

namespace kiln::kernels {

constexpr std::size_t redzoneBytes = std::size_t(1) << 20;

/// Writes the pattern around the tensor of a buffer of at least both zones' size.
Status fillRedzones(Buffer &buffer);

/// How much of the pattern was written over, and how far from tensor `name` the nearest byte lies; nothing: it is
/// whole.
Result<std::optional<std::string>> redzoneDamage(const Buffer &buffer, const std::string &name);

/// Inputs are compared in pieces of this size.
constexpr std::size_t inputPieceBytes = std::size_t(8) << 20;

/// Whether `wanted` still stands in the buffer from `offset` on: all of it, or of a larger one the piece with the
/// number `turn`, counted round.  Nothing: it does.
Result<std::optional<std::string>> inputDamage(const Buffer &buffer, std::size_t offset, const std::string &name,
                                               std::span<const std::byte> wanted, std::size_t turn);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_REDZONES_H
