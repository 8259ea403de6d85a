#include "kernels/support/Family.h"

#include "support/Text.h"

namespace kiln::kernels {

#define KILN_FAMILY(name) std::unique_ptr<Family> make##name();
#include "kernels/Families.def"

const std::vector<std::unique_ptr<Family>> &families() {
  static const std::vector<std::unique_ptr<Family>> all = [] {
    std::vector<std::unique_ptr<Family>> list;
#define KILN_FAMILY(name) list.push_back(make##name());
#include "kernels/Families.def"
    return list;
  }();
  return all;
}

Result<const Family *> findFamily(std::string_view name) {
  std::vector<std::string> names;
  for (const auto &family : families()) {
    if (family->name() == name)
      return family.get();
    names.emplace_back(family->name());
  }
  const std::vector<std::string> near = nearest(name, names);
  return Status(StatusCode::NotFound, "there is no kernel '" + std::string(name) + "'",
                near.empty() ? "the kernels are " + join(names) : "did you mean " + join(near, " or ") + "?");
}

Result<std::vector<const Family *>> selectFamilies(const std::vector<std::string> &names) {
  std::vector<const Family *> chosen;
  for (const std::string &name : names) {
    KILN_ASSIGN(const Family *family, findFamily(name));
    chosen.push_back(family);
  }
  if (names.empty())
    for (const auto &family : families())
      chosen.push_back(family.get());
  return chosen;
}

Numbers defaultNumbers(const Family &family) {
  Numbers numbers;
  for (const NumberParameter &p : family.numbers())
    numbers[p.name] = p.value;
  return numbers;
}

} // namespace kiln::kernels
