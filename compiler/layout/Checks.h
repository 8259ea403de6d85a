//===- Checks.h - Diagnostics that several parts of the layouts share -----===//
//
// Codes L00 .. L20 are those of the layouts specification, section 1.5.  Every message starts with its code and names
// the value and the limit; the remedy of the Status says what to write instead.
//
// The second half are checks that an encoding alone cannot make, because they need the dot, the role's warps or the
// target: verifiers call them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_CHECKS_H
#define KILN_LAYOUT_CHECKS_H

#include "compiler/layout/Encodings.h"
#include "compiler/target/Target.h"

namespace kiln::layout {

/// "[1, 4]".
std::string listText(std::span<const std::int64_t> list);
/// "64x48"; "scalar" for rank 0.
std::string shapeText(std::span<const std::int64_t> shape);

inline bool isPowerOfTwo(std::int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

/// log2 of a parameter, or `code` with the nearest powers of two.
Result<unsigned> log2Of(const char *code, std::string_view name, std::int64_t value);
/// L02 unless the list has one entry a dimension.
Status checkLength(std::string_view name, std::span<const std::int64_t> list, std::size_t rank);
/// The permutation in `list` (or `standard`, if the list is empty); L06.
Result<Sizes> permutationOf(std::string_view name, std::span<const std::int64_t> list, const Sizes &standard,
                            std::size_t rank);
/// [rank-1, .., 0]: the last dimension is fastest.
Sizes lastDimFirst(std::size_t rank);
/// L01 (not a power of two), L18 (too large) or the extents as LinearLayout takes them.
Result<Coords> checkExtents(std::span<const std::int64_t> shape);

/// L12 unless bits is 1, 4, 8, 16, 32 or 64.
Status checkElementBits(std::int64_t bits);
/// Bytes that one element takes in shared memory, in shuffles and in global memory.
inline unsigned storageBytes(unsigned bits) {
  return (bits > 8 ? bits : 8) / 8;
}

/// L05 unless the layout runs on exactly that many warps.
Status checkWarps(const LinearLayout &layout, std::int64_t roleWarps);
/// L16 if the layout spans several blocks and the target has no clusters.
Status checkTarget(const LinearLayout &layout, const Target &target);
/// L18 if one value of the tensor takes more than 2^9 32-bit registers a thread (`repetitions`: TileLayout).
Status checkThreadWords(const LinearLayout &layout, unsigned bits, unsigned repetitions = 1);
/// The operands of one dot: kWidths equal, K large enough for half a K tile, M at least 16, N at least 8 (L09).
Status checkDot(const DotOperand &a, std::span<const std::int64_t> shapeA, const DotOperand &b,
                std::span<const std::int64_t> shapeB, unsigned bits);

} // namespace kiln::layout

#endif // KILN_LAYOUT_CHECKS_H
