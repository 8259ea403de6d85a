#include "kernels/support/Family.h"

#include "kernels/support/Runner.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <set>

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

Array Family::input(std::string_view name, const TensorType &type, std::uint64_t seed) const {
  const std::vector<TensorParameter> all = tensors();
  const auto at = std::find_if(all.begin(), all.end(), [&](const TensorParameter &p) { return p.name == name; });
  return randomArray(type, seed + static_cast<std::uint64_t>(at - all.begin()));
}

Status Family::run(Jit &jit, const Call &call, const RunOptions &options) const {
  return run(jit, bind(jit), call, options);
}

Status Family::run(Jit &jit, const Planner &planner, const Call &call, const RunOptions &options) const {
  const PlanFunction described = [&](Plan &plan) { return planner(call, plan); };
  RunPlan launches(jit, name(), options, described);
  return described(launches);
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

Result<std::vector<DType>> chooseTypes(const Family &family, const std::vector<DType> &wanted) {
  const std::vector<DType> all = family.dtypes();
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
    return Status::invalid("--dtype " + join(asked) + ": kernel '" + std::string(family.name()) + "' exists for " +
                               join(names),
                           "name one of these");
  return out;
}

Result<std::vector<KernelTypes>> selectKernels(const std::vector<std::string> &names,
                                               const std::vector<std::string> &dtypes) {
  KILN_ASSIGN(const std::vector<const Family *> chosen, selectFamilies(names));
  std::vector<DType> wanted;
  for (const std::string &name : dtypes) {
    KILN_ASSIGN(const DType type, parseDType(name));
    wanted.push_back(type);
  }
  std::vector<KernelTypes> out;
  for (const Family *family : chosen) {
    Result<std::vector<DType>> has = chooseTypes(*family, wanted);
    if (has.ok())
      out.push_back({family, std::move(*has)});
    else if (!names.empty())
      return has.takeStatus();
  }
  return out;
}

bool Family::takes(DType type) const {
  const std::vector<DType> all = dtypes();
  return std::find(all.begin(), all.end(), type) != all.end();
}

Result<float> floatOr(std::string_view operation, const Numbers &numbers, std::string_view name, float otherwise) {
  const double value = numberOr(numbers, name, static_cast<double>(otherwise));
  const auto rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || (rounded == 0) != (value == 0))
    return Status::invalid(format("%s: %s = %g", std::string(operation).c_str(), std::string(name).c_str(), value),
                           "give a number that fp32 holds: 0, or from 1e-45 to 3.4e38");
  return rounded;
}

Numbers defaultNumbers(const Family &family) {
  Numbers numbers;
  for (const NumberParameter &p : family.numbers())
    if (p.value)
      for (const std::string &key : p.keys.empty() ? std::vector{p.name} : p.keys)
        numbers[key] = *p.value;
  return numbers;
}

std::vector<Sample> Family::samples(DType dtype, SampleUse use, bool gpu) const {
  const Numbers numbers = defaultNumbers(*this);
  if (use != SampleUse::Check)
    return {{example(dtype, use == SampleUse::Bench && gpu), numbers}};
  // Extents of the innermost dimensions, and of all others: one that fills nothing, odd ones, more than one tile.
  // Extents that are equal stay equal.
  struct Size {
    std::uint64_t inner, outer;
  };
  std::vector<Sample> out;
  for (const Size &size : {Size{1, 1}, {31, 3}, {1000, 5}, {4097, 2}}) {
    TensorTypes types = example(dtype, false);
    std::set<std::uint64_t> inner;
    for (const auto &[name, type] : types)
      if (!type.shape.empty())
        inner.insert(type.shape.back());
    for (auto &[name, type] : types)
      for (std::uint64_t &extent : type.shape)
        extent = inner.count(extent) ? size.inner : size.outer;
    out.push_back({std::move(types), numbers});
  }
  return out;
}

double Family::bytes(const Call &call) const {
  double total = 0;
  for (const auto &[name, t] : call.tensors)
    total += static_cast<double>(t.elements()) * dtypeBytes(t.dtype);
  return total;
}

std::string Family::sizeText(const TensorTypes &inputs, const Numbers &) const {
  for (const TensorParameter &p : tensors())
    if (const auto found = inputs.find(p.name); found != inputs.end() && !p.output)
      return shapeText(found->second.shape);
  return {};
}

} // namespace kiln::kernels
