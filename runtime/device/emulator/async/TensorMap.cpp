#include "runtime/device/emulator/async/TensorMap.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::emulator {

namespace {

constexpr char magic[8] = {'K', 'I', 'L', 'N', 'T', 'M', 'A', 'P'};
constexpr std::uint32_t version = 1;
/// Offsets of the fields.
constexpr unsigned baseAt = 8, dimsAt = 16, stridesAt = 36, boxAt = 68, elementStridesAt = 78, typeAt = 83, rankAt = 84,
                   interleaveAt = 85, swizzleAt = 86, promotionAt = 87, fillAt = 88, modeAt = 89, atomicityAt = 106,
                   crcAt = 120, versionAt = 124;
constexpr unsigned strideUnit = 16;
constexpr std::uint8_t swizzle128 = 3;

constexpr std::array<std::uint32_t, 256> crcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (unsigned k = 0; k < 8; ++k)
      c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
    table[i] = c;
  }
  return table;
}();

std::uint32_t crcOf(const std::byte *bytes) {
  std::uint32_t c = ~0u;
  for (unsigned i = 0; i < crcAt; ++i)
    c = c >> 8 ^ crcTable[(c ^ static_cast<std::uint32_t>(bytes[i])) & 0xFF];
  return ~c;
}

template <typename T> void put(std::byte *bytes, unsigned at, T value) {
  std::memcpy(bytes + at, &value, sizeof value);
}
template <typename T> T get(const std::byte *bytes, unsigned at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

void seal(std::byte *bytes) {
  std::memcpy(bytes, magic, sizeof magic);
  put(bytes, versionAt, version);
  put(bytes, crcAt, crcOf(bytes));
}

bool isMap(const std::byte *bytes) {
  return std::memcmp(bytes, magic, sizeof magic) == 0 && get<std::uint32_t>(bytes, versionAt) == version &&
         get<std::uint32_t>(bytes, crcAt) == crcOf(bytes);
}

/// PTX's numbers of element types; cuda.h's differ.
constexpr TensorMapType elementTypes[] = {
    TensorMapType::U8,   TensorMapType::U16,  TensorMapType::U32,    TensorMapType::S32,    TensorMapType::U64,
    TensorMapType::S64,  TensorMapType::F16,  TensorMapType::F32,    TensorMapType::F32Ftz, TensorMapType::F64,
    TensorMapType::Bf16, TensorMapType::Tf32, TensorMapType::Tf32Ftz};
static_assert(std::size(elementTypes) == tensorMapTypes);

TensorMapSwizzle swizzleOf(std::uint8_t mode, std::uint8_t atomicity) {
  if (mode != swizzle128)
    return static_cast<TensorMapSwizzle>(mode);
  constexpr TensorMapSwizzle variants[] = {TensorMapSwizzle::B128, TensorMapSwizzle::B128Atom32,
                                           TensorMapSwizzle::B128Atom32Flip8, TensorMapSwizzle::B128Atom64};
  return variants[atomicity & 3];
}

} // namespace

TensorMap encodeMap(const TensorMapRecipe &r) {
  TensorMap map;
  std::byte *b = map.bytes.data();
  put(b, baseAt, r.address);
  for (unsigned i = 0; i < TensorMapRecipe::maxRank; ++i) {
    const bool used = i < r.rank;
    put(b, dimsAt + 4 * i, static_cast<std::uint32_t>(used ? r.dims[i] - 1 : 0));
    put(b, boxAt + 2 * i, static_cast<std::uint16_t>(used ? r.box[i] : 1));
    put(b, elementStridesAt + i, static_cast<std::uint8_t>(used ? r.elementStrides[i] : 1));
    if (i + 1 < TensorMapRecipe::maxRank)
      put(b, stridesAt + 8 * i, i + 1 < r.rank ? r.strides[i] / strideUnit : std::uint64_t(0));
  }
  const bool is128 = tensorMapSwizzleBytes(r.swizzle) == 128;
  put(b, typeAt, static_cast<std::uint8_t>(r.type));
  put(b, rankAt, static_cast<std::uint8_t>(r.rank));
  put(b, interleaveAt, static_cast<std::uint8_t>(r.interleave));
  put(b, swizzleAt, is128 ? swizzle128 : static_cast<std::uint8_t>(r.swizzle));
  put(b, atomicityAt, static_cast<std::uint8_t>(is128 ? static_cast<unsigned>(r.swizzle) - swizzle128 : 0));
  put(b, promotionAt, static_cast<std::uint8_t>(r.promotion));
  put(b, fillAt, static_cast<std::uint8_t>(r.fill));
  seal(b);
  return map;
}

