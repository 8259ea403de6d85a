#include "kernels/support/Family.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {

#define KILN_FAMILY(name) Family make##name();
#include "kernels/Families.def"

const std::vector<Family> &families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> list;
#define KILN_FAMILY(name) list.push_back(make##name());
#include "kernels/Families.def"
    return list;
  }();
  return all;
}

static Status lacks(const Family &family, const std::string &part) {
  return Status::invalid("kernel '" + std::string(family.name()) + "' has no " + part,
                         "kiln run, kiln compile and kiln explain take it");
}

Result<const Reference *> referenceOf(const Family &family) {
  if (!family.reference)
    return lacks(family, "reference: nothing says what its results must be");
  return family.reference.get();
}

Result<const Samples *> samplesOf(const Family &family) {
  if (!family.samples)
    return lacks(family, "samples: nothing says what to try it with");
  return family.samples.get();
}

static Status checkNeeds(const Family &family, Needs needs) {
  if (needs.samples)
    KILN_TRY(samplesOf(family).status());
  if (needs.reference)
    KILN_TRY(referenceOf(family).status());
  return {};
}

Result<const Family *> findFamily(std::string_view name) {
  std::vector<std::string> names;
  for (const Family &family : families()) {
    if (family.name() == name)
      return &family;
    names.emplace_back(family.name());
  }
  const std::vector<std::string> near = nearest(name, names);
  return Status(StatusCode::NotFound, "there is no kernel '" + std::string(name) + "'",
                near.empty() ? "the kernels are " + join(names) : "did you mean " + join(near, " or ") + "?");
}

Result<std::vector<const Family *>> selectFamilies(const std::vector<std::string> &names, Needs needs) {
  std::vector<const Family *> chosen;
  for (const std::string &name : names) {
    KILN_ASSIGN(const Family *family, findFamily(name));
    KILN_TRY(checkNeeds(*family, needs));
    chosen.push_back(family);
  }
  if (names.empty())
    for (const Family &family : families())
      if (checkNeeds(family, needs).ok())
        chosen.push_back(&family);
  return chosen;
}

Result<std::vector<DType>> chooseTypes(const Callable &callable, const std::vector<DType> &wanted) {
  const std::vector<DType> all = callable.dtypes();
  std::vector<DType> out;
  std::vector<std::string> names, asked;
  for (const DType t : wanted) {
    asked.emplace_back(dtypeName(t));
    if (std::find(all.begin(), all.end(), t) != all.end())
      out.push_back(t);
  }
  for (const DType t : all)
    names.emplace_back(dtypeName(t));
  if (out.empty())
    return Status::invalid("--dtype " + join(asked) + ": kernel '" + std::string(callable.name()) + "' exists for " +
                               join(names),
                           "name one of these");
  return out;
}

Result<std::vector<KernelTypes>> selectKernels(const std::vector<std::string> &names,
                                               const std::vector<std::string> &dtypes, Needs needs) {
  KILN_ASSIGN(const std::vector<const Family *> chosen, selectFamilies(names, needs));
  std::vector<DType> wanted;
  for (const std::string &name : dtypes) {
    KILN_ASSIGN(const DType type, parseDType(name));
    wanted.push_back(type);
  }
  std::vector<KernelTypes> out;
  for (const Family *family : chosen) {
    Result<std::vector<DType>> has = chooseTypes(*family->callable, wanted);
    if (has.ok())
      out.push_back({family, std::move(*has)});
    else if (!names.empty())
      return has.takeStatus();
  }
  return out;
}

} // namespace kiln::kernels
