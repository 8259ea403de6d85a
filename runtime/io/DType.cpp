#include "runtime/io/DType.h"

#include "support/Text.h"

#include <cstring>
#include <vector>

namespace kiln {

namespace {
/// By type.
constexpr std::string_view codes[numDTypes] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8",
                                               "<f2", "",    "",    "",    "<f4", "<f8", "|V1", "|V2"};

template <typename T> double load(const std::byte *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(value);
}
} // namespace

std::string_view dtypeNpyCode(DType t) {
  return codes[static_cast<unsigned>(t)];
}

const FloatFormat *dtypeFloatFormat(DType t) {
  switch (t) {
  case DType::F16:
    return &formatF16;
  case DType::BF16:
    return &formatBf16;
  case DType::F8E4M3:
    return &formatE4m3;
  case DType::F8E5M2:
    return &formatE5m2;
  default:
    return nullptr;
  }
}

Result<DType> dtypeFromNpyCode(std::string_view code) {
  const std::string quoted = "dtype '" + std::string(code) + "'";
  if (code.size() >= 2) {
    const char order = code[0];
    const bool hasOrder = order == '<' || order == '>' || order == '|' || order == '=';
    const std::string_view body = hasOrder ? code.substr(1) : code;
    for (unsigned i = 0; i < numDTypes; ++i) {
      const auto type = static_cast<DType>(i);
      if (codes[i].empty() || body != codes[i].substr(1))
        continue;
      if (hasOrder && order == '>' && dtypeBytes(type) > 1)
        return Status::invalid(quoted + " is big endian; only little endian is read",
                               "convert it: a.astype(a.dtype.newbyteorder('<'))");
      return type;
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
  case DType::I1:
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
  case DType::BF16: {
    std::uint16_t code;
    std::memcpy(&code, p, sizeof code);
    return decodeFloat(code, *dtypeFloatFormat(t));
  }
  case DType::F8E4M3:
  case DType::F8E5M2:
    return decodeFloat(static_cast<std::uint8_t>(*p), *dtypeFloatFormat(t));
  }
  return 0;
}

} // namespace kiln
