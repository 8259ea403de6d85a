//===- Form.cpp - Types, and rows to forms --------------------------------===//
#include "tests/parity/Form.h"

#include "support/Text.h"
#include "tests/parity/Opcodes.h"

#include <algorithm>

namespace kiln::parity {

namespace {

constexpr TypeInfo types[] = {
    {Type::Pred, "pred", 32, false, 1, nullptr},
    {Type::U8, "u8", 8, false, 1, nullptr},
    {Type::S8, "s8", 8, true, 1, nullptr},
    {Type::U16, "u16", 16, false, 1, nullptr},
    {Type::S16, "s16", 16, true, 1, nullptr},
    {Type::B16, "b16", 16, false, 1, nullptr},
    {Type::U32, "u32", 32, false, 1, nullptr},
    {Type::S32, "s32", 32, true, 1, nullptr},
    {Type::B32, "b32", 32, false, 1, nullptr},
    {Type::U64, "u64", 64, false, 1, nullptr},
    {Type::S64, "s64", 64, true, 1, nullptr},
    {Type::B64, "b64", 64, false, 1, nullptr},
    {Type::F16, "f16", 16, false, 1, &softfloat::half},
    {Type::BF16, "bf16", 16, false, 1, &softfloat::bfloat},
    {Type::F32, "f32", 32, false, 1, &softfloat::single},
    {Type::F64, "f64", 64, false, 1, &softfloat::real},
    {Type::TF32, "tf32", 32, false, 1, &softfloat::single},
    {Type::F16x2, "f16x2", 32, false, 2, &softfloat::half},
    {Type::BF16x2, "bf16x2", 32, false, 2, &softfloat::bfloat},
    {Type::U16x2, "u16x2", 32, false, 2, nullptr},
    {Type::S16x2, "s16x2", 32, true, 2, nullptr},
    {Type::E4M3x2, "e4m3x2", 16, false, 2, &softfloat::e4m3},
    {Type::E5M2x2, "e5m2x2", 16, false, 2, &softfloat::e5m2},
    {Type::Amount, "amount", 32, false, 1, nullptr},
    {Type::Position, "position", 32, false, 1, nullptr},
    {Type::Selector, "selector", 32, false, 1, nullptr},
    {Type::Lane, "lane", 32, false, 1, nullptr},
    {Type::Segment, "segment", 32, false, 1, nullptr},
    {Type::Few, "few", 32, false, 1, nullptr},
    {Type::Base, "base", 32, false, 1, nullptr},
    {Type::Offset, "offset", 32, true, 1, nullptr},
    {Type::Angle, "angle", 32, false, 1, &softfloat::single},
};

Type doubled(const TypeInfo &t) {
  switch (t.type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  default:
    return Type::S64;
  }
}

Type operandType(const Form &form, std::string_view token) {
  if (token == "T")
    return form.lastType().type;
  if (token == "S")
    return form.previousType().type;
  if (token == "X")
    return doubled(form.lastType());
  if (token == "D") {
    const TypeInfo &t = form.previousType();
    return !t.format && t.bits < 32 ? Type::U32 : t.type;
  }
  return findType(token)->type;
}

std::string replaceAll(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

constexpr const char *inputNames[] = {"%a", "%b", "%c", "%f"};
constexpr const char *outputNames[] = {"%d", "%e", "%g", "%h"};

} // namespace

const TypeInfo &info(Type type) {
  return types[static_cast<unsigned>(type)];
}

const TypeInfo *findType(std::string_view name) {
  for (const TypeInfo &t : types)
    if (name == t.name)
      return &t;
  return nullptr;
}

bool Form::has(std::string_view modifier) const {
  return std::find(parts.begin() + 1, parts.end(), modifier) != parts.end();
}

const TypeInfo &Form::lastType() const {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (const TypeInfo *t = findType(*part))
      return *t;
  return info(Type::B32);
}

const TypeInfo &Form::previousType() const {
  bool seen = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (const TypeInfo *t = findType(*part)) {
      if (seen)
        return *t;
      seen = true;
    }
  return lastType();
}

std::vector<std::string> expandBraces(std::string_view pattern) {
  std::size_t open = pattern.find('{');
  if (open == std::string_view::npos)
    return {std::string(pattern)};
  std::size_t close = pattern.find('}', open);
  std::vector<std::string> all;
  for (const std::string &rest : expandBraces(pattern.substr(close + 1)))
    for (std::string_view choice : split(pattern.substr(open + 1, close - open - 1), ','))
      all.push_back(std::string(pattern.substr(0, open)) + std::string(choice) + rest);
  return all;
}

std::vector<Form> expandRow(const Row &row) {
  std::vector<Form> forms;
  for (const std::string &name : expandBraces(row.pattern)) {
    Form form;
    form.name = name;
    form.spelling = name.substr(0, name.find(' '));
    for (std::string_view part : split(form.spelling, '.'))
      form.parts.emplace_back(part);
    form.tolerance = row.tolerance;
    form.group = row.group;
    form.sharing = row.sharing;
    bool outputs = false;
    for (std::string_view token : split(row.signature, ' '))
      if (token == "->")
        outputs = true;
      else
        (outputs ? form.outputs : form.inputs).push_back(operandType(form, token));
    std::string body;
    if (row.body) {
      body = replaceAll(row.body, "OP", form.spelling);
      body = replaceAll(body, "TYPE", "." + form.parts.back());
      body = replaceAll(body, "LUT", name.substr(name.find(' ') + 1)); // lop3's table comes from the variant's name
    } else {
      body = form.spelling + " ";
      for (std::size_t i = 0; i < form.outputs.size(); ++i)
        body += std::string(i ? "|" : "") + outputNames[i];
      for (std::size_t i = 0; i < form.inputs.size(); ++i)
        body += std::string(", ") + inputNames[i];
      body += ";";
    }
    form.body = body;
    forms.push_back(std::move(form));
  }
  return forms;
}

const std::vector<Form> &allForms() {
  static const std::vector<Form> forms = [] {
    std::vector<Form> all;
    for (const Row &row : opcodeTable())
      for (Form &form : expandRow(row))
        all.push_back(std::move(form));
    return all;
  }();
  return forms;
}

std::vector<std::string> allOpcodes() {
  std::vector<std::string> opcodes;
  for (const Form &form : allForms())
    if (std::find(opcodes.begin(), opcodes.end(), form.opcode()) == opcodes.end())
      opcodes.push_back(form.opcode());
  return opcodes;
}

} // namespace kiln::parity
