#include "compiler/language/Types.h"

#include "compiler/language/Operations.h"

namespace kiln::language {

std::string_view elementName(ElementType e) {
  constexpr std::string_view names[] = {"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "i1", "i8",
                                        "i16", "i32",  "i64", "u8",  "u16",    "u32",    "u64"};
  return names[static_cast<unsigned>(e)];
}

std::string_view elementText(ElementType e) {
  constexpr std::string_view names[] = {"f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "i1", "i8",
                                        "i16", "i32",  "i64", "i8",  "i16",      "i32",    "i64"};
  return names[static_cast<unsigned>(e)];
}

std::optional<ElementType> elementNamed(std::string_view name) {
  for (unsigned i = 0; i <= static_cast<unsigned>(ElementType::U64); ++i)
    if (elementName(static_cast<ElementType>(i)) == name)
      return static_cast<ElementType>(i);
  struct Alias {
    std::string_view name;
    ElementType element;
  };
  constexpr Alias aliases[] = {
      {"fp16", ElementType::F16},      {"float16", ElementType::F16}, {"half", ElementType::F16},
      {"bfloat16", ElementType::BF16}, {"fp32", ElementType::F32},    {"float32", ElementType::F32},
      {"float", ElementType::F32},     {"fp64", ElementType::F64},    {"float64", ElementType::F64},
      {"double", ElementType::F64},    {"e4m3", ElementType::F8E4M3}, {"e5m2", ElementType::F8E5M2},
      {"bool", ElementType::I1},       {"int8", ElementType::I8},     {"int16", ElementType::I16},
      {"int32", ElementType::I32},     {"int64", ElementType::I64},   {"uint8", ElementType::U8},
      {"uint16", ElementType::U16},    {"uint32", ElementType::U32},  {"uint64", ElementType::U64}};
  for (const Alias &a : aliases)
    if (a.name == name)
      return a.element;
  return std::nullopt;
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (unsigned d = 0; d < count; ++d)
    if (__builtin_mul_overflow(n, dims[d], &n))
      return -1;
  return n;
}

Shape Shape::without(unsigned dim) const {
  Shape out;
  for (unsigned d = 0; d < count; ++d)
    if (d != dim)
      out.append(dims[d]);
  return out;
}

Shape Shape::with(unsigned dim, std::int64_t extent) const {
  Shape out;
  for (unsigned d = 0; d <= count; ++d) {
    if (d == dim)
      out.append(extent);
    if (d < count)
      out.append(dims[d]);
  }
  out.tooMany = out.tooMany || count == maxRank;
  return out;
}

std::string Shape::toString() const {
  std::string out = "[";
  for (unsigned d = 0; d < count; ++d) {
    if (d)
      out += ", ";
    out += std::to_string(dims[d]);
  }
  return out + "]";
}

std::string Shape::problem() const {
  if (count == 0)
    return "a tile has at least one dimension";
  if (tooMany)
    return "a tile has at most " + std::to_string(maxRank) + " dimensions";
  std::int64_t odd = 1, power = 1;
  for (unsigned d = 0; d < count; ++d) {
    if (dims[d] < 1)
      return "the extent " + std::to_string(dims[d]) + " is not positive";
    const std::int64_t low = dims[d] & -dims[d];
    if (dims[d] / low > 15 || (odd *= dims[d] / low) > 15)
      return "extents are powers of two times odd numbers whose product is at most 15";
    if (low > (1 << 20) || (power *= low) > (1 << 20))
      return "a tile has at most 2^20 elements (times its odd factor)";
  }
  return {};
}

static constexpr std::string_view operationNames[] = {
#define KILN_OPERATION(enumerator, name) name,
#include "compiler/language/Operations.def"
#undef KILN_OPERATION
};

std::string_view operationName(Op op) {
  return operationNames[static_cast<unsigned>(op)];
}

std::span<const std::string_view> recordedOperations() {
  return operationNames;
}

} // namespace kiln::language
