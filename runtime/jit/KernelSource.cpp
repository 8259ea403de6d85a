#include "kiln/KernelSource.h"

#include "runtime/io/DType.h"
#include "support/Text.h"

namespace kiln {

namespace {

constexpr ArgumentType values[] = {ArgumentType::I1,   ArgumentType::I8,  ArgumentType::I16,
                                   ArgumentType::I32,  ArgumentType::I64, ArgumentType::F16,
                                   ArgumentType::BF16, ArgumentType::F32, ArgumentType::F64};

/// Of a value.
DType valueType(ArgumentType type) {
  return static_cast<DType>(type);
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
  return type >= ArgumentType::Pointer ? 8 : dtypeBytes(valueType(type));
}
std::string_view argumentTypeName(ArgumentType type) {
  return type == ArgumentType::Pointer  ? "ptr"
         : type == ArgumentType::Word64 ? "64-bit word"
                                        : elementName(valueType(type));
}

Result<ParsedArgumentType> parseArgumentType(std::string_view text) {
  ParsedArgumentType out;
  if (text.starts_with("ptr<") && text.ends_with(">") && text.size() > 5) {
    out.element = text.substr(4, text.size() - 5);
    out.elementType = dtypeOfText(out.element);
    out.elementBytes = out.elementType ? dtypeBytes(*out.elementType) : 1;
    return out;
  }
  for (const ArgumentType type : values)
    if (argumentTypeName(type) == text) {
      out.type = type;
      return out;
    }
  return Status::invalid("'" + std::string(text) + "' is no type of a kernel's argument",
                         "use ptr<T>, i1, i8, i16, i32, i64, f16, bf16, f32 or f64");
}

Specialise defaultSpecialisation(const ParsedArgumentType &type) {
  return type.type == ArgumentType::Pointer ? Specialise::Divisibility : Specialise::None;
}

} // namespace kiln
