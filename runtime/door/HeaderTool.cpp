// kiln-door-header HEADER: what runtime/include/kiln/operations.h is to be, made of the families' tables
// (kernels/support/Callable.h).  HEADER is the one of now: its fields keep their order, new ones follow them.
#include "kernels/support/Family.h"
#include "runtime/door/Fields.h"
#include "support/ReservedWords.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

namespace kiln::door {
namespace {

using namespace kernels;

constexpr const char *head = R"(/*===- operations.h - The operations of the library for C ---------------------===
 *
 * Made by kiln-door-header of the operations' own tables; do not edit.  Of each operation NAME:
 *
 *   void kiln_NAME_init(struct kiln_NAME *call)         nothing is given
 *   kiln_status kiln_NAME_run(call, options)            options may be NULL
 *   kiln_status kiln_NAME_workspace(call, &bytes)       that the caller may bring
 *   kiln_status kiln_NAME_outputs(call, outputs, &count)  in: how many fit; out: how many there are
 *
 * Tensors that are not optional must be given.  Options that are NaN, KILN_NOT_GIVEN or NULL have their defaults; flags
 * are 0 or 1.
 *
 *===----------------------------------------------------------------------===*/
#ifndef KILN_OPERATIONS_H
#define KILN_OPERATIONS_H

#ifdef __cplusplus
extern "C" {
#endif
)";

/// Of each operation the fields of a header, in their order.
std::map<std::string, std::vector<std::string>> recordedFields(std::istream &header) {
  std::map<std::string, std::vector<std::string>> out;
  const std::string begin = "KILN_FIELD(";
  for (std::string line; std::getline(header, line);)
    if (line.starts_with(begin)) {
      const auto words = split(std::string_view(line).substr(begin.size()), ',');
      if (words.size() == 4) {
        std::string name(words[2]);
        std::erase(name, ' '), std::erase(name, '"');
        out[std::string(words[0])].push_back(std::move(name));
      }
    }
  return out;
}

/// As a comment of one line or more.
std::string commentOf(const std::string &text, std::size_t most) {
  std::string out, line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && line.size() + word.size() + 1 > most)
      out += line + "\n     ", line.clear();
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return "/* " + out + line + " */";
}

std::string textOf(const Family &family, const std::vector<std::string> &before, std::string &list) {
  const std::string name(family.name());
  std::vector<Field> fields = fieldsOf(*family.callable);
  std::stable_sort(fields.begin(), fields.end(), [&](const Field &a, const Field &b) {
    const auto place = [&](const Field &f) { return std::find(before.begin(), before.end(), f.name); };
    return place(a) < place(b);
  });
  for (const std::string &old : before)
    if (std::ranges::none_of(fields, [&](const Field &f) { return f.name == old; }))
      std::fprintf(stderr, "kiln-door-header: %s has no '%s' any more: programs that give it break\n", name.c_str(),
                   old.c_str());
  std::string out =
      "\n/* " + std::string(family.callable->summary()) + " */\ntypedef struct kiln_" + name + " {\n  size_t size;\n";
  list += "KILN_OPERATION(" + name + ")\n";
  for (const Field &f : fields) {
    const std::string spoken = f.name + (isReservedWord(f.name) ? "_" : "");
    constexpr const char *types[] = {"const DLTensor *", "int64_t ", "int64_t ", "double ", "const char *"};
    constexpr const char *kinds[] = {"Tensor", "Flag", "Whole", "Number", "Text"};
    const auto kind = static_cast<std::size_t>(f.kind);
    out += "  " + commentOf(f.text, 110) + "\n  " + types[kind] + spoken + ";\n";
    list += "KILN_FIELD(" + name + ", " + spoken + ", \"" + f.name + "\", " + kinds[kind] + ")\n";
  }
  const std::string type = "kiln_" + name;
  return out + "} " + type + ";\nvoid " + type + "_init(" + type + " *call);\nkiln_status " + type + "_run(const " +
         type + " *call, const kiln_options *options);\nkiln_status " + type + "_workspace(const " + type +
         " *call, size_t *bytes);\nkiln_status " + type + "_outputs(const " + type +
         " *call, kiln_output *outputs, size_t *count);\n";
}

} // namespace
} // namespace kiln::door

int main(int argc, char **argv) {
  using namespace kiln::door;
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: kiln-door-header HEADER\n\nPrints what the header of the operations is to be; HEADER is "
                 "the one of now, or a new file.\n");
    return 2;
  }
  std::ifstream header(argv[1]);
  const auto before = recordedFields(header);
  std::string out = head, list;
  for (const kiln::kernels::Family &family : kiln::kernels::families()) {
    const auto found = before.find(std::string(family.name()));
    out += textOf(family, found == before.end() ? std::vector<std::string>() : found->second, list);
  }
  out +=
      "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* KILN_OPERATIONS_H */\n\n/* All of the above again, for the library "
      "itself. */\n#ifdef KILN_FIELD\n" +
      list + "#endif\n";
  std::cout << out;
  return 0;
}
