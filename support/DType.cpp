#include "support/DType.h"

#include "support/Text.h"

#include <string>
#include <vector>

namespace kiln {

namespace {
struct Row {
  DType type;
  std::string_view name, tag, text, numpy;
};
constexpr Row rows[] = {
    {DType::I1, "bool", "i1", "i1", "bool"},
    {DType::I8, "i8", "i8", "i8", "int8"},
    {DType::I16, "i16", "i16", "i16", "int16"},
    {DType::I32, "i32", "i32", "i32", "int32"},
    {DType::I64, "i64", "i64", "i64", "int64"},
    {DType::U8, "u8", "u8", "i8", "uint8"},
    {DType::U16, "u16", "u16", "i16", "uint16"},
    {DType::U32, "u32", "u32", "i32", "uint32"},
    {DType::U64, "u64", "u64", "i64", "uint64"},
    {DType::F16, "f16", "f16", "f16", "float16"},
    {DType::BF16, "bf16", "bf16", "bf16", "bfloat16"},
    {DType::F8E4M3, "e4m3", "f8e4m3", "f8E4M3FN", "float8_e4m3fn"},
    {DType::F8E5M2, "e5m2", "f8e5m2", "f8E5M2", "float8_e5m2"},
    {DType::F32, "f32", "f32", "f32", "float32"},
    {DType::F64, "f64", "f64", "f64", "float64"},
    {DType::Raw8, "V1", "V1", "", "void8"},
    {DType::Raw16, "V2", "V2", "", "void16"},
};
static_assert([] {
  for (unsigned i = 0; i < numDTypes; ++i)
    if (rows[i].type != static_cast<DType>(i))
      return false;
  return std::size(rows) == numDTypes;
}());
/// Other names that people use for types.
constexpr std::pair<std::string_view, DType> others[] = {
    {"fp16", DType::F16},  {"half", DType::F16}, {"fp32", DType::F32},
    {"float", DType::F32}, {"fp64", DType::F64}, {"double", DType::F64},
};

const Row &row(DType t) {
  return rows[static_cast<unsigned>(t)];
}
} // namespace

std::string_view dtypeName(DType t) {
  return row(t).name;
}
std::string_view dtypeNumpyName(DType t) {
  return row(t).numpy;
}
std::string_view elementName(DType t) {
  return row(t).tag;
}
std::string_view elementText(DType t) {
  return row(t).text;
}

Result<DType> parseDType(std::string_view name) {
  std::vector<std::string> known;
  for (const Row &r : rows) {
    if (name == r.name || name == r.tag || name == r.numpy)
      return r.type;
    known.emplace_back(r.name);
  }
  for (const auto &[other, type] : others)
    if (name == other)
      return type;
  return Status::invalid("unknown dtype '" + std::string(name) + "'",
                         "use one of " + join(known) + ", or NumPy's names for them");
}

std::optional<DType> dtypeOfText(std::string_view text) {
  for (const Row &r : rows)
    if (!text.empty() && text == r.text)
      return r.type;
  return std::nullopt;
}

} // namespace kiln