bool decodeMap(const std::byte *b, TensorMapRecipe &r, std::string &why) {
  if (!isMap(b)) {
    why = "the 128 bytes are not a tensor map of this device; Device::encodeTensorMap makes them";
    return false;
  }
  const auto mode = get<std::uint8_t>(b, swizzleAt), atomicity = get<std::uint8_t>(b, atomicityAt);
  r = {};
  r.type = static_cast<TensorMapType>(get<std::uint8_t>(b, typeAt));
  r.rank = get<std::uint8_t>(b, rankAt);
  r.address = get<std::uint64_t>(b, baseAt);
  for (unsigned i = 0; i < TensorMapRecipe::maxRank; ++i) {
    r.dims[i] = std::uint64_t(get<std::uint32_t>(b, dimsAt + 4 * i)) + 1;
    r.box[i] = get<std::uint16_t>(b, boxAt + 2 * i);
    r.elementStrides[i] = get<std::uint8_t>(b, elementStridesAt + i);
    if (i + 1 < TensorMapRecipe::maxRank)
      r.strides[i] = get<std::uint64_t>(b, stridesAt + 8 * i) * strideUnit;
  }
  r.interleave = static_cast<TensorMapInterleave>(get<std::uint8_t>(b, interleaveAt));
  r.swizzle = swizzleOf(mode, atomicity);
  r.promotion = static_cast<TensorMapPromotion>(get<std::uint8_t>(b, promotionAt));
  r.fill = static_cast<TensorMapFill>(get<std::uint8_t>(b, fillAt));
  if (get<std::uint8_t>(b, modeAt) != 0)
    why = "it is not a tiled map";
  else if (mode > swizzle128)
    why = "tensor map: swizzle mode " + std::to_string(mode) + " is not in 0..3";
  else if (mode != swizzle128 && atomicity)
    why = "tensor map: swizzle atomicity " + std::to_string(atomicity) + " needs the 128-byte swizzle";
  else if (const Status status = checkTensorMap(r); !status.ok())
    why = status.toString();
  else if (r.interleave != TensorMapInterleave::None)
    why = "the emulator has no interleaved tensor maps";
  else
    return true;
  return false;
}

bool replaceMapField(std::byte *b, MapField field, std::uint32_t ordinal, std::uint64_t value, std::string &why) {
  const bool blank = std::all_of(b, b + TensorMap::size, [](std::byte x) { return x == std::byte(0); });
  if (!blank && !isMap(b)) {
    why = "the 128 bytes are neither a tensor map of this device nor all zero";
    return false;
  }
  const bool byDimension = field == MapField::BoxDim || field == MapField::GlobalDim ||
                           field == MapField::GlobalStride || field == MapField::ElementStride;
  const unsigned dimensions = TensorMapRecipe::maxRank - (field == MapField::GlobalStride ? 1 : 0);
  if (byDimension && ordinal >= dimensions) {
    why = "dimension " + std::to_string(ordinal) + " is not in 0.." + std::to_string(dimensions - 1);
    return false;
  }
  // The largest value of each enumeration; the field itself could hold more.
  const auto within = [&](std::uint64_t low, std::uint64_t high, const char *what) {
    if (value >= low && value <= high)
      return true;
    why = std::string(what) + " " + std::to_string(value) + " is not in " + std::to_string(low) + ".." +
          std::to_string(high);
    return false;
  };
  const auto small = static_cast<std::uint8_t>(value);
  switch (field) {
  case MapField::GlobalAddress:
    put(b, baseAt, value);
    break;
  case MapField::Rank:
    if (!within(0, TensorMapRecipe::maxRank - 1, "rank - 1 ="))
      return false;
    put(b, rankAt, static_cast<std::uint8_t>(value + 1));
    break;
  case MapField::BoxDim:
    if (!within(1, 256, "box_dim"))
      return false;
    put(b, boxAt + 2 * ordinal, static_cast<std::uint16_t>(value));
    break;
  case MapField::GlobalDim:
    if (!within(1, 0xFFFFFFFFu, "global_dim"))
      return false;
    put(b, dimsAt + 4 * ordinal, static_cast<std::uint32_t>(value - 1));
    break;
  case MapField::GlobalStride:
    if (value % strideUnit) {
      why = "global_stride " + std::to_string(value) + " bytes is not a multiple of 16";
      return false;
    }
    put(b, stridesAt + 8 * ordinal, value / strideUnit);
    break;
  case MapField::ElementStride:
    if (!within(1, 8, "element_stride"))
      return false;
    put(b, elementStridesAt + ordinal, small);
    break;
  case MapField::ElemType:
    if (!within(0, tensorMapTypes - 1, "elemtype"))
      return false;
    put(b, typeAt, static_cast<std::uint8_t>(elementTypes[value]));
    break;
  case MapField::InterleaveLayout:
    if (!within(0, 2, "interleave_layout"))
      return false;
    put(b, interleaveAt, small);
    break;
  case MapField::SwizzleMode:
    if (!within(0, swizzle128, "swizzle_mode"))
      return false;
    put(b, swizzleAt, small);
    break;
  case MapField::SwizzleAtomicity:
    if (!within(0, 3, "swizzle_atomicity"))
      return false;
    put(b, atomicityAt, small);
    break;
  case MapField::FillMode:
    if (!within(0, 1, "fill_mode"))
      return false;
    put(b, fillAt, small);
    break;
  }
  seal(b);
  return true;
}

} // namespace kiln::emulator
