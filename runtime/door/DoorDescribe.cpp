// The table of all operations as JSON: what bindings make their functions, schemas and pages of.
#include "runtime/door/DoorCall.h"
#include "runtime/io/DType.h"

#include <nlohmann/json.hpp>

namespace kiln::door {
namespace {

using nlohmann::json;

constexpr const char *kinds[] = {"flag", "whole", "float", "choice", "text"};

json valueOf(const kernels::OptionValue &value) {
  return std::visit([](const auto &v) { return json(v); }, value);
}

json tensorsOf(const kernels::Callable &callable) {
  json out = json::array();
  for (const kernels::TensorParameter &p : callable.tensors()) {
    if (p.isGroup)
      continue;
    json &row = out.emplace_back(
        json{{"name", p.name}, {"output", p.output}, {"optional", p.optional}, {"description", p.description}});
    if (p.dtype)
      row["dtype"] = dtypeName(*p.dtype);
    if (!p.inPlaceOf.empty())
      row["in_place_of"] = p.inPlaceOf;
  }
  return out;
}

json optionsOf(const kernels::Callable &callable) {
  json out = json::array();
  for (const kernels::OptionInfo &o : callable.options()) {
    json &row = out.emplace_back(
        json{{"name", o.name}, {"kind", kinds[static_cast<std::size_t>(o.kind)]}, {"description", o.text}});
    if (!o.choices.empty())
      row["choices"] = o.choices;
    if (o.standard)
      row["default"] = valueOf(*o.standard);
  }
  return out;
}

} // namespace

std::string describeAll() {
  json operations = json::array();
  for (const kernels::Family &family : kernels::families()) {
    const kernels::Callable &callable = *family.callable;
    json dtypes = json::array();
    for (const DType type : callable.dtypes())
      dtypes.push_back(dtypeName(type));
    operations.push_back({{"name", callable.name()},
                          {"summary", callable.summary()},
                          {"dtypes", dtypes},
                          {"tensors", tensorsOf(callable)},
                          {"options", optionsOf(callable)}});
  }
  json knobs = json::array();
#define KILN_KNOB(field, variable, flag, type, standard, key, request, text)                                           \
  knobs.push_back({{"variable", variable}, {"default", standard}, {"description", text}});
#include "runtime/jit/Knobs.def"
  return json{{"version", KILN_VERSION}, {"operations", operations}, {"knobs", knobs}}.dump();
}

} // namespace kiln::door
