#include "runtime/io/DType.h"

#include "support/Text.h"

#include <cstring>
#include <vector>

namespace kiln {

namespace {
struct Row {
  DType type;
  unsigned bytes;
  DTypeKind kind;
  std::string_view name, numpyName, code;
};
constexpr Row rows[] = {
    {DType::Bool, 1, DTypeKind::Unsigned, "bool", "bool", "|b1"},
    {DType::I8, 1, DTypeKind::Signed, "i8", "int8", "|i1"},
    {DType::I16, 2, DTypeKind::Signed, "i16", "int16", "<i2"},
    {DType::I32, 4, DTypeKind::Signed, "i32", "int32", "<i4"},
    {DType::I64, 8, DTypeKind::Signed, "i64", "int64", "<i8"},
    {DType::U8, 1, DTypeKind::Unsigned, "u8", "uint8", "|u1"},
    {DType::U16, 2, DTypeKind::Unsigned, "u16", "uint16", "<u2"},
    {DType::U32, 4, DTypeKind::Unsigned, "u32", "uint32", "<u4"},
    {DType::U64, 8, DTypeKind::Unsigned, "u64", "uint64", "<u8"},
    {DType::F16, 2, DTypeKind::Float, "f16", "float16", "<f2"},
    {DType::Bf16, 2, DTypeKind::Float, "bf16", "bfloat16", ""},
    {DType::E4m3, 1, DTypeKind::Float, "e4m3", "float8_e4m3fn", ""},
    {DType::E5m2, 1, DTypeKind::Float, "e5m2", "float8_e5m2", ""},
    {DType::F32, 4, DTypeKind::Float, "f32", "float32", "<f4"},
    {DType::F64, 8, DTypeKind::Float, "f64", "float64", "<f8"},
    {DType::Raw8, 1, DTypeKind::Raw, "V1", "void8", "|V1"},
    {DType::Raw16, 2, DTypeKind::Raw, "V2", "void16", "|V2"},
};
const Row &row(DType t) {
  return rows[static_cast<unsigned>(t)];
}

template <typename T> double load(const std::byte *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(value);
}
} // namespace

unsigned dtypeBytes(DType t) {
  return row(t).bytes;
}
DTypeKind dtypeKind(DType t) {
  return row(t).kind;
}
std::string_view dtypeName(DType t) {
  return row(t).name;
}
std::string_view dtypeNumpyName(DType t) {
  return row(t).numpyName;
}
std::string_view dtypeNpyCode(DType t) {
  return row(t).code;
}

const FloatFormat *dtypeFloatFormat(DType t) {
  switch (t) {
  case DType::F16:
    return &formatF16;
  case DType::Bf16:
    return &formatBf16;
  case DType::E4m3:
    return &formatE4m3;
  case DType::E5m2:
    return &formatE5m2;
  default:
    return nullptr;
  }
}

Result<DType> parseDType(std::string_view name) {
  std::vector<std::string> known;
  for (const Row &r : rows) {
    if (name == r.name || name == r.numpyName)
      return r.type;
    known.emplace_back(r.name);
  }
  // As kernels call them.
  constexpr std::pair<std::string_view, DType> tags[] = {
      {"i1", DType::Bool}, {"f8e4m3", DType::E4m3}, {"f8e5m2", DType::E5m2}};
  for (const auto &[tag, type] : tags)
    if (name == tag)
      return type;
  return Status::invalid("unknown dtype '" + std::string(name) + "'",
                         "use one of " + join(known) + ", or NumPy's names for them");
}

Result<DType> dtypeFromNpyCode(std::string_view code) {
  const std::string quoted = "dtype '" + std::string(code) + "'";
  if (code.size() >= 2) {
    const char order = code[0];
    const bool hasOrder = order == '<' || order == '>' || order == '|' || order == '=';
    const std::string_view body = hasOrder ? code.substr(1) : code;
    for (const Row &r : rows)
      if (!r.code.empty() && body == r.code.substr(1)) {
        if (hasOrder && order == '>' && r.bytes > 1)
          return Status::invalid(quoted + " is big endian; only little endian is read",
                                 "convert it: a.astype(a.dtype.newbyteorder('<'))");
        return r.type;
      }
  }
  return Status::invalid(quoted + " is not supported",
                         "save it as float16/32/64, int8 to int64, uint8 to uint64, bool, |V1 or |V2");
}

double loadElement(const std::byte *p, DType t) {
  switch (t) {
  case DType::I8:
    return load<std::int8_t>(p);
  case DType::I16:
    return load<std::int16_t>(p);
  case DType::I32:
    return load<std::int32_t>(p);
  case DType::I64:
    return load<std::int64_t>(p);
  case DType::Bool:
  case DType::U8:
  case DType::Raw8:
    return load<std::uint8_t>(p);
  case DType::U16:
  case DType::Raw16:
    return load<std::uint16_t>(p);
  case DType::U32:
    return load<std::uint32_t>(p);
  case DType::U64:
    return load<std::uint64_t>(p);
  case DType::F32:
    return load<float>(p);
  case DType::F64:
    return load<double>(p);
  case DType::F16:
  case DType::Bf16: {
    std::uint16_t code;
    std::memcpy(&code, p, sizeof code);
    return decodeFloat(code, *dtypeFloatFormat(t));
  }
  case DType::E4m3:
  case DType::E5m2:
    return decodeFloat(static_cast<std::uint8_t>(*p), *dtypeFloatFormat(t));
  }
  return 0;
}

} // namespace kiln
