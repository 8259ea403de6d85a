//===- TensorMap.h - The emulator's tensor maps ---------------------------===//
//
// The 128 bytes that a kernel passes around, little-endian:
//   0 magic "KILNTMAP" | 8 base u64 | 16 dims - 1, 5 x u32 | 36 strides / 16, 4 x u64 | 68 box, 5 x u16 |
//   78 element strides, 5 x u8 | 83 type | 84 rank | 85 interleave | 86 swizzle | 87 L2 promotion | 88 fill |
//   89 mode (0: tiled) | 106 swizzle atomicity | 120 CRC-32 of bytes 0-119 | 124 version
// Enumerations are cuda.h's; swizzle is its 32B, 64B and 128B, of which the last comes in several atomicities as PTX
// numbers them.  Copying the bytes keeps a map valid, changing one does not: a use tells a map from other bytes by
// magic and CRC.  Whether the fields obey the rules of the encoder is asked at each use, since kernels may replace
// them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_TENSORMAP_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_TENSORMAP_H

#include "compiler/target/TensorMap.h"

#include <string>

namespace kiln::emulator {

/// The bytes of a recipe that checkTensorMap accepts.
TensorMap encodeMap(const TensorMapRecipe &recipe);

/// What the 128 bytes at `bytes` say; false with the reason if they are no tensor map or break a rule.
bool decodeMap(const std::byte *bytes, TensorMapRecipe &recipe, std::string &why);

/// Fields of tensormap.replace.
enum class MapField : std::uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElemType,
  InterleaveLayout,
  SwizzleMode,
  SwizzleAtomicity,
  FillMode
};

/// Sets a field to `value`, numbered as PTX does; `ordinal` selects the dimension.  128 zero bytes become a map that
/// has no field set.  False with the reason if the bytes are no tensor map, or no map can hold the value.
bool replaceMapField(std::byte *bytes, MapField field, std::uint32_t ordinal, std::uint64_t value, std::string &why);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_TENSORMAP_H
