//===- TensorMap.h - What a tensor copy engine is told of a tensor --------===//
//
// A tensor map describes a tensor in global memory and the box of it that one instruction copies.  It is 128 opaque
// bytes that belong to the device that made them: kernels and metadata carry the recipe, `Device::encodeTensorMap`
// makes the bytes, and a launch passes them by value as a parameter `.param .align 64 .b8 name[128]`.
//
// Dimension 0 is the contiguous one.  Rules are the driver's (cuTensorMapEncodeTiled).  The compiler checks those that
// need no tensor (checkTensorMapForm), both kinds of device check all of them, with the same functions, so that a
// refusal says the same everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_TENSORMAP_H
#define KILN_TARGET_TENSORMAP_H

#include "support/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln {

/// Element types, numbered as CUtensorMapDataType.
enum class TensorMapType : std::uint8_t { U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz };
/// CUtensorMapInterleave.
enum class TensorMapInterleave : std::uint8_t { None, B16, B32 };
/// CUtensorMapSwizzle: how 16-byte chunks (or those named) of a shared-memory row are permuted.
enum class TensorMapSwizzle : std::uint8_t { None, B32, B64, B128, B128Atom32, B128Atom32Flip8, B128Atom64 };
/// CUtensorMapL2promotion.
enum class TensorMapPromotion : std::uint8_t { None, B64, B128, B256 };
/// CUtensorMapFloatOOBfill: what elements outside the tensor read as.
enum class TensorMapFill : std::uint8_t { Zeros, Nan };

constexpr unsigned tensorMapTypes = 13, tensorMapSwizzles = 7;

unsigned tensorMapTypeBytes(TensorMapType type);
std::string_view tensorMapTypeName(TensorMapType type);                   ///< "bf16", "tf32_ftz"
std::string_view tensorMapSwizzleName(TensorMapSwizzle swizzle);          ///< "none", "128B", "128B_atom_32B"
std::string_view tensorMapInterleaveName(TensorMapInterleave interleave); ///< "none", "16B", "32B"
std::string_view tensorMapPromotionName(TensorMapPromotion promotion);    ///< "none", "64B", "128B", "256B"
std::string_view tensorMapFillName(TensorMapFill fill);                   ///< "zeros", "nan"
/// The same names back; a failure lists them.
Result<TensorMapType> parseTensorMapType(std::string_view name);
Result<TensorMapSwizzle> parseTensorMapSwizzle(std::string_view name);
Result<TensorMapInterleave> parseTensorMapInterleave(std::string_view name);
Result<TensorMapPromotion> parseTensorMapPromotion(std::string_view name);
Result<TensorMapFill> parseTensorMapFill(std::string_view name);
/// Bytes of a row that the swizzle permutes: 32, 64 or 128; 0 without one.
constexpr unsigned tensorMapSwizzleBytes(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::None  ? 0
         : swizzle == TensorMapSwizzle::B32 ? 32
         : swizzle == TensorMapSwizzle::B64 ? 64
                                            : 128;
}
constexpr bool isFloat(TensorMapType type) {
  return type >= TensorMapType::F16;
}

struct TensorMapRecipe {
  static constexpr unsigned maxRank = 5;
  TensorMapType type = TensorMapType::F32;
  unsigned rank = 1;
  std::uint64_t address = 0;                        ///< of the tensor's first element
  std::array<std::uint64_t, maxRank> dims{};        ///< elements
  std::array<std::uint64_t, maxRank - 1> strides{}; ///< [i]: bytes from one to the next of dimension i+1
  std::array<std::uint32_t, maxRank> box{};         ///< elements
  std::array<std::uint32_t, maxRank> elementStrides{1, 1, 1, 1, 1}; ///< every so-manieth of the box
  TensorMapInterleave interleave = TensorMapInterleave::None;
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  TensorMapPromotion promotion = TensorMapPromotion::None;
  TensorMapFill fill = TensorMapFill::Zeros;
  bool operator==(const TensorMapRecipe &) const = default;

  /// Strides of a tensor without gaps.
  void setDenseStrides();
};

/// The rules that need no tensor: of the rank, the box, and how it is copied.  A failure names the rule, the value, the
/// limit and what to change.
Status checkTensorMapForm(const TensorMapRecipe &recipe);
/// The other rules: of the address, the extents and the strides.  Makes no text, which costs more than the rules.
bool describesTensor(const TensorMapRecipe &recipe);
/// Every rule of the encoder.
Status checkTensorMap(const TensorMapRecipe &recipe);

/// The bytes that a kernel is passed.
struct alignas(64) TensorMap {
  static constexpr std::size_t size = 128, alignment = 64;
  std::array<std::byte, size> bytes{};
};

} // namespace kiln

#endif // KILN_TARGET_TENSORMAP_H
