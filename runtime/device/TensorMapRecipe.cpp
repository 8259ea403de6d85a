#include "kiln/TensorMap.h"

#include "support/Text.h"

#include <string>

namespace kiln {

namespace {

struct TypeRow {
  std::string_view name;
  unsigned bytes;
};
constexpr TypeRow types[] = {{"u8", 1},      {"u16", 2},  {"u32", 4},     {"s32", 4}, {"u64", 8},
                             {"s64", 8},     {"f16", 2},  {"f32", 4},     {"f64", 8}, {"bf16", 2},
                             {"f32_ftz", 4}, {"tf32", 4}, {"tf32_ftz", 4}};
static_assert(std::size(types) == tensorMapTypes);
constexpr std::string_view swizzles[] = {"none",         "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B",
                                         "128B_atom_64B"};
static_assert(std::size(swizzles) == tensorMapSwizzles);

constexpr std::uint64_t largestDim = std::uint64_t(1) << 32, strideLimit = std::uint64_t(1) << 40;
constexpr unsigned largestBox = 256, largestElementStride = 8;

std::string number(std::uint64_t v) {
  return std::to_string(v);
}
std::string indexed(const char *what, unsigned i) {
  return std::string("tensor map: ") + what + "[" + std::to_string(i) + "]";
}

Status checkEnums(const TensorMapRecipe &r) {
  if (static_cast<unsigned>(r.type) >= tensorMapTypes)
    return Status::invalid("tensor map: element type " + number(static_cast<unsigned>(r.type)) + " does not exist",
                           "types are u8, u16, u32, s32, u64, s64, f16, bf16, f32, f64, f32_ftz, tf32, tf32_ftz");
  if (static_cast<unsigned>(r.swizzle) >= tensorMapSwizzles)
    return Status::invalid("tensor map: swizzle " + number(static_cast<unsigned>(r.swizzle)) + " does not exist",
                           "swizzles are " + join(std::vector<std::string>(std::begin(swizzles), std::end(swizzles))));
  if (static_cast<unsigned>(r.interleave) > 2)
    return Status::invalid("tensor map: interleave " + number(static_cast<unsigned>(r.interleave)) + " does not exist",
                           "it is none, 16B or 32B");
  if (static_cast<unsigned>(r.promotion) > 3)
    return Status::invalid("tensor map: L2 promotion " + number(static_cast<unsigned>(r.promotion)) + " does not exist",
                           "it is none, 64B, 128B or 256B");
  if (static_cast<unsigned>(r.fill) > 1)
    return Status::invalid("tensor map: fill " + number(static_cast<unsigned>(r.fill)) + " does not exist",
                           "it is zeros or nan");
  return {};
}

Status checkTensor(const TensorMapRecipe &r) {
  const bool interleaved = r.interleave != TensorMapInterleave::None;
  const unsigned align = r.interleave == TensorMapInterleave::B32 ? 32 : 16;
  if (r.rank < 1 || r.rank > TensorMapRecipe::maxRank)
    return Status::invalid("tensor map: rank " + number(r.rank) + " is not in 1..5",
                           "join or split dimensions of the tensor");
  if (interleaved && r.rank < 3)
    return Status::invalid("tensor map: rank " + number(r.rank) + " with an interleaved layout; it needs 3 to 5",
                           "use interleave none");
  if (r.address % align)
    return Status::invalid(
        format("tensor map: address 0x%llx is not a multiple of ", static_cast<unsigned long long>(r.address)) +
            number(align),
        "start the tensor at an aligned element");
  for (unsigned i = 0; i < r.rank; ++i)
    if (r.dims[i] < 1 || r.dims[i] > largestDim)
      return Status::invalid(indexed("dims", i) + " = " + number(r.dims[i]) + " is not in 1..2^32",
                             r.dims[i] ? "split the dimension" : "do not launch for an empty tensor");
  for (unsigned i = 0; i + 1 < r.rank; ++i) {
    if (r.strides[i] % align)
      return Status::invalid(indexed("strides", i) + " = " + number(r.strides[i]) + " bytes is not a multiple of " +
                                 number(align),
                             "pad the rows of the tensor");
    if (r.strides[i] >= strideLimit)
      return Status::invalid(indexed("strides", i) + " = " + number(r.strides[i]) + " bytes is not below 2^40",
                             "split the tensor");
  }
  return {};
}

Status checkBox(const TensorMapRecipe &r) {
  const unsigned bytes = tensorMapTypeBytes(r.type), span = tensorMapSwizzleBytes(r.swizzle);
  for (unsigned i = 0; i < r.rank; ++i) {
    if (r.box[i] < 1 || r.box[i] > largestBox)
      return Status::invalid(indexed("box", i) + " = " + number(r.box[i]) + " is not in 1..256",
                             "copy the tile as several boxes");
    if (r.elementStrides[i] < 1 || r.elementStrides[i] > largestElementStride)
      return Status::invalid(indexed("elementStrides", i) + " = " + number(r.elementStrides[i]) + " is not in 1..8",
                             "copy all elements with 1");
  }
  if (r.interleave == TensorMapInterleave::None) {
    const unsigned inner = r.box[0] * bytes;
    if (inner % 16)
      return Status::invalid("tensor map: box[0] = " + number(r.box[0]) + " elements of " + number(bytes) +
                                 " bytes is " + number(inner) + " bytes, not a multiple of 16",
                             "make the box wider");
    if (span && inner > span)
      return Status::invalid("tensor map: box[0] = " + number(r.box[0]) + " elements of " + number(bytes) +
                                 " bytes is " + number(inner) + " bytes, more than the " + number(span) +
                                 " of swizzle " + std::string(tensorMapSwizzleName(r.swizzle)),
                             "copy the tile as several boxes of " + number(span / bytes) + " elements");
  }
  if (r.interleave == TensorMapInterleave::B32 && r.swizzle != TensorMapSwizzle::B32)
    return Status::invalid("tensor map: swizzle " + std::string(tensorMapSwizzleName(r.swizzle)) +
                               " with interleave 32B",
                           "interleave 32B needs swizzle 32B");
  if (r.fill == TensorMapFill::Nan && !isFloat(r.type))
    return Status::invalid("tensor map: fill nan with elements of type " + std::string(tensorMapTypeName(r.type)),
                           "only floating-point types have NaNs; fill with zeros");
  return {};
}

} // namespace

unsigned tensorMapTypeBytes(TensorMapType type) {
  return static_cast<unsigned>(type) < tensorMapTypes ? types[static_cast<unsigned>(type)].bytes : 1;
}

std::string_view tensorMapTypeName(TensorMapType type) {
  return static_cast<unsigned>(type) < tensorMapTypes ? types[static_cast<unsigned>(type)].name : "?";
}

std::string_view tensorMapSwizzleName(TensorMapSwizzle swizzle) {
  return static_cast<unsigned>(swizzle) < tensorMapSwizzles ? swizzles[static_cast<unsigned>(swizzle)] : "?";
}

void TensorMapRecipe::setDenseStrides() {
  std::uint64_t bytes = tensorMapTypeBytes(type);
  for (unsigned i = 0; i + 1 < rank && i + 1 < maxRank; ++i)
    strides[i] = bytes *= dims[i];
}

Status checkTensorMap(const TensorMapRecipe &recipe) {
  KILN_TRY(checkEnums(recipe));
  KILN_TRY(checkTensor(recipe));
  return checkBox(recipe);
}

} // namespace kiln
