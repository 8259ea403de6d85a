#include "compiler/target/TensorMap.h"

#include "support/Text.h"

#include <span>
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
constexpr std::string_view interleaves[] = {"none", "16B", "32B"}, promotions[] = {"none", "64B", "128B", "256B"},
                           fills[] = {"zeros", "nan"};

constexpr std::uint64_t largestDim = std::uint64_t(1) << 32, strideLimit = std::uint64_t(1) << 40;
constexpr unsigned largestBox = 256, largestElementStride = 8;

std::string number(std::uint64_t v) {
  return std::to_string(v);
}
std::string indexed(const char *what, unsigned i) {
  return std::string("tensor map: ") + what + "[" + std::to_string(i) + "]";
}

template <typename Enum> std::string_view nameIn(std::span<const std::string_view> names, Enum value) {
  return static_cast<std::size_t>(value) < names.size() ? names[static_cast<std::size_t>(value)] : "?";
}

Status unknown(const char *what, const std::string &which, std::span<const std::string_view> names) {
  return Status::invalid("tensor map: " + std::string(what) + " " + which + " does not exist",
                         "there are " + join(std::vector<std::string>(names.begin(), names.end())));
}

template <typename Enum>
Result<Enum> parseIn(const char *what, std::span<const std::string_view> names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<Enum>(i);
  return unknown(what, "'" + std::string(name) + "'", names);
}

template <typename Enum> Status checkEnum(const char *what, std::span<const std::string_view> names, Enum value) {
  return static_cast<std::size_t>(value) < names.size()
             ? Status()
             : unknown(what, number(static_cast<std::uint64_t>(value)), names);
}

std::vector<std::string_view> typeNames() {
  std::vector<std::string_view> names;
  for (const TypeRow &row : types)
    names.push_back(row.name);
  return names;
}

Status checkEnums(const TensorMapRecipe &r) {
  if (static_cast<unsigned>(r.type) >= tensorMapTypes)
    return unknown("element type", number(static_cast<unsigned>(r.type)), typeNames());
  KILN_TRY(checkEnum("swizzle", swizzles, r.swizzle));
  KILN_TRY(checkEnum("interleave", interleaves, r.interleave));
  KILN_TRY(checkEnum("L2 promotion", promotions, r.promotion));
  return checkEnum("fill", fills, r.fill);
}

Status checkRank(const TensorMapRecipe &r) {
  if (r.rank < 1 || r.rank > TensorMapRecipe::maxRank)
    return Status::invalid("tensor map: rank " + number(r.rank) + " is not in 1..5",
                           "join or split dimensions of the tensor");
  if (r.interleave != TensorMapInterleave::None && r.rank < 3)
    return Status::invalid("tensor map: rank " + number(r.rank) + " with an interleaved layout; it needs 3 to 5",
                           "use interleave none");
  return {};
}

/// A rule of the tensor's own numbers, and the dimension or stride that breaks it.
struct BrokenRule {
  enum { None, Address, Dim, StrideAlignment, StrideLimit } rule = None;
  unsigned index = 0;
};

unsigned alignmentOf(const TensorMapRecipe &r) {
  return r.interleave == TensorMapInterleave::B32 ? 32 : 16;
}

BrokenRule firstBrokenRule(const TensorMapRecipe &r) {
  const unsigned align = alignmentOf(r);
  if (r.address % align)
    return {BrokenRule::Address};
  for (unsigned i = 0; i < r.rank; ++i)
    if (r.dims[i] < 1 || r.dims[i] > largestDim)
      return {BrokenRule::Dim, i};
  for (unsigned i = 0; i + 1 < r.rank; ++i) {
    if (r.strides[i] % align)
      return {BrokenRule::StrideAlignment, i};
    if (r.strides[i] >= strideLimit)
      return {BrokenRule::StrideLimit, i};
  }
  return {};
}

Status checkTensor(const TensorMapRecipe &r) {
  const auto [rule, i] = firstBrokenRule(r);
  switch (rule) {
  case BrokenRule::None:
    break;
  case BrokenRule::Address:
    return Status::invalid(
        format("tensor map: address 0x%llx is not a multiple of ", static_cast<unsigned long long>(r.address)) +
            number(alignmentOf(r)),
        "start the tensor at an aligned element");
  case BrokenRule::Dim:
    return Status::invalid(indexed("dims", i) + " = " + number(r.dims[i]) + " is not in 1..2^32",
                           r.dims[i] ? "split the dimension" : "do not launch for an empty tensor");
  case BrokenRule::StrideAlignment:
    return Status::invalid(indexed("strides", i) + " = " + number(r.strides[i]) + " bytes is not a multiple of " +
                               number(alignmentOf(r)),
                           "pad the rows of the tensor");
  case BrokenRule::StrideLimit:
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
  return nameIn(swizzles, swizzle);
}
std::string_view tensorMapInterleaveName(TensorMapInterleave interleave) {
  return nameIn(interleaves, interleave);
}
std::string_view tensorMapPromotionName(TensorMapPromotion promotion) {
  return nameIn(promotions, promotion);
}
std::string_view tensorMapFillName(TensorMapFill fill) {
  return nameIn(fills, fill);
}

Result<TensorMapType> parseTensorMapType(std::string_view name) {
  return parseIn<TensorMapType>("element type", typeNames(), name);
}
Result<TensorMapSwizzle> parseTensorMapSwizzle(std::string_view name) {
  return parseIn<TensorMapSwizzle>("swizzle", swizzles, name);
}
Result<TensorMapInterleave> parseTensorMapInterleave(std::string_view name) {
  return parseIn<TensorMapInterleave>("interleave", interleaves, name);
}
Result<TensorMapPromotion> parseTensorMapPromotion(std::string_view name) {
  return parseIn<TensorMapPromotion>("L2 promotion", promotions, name);
}
Result<TensorMapFill> parseTensorMapFill(std::string_view name) {
  return parseIn<TensorMapFill>("fill", fills, name);
}

void TensorMapRecipe::setDenseStrides() {
  std::uint64_t bytes = tensorMapTypeBytes(type);
  for (unsigned i = 0; i + 1 < rank && i + 1 < maxRank; ++i)
    strides[i] = bytes *= dims[i];
}

Status checkTensorMapForm(const TensorMapRecipe &recipe) {
  KILN_TRY(checkEnums(recipe));
  KILN_TRY(checkRank(recipe));
  return checkBox(recipe);
}

bool describesTensor(const TensorMapRecipe &recipe) {
  return firstBrokenRule(recipe).rule == BrokenRule::None;
}

Status checkTensorMap(const TensorMapRecipe &recipe) {
  KILN_TRY(checkTensorMapForm(recipe));
  return checkTensor(recipe);
}

} // namespace kiln
