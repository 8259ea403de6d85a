#include "runtime/ptx/Ast.h"

namespace kiln::ptx {

namespace {
struct TypeRow {
  std::string_view name;
  unsigned bytes;
  TypeKind kind;
};
constexpr TypeRow typeRows[] = {
    {"none", 0, TypeKind::Bits},
#define KILN_PTX_TYPE(id, name, bytes, kind) {name, bytes, TypeKind::kind},
#include "runtime/ptx/Types.def"
};
constexpr std::string_view spaceNames[] = {"reg", "const", "global", "local", "param", "shared", "generic"};
} // namespace

std::string_view typeName(Type t) {
  return typeRows[static_cast<unsigned>(t)].name;
}
unsigned typeBytes(Type t) {
  return typeRows[static_cast<unsigned>(t)].bytes;
}
TypeKind typeKind(Type t) {
  return typeRows[static_cast<unsigned>(t)].kind;
}

Type typeFromName(std::string_view name) {
  for (unsigned i = 1; i < std::size(typeRows); ++i)
    if (typeRows[i].name == name)
      return static_cast<Type>(i);
  return Type::None;
}

std::string_view spaceName(Space s) {
  return spaceNames[static_cast<unsigned>(s)];
}

} // namespace kiln::ptx
