//===- Fields.h - What a call through the door may say ------------------------===//
//
// The tensors and options of a family's table (kernels/support/Callable.h) in the order in which DoorCall.h takes them,
// without the workspace.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_FIELDS_H
#define KILN_RUNTIME_DOOR_FIELDS_H

#include "kernels/support/Callable.h"

namespace kiln::door {

enum class FieldKind : std::uint8_t { Tensor, Flag, Whole, Number, Text };

struct Field {
  std::string name;
  FieldKind kind;
  std::string text; ///< what it is
};

inline std::vector<Field> fieldsOf(const kernels::Callable &callable) {
  std::vector<Field> out;
  for (const kernels::TensorParameter &p : callable.tensors())
    if (!p.isGroup)
      out.push_back(
          {p.name, FieldKind::Tensor,
           std::string(p.output ? "output" : "input") + (p.optional ? ", optional: " : ": ") + p.description});
  for (const kernels::OptionInfo &o : callable.options()) {
    using Kind = kernels::OptionInfo::Kind;
    std::string choices;
    for (const std::string &choice : o.choices)
      choices += (choices.empty() ? "; one of " : ", ") + choice;
    out.push_back({o.name,
                   o.kind == Kind::Flag    ? FieldKind::Flag
                   : o.kind == Kind::Whole ? FieldKind::Whole
                   : o.kind == Kind::Float ? FieldKind::Number
                                           : FieldKind::Text,
                   o.text + choices});
  }
  return out;
}

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_FIELDS_H
