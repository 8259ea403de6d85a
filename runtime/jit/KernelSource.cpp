#include "kiln/KernelSource.h"

#include "runtime/io/DType.h"
#include "support/Text.h"

namespace kiln {

namespace {

struct TypeRow {
  std::string_view name;
  ArgumentType type;
  unsigned bytes;
};
constexpr TypeRow rows[] = {
    {"ptr", ArgumentType::Pointer, 8},
    {"i1", ArgumentType::I1, 1},
    {"i8", ArgumentType::I8, 1},
    {"i16", ArgumentType::I16, 2},
    {"i32", ArgumentType::I32, 4},
    {"i64", ArgumentType::I64, 8},
    {"f16", ArgumentType::F16, 2},
    {"bf16", ArgumentType::Bf16, 2},
    {"f32", ArgumentType::F32, 4},
    {"f64", ArgumentType::F64, 8},
    {"64-bit word", ArgumentType::Word64, 8},
};
const TypeRow &row(ArgumentType type) {
  return rows[static_cast<unsigned>(type)];
}

/// What a pointer points to, by the names of the dialect: truth values are bytes in memory.
std::optional<DType> elementNamed(std::string_view element) {
  constexpr std::pair<std::string_view, DType> others[] = {
      {"i1", DType::Bool}, {"f8E4M3FN", DType::E4m3}, {"f8E5M2", DType::E5m2}};
  for (const auto &[name, type] : others)
    if (element == name)
      return type;
  const Result<DType> dtype = parseDType(element);
  return dtype ? std::optional(*dtype) : std::nullopt;
}

} // namespace

std::string_view specialiseName(Specialise how) {
  switch (how) {
  case Specialise::None:
    return "none";
  case Specialise::Divisibility:
    return "divisibility";
  case Specialise::Stride:
    return "stride";
  case Specialise::Value:
    return "value";
  }
  return "?";
}

unsigned classDivisor(const ArgumentSpec &argument) {
  constexpr unsigned bytes = 16;
  return argument.elementBytes < bytes ? bytes / argument.elementBytes : 1;
}

unsigned argumentBytes(ArgumentType type) {
  return row(type).bytes;
}
std::string_view argumentTypeName(ArgumentType type) {
  return row(type).name;
}

Result<ParsedArgumentType> parseArgumentType(std::string_view text) {
  ParsedArgumentType out;
  if (text.starts_with("ptr<") && text.ends_with(">") && text.size() > 5) {
    out.element = text.substr(4, text.size() - 5);
    out.elementType = elementNamed(out.element);
    out.elementBytes = out.elementType ? dtypeBytes(*out.elementType) : 1;
    return out;
  }
  for (const TypeRow &r : rows)
    if (r.name == text && r.type != ArgumentType::Pointer && r.type != ArgumentType::Word64) {
      out.type = r.type;
      return out;
    }
  return Status::invalid("'" + std::string(text) + "' is no type of a kernel's argument",
                         "use ptr<T>, i1, i8, i16, i32, i64, f16, bf16, f32 or f64");
}

Specialise defaultSpecialisation(const ParsedArgumentType &type) {
  return type.type == ArgumentType::Pointer ? Specialise::Divisibility : Specialise::None;
}

} // namespace kiln
