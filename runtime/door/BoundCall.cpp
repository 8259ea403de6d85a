#include "runtime/door/BoundCall.h"

#include "runtime/door/OperationCall.h"

#include <algorithm>

namespace kiln::door {

BoundCall::BoundCall(const kernels::Family &family) : family(&family) {
  const kernels::CallTable &table = tableOf(family).table;
  for (const kernels::TensorParameter &p : table.tensors)
    order.push_back(p.name);
  for (const kernels::OptionInfo &o : table.options)
    order.push_back(o.name);
  order.push_back("workspace");
  values.assign(order.size(), FfiValue{ffiNone, 0, {0}});
}

Failure BoundCall::take(std::string_view &names, std::size_t &place) const {
  const std::string_view name = names.substr(0, names.find(' '));
  const auto found = std::find(order.begin(), order.end(), name);
  if (found == order.end()) {
    const std::string &of = tableOf(*family).table.name;
    return failureOf(of, Status::invalid(of + ": it has no argument '" + std::string(name) + "'",
                                         "give names of its arguments, with a blank between two"));
  }
  place = static_cast<std::size_t>(found - order.begin());
  names.remove_prefix(std::min(name.size() + 1, names.size()));
  return {};
}

Failure BoundCall::create(const kernels::Family &family, std::span<const FfiValue> arguments,
                          std::unique_ptr<BoundCall> &out) {
  std::string_view arrays, options;
  if (arguments.size() < 2 || !textOf(arguments[0], arrays) || !textOf(arguments[1], options))
    return {"TypeError", "bind: arguments 1 and 2 are no texts", "give the names of the arrays and of the options"};
  std::unique_ptr<BoundCall> made(new BoundCall(family));
  while (!arrays.empty())
    if (Failure f = made->take(arrays, made->places.emplace_back()); !f.kind.empty())
      return f;
  for (FfiValue value : arguments.subspan(2)) {
    std::size_t place = 0;
    if (Failure f = made->take(options, place); !f.kind.empty())
      return f;
    if (std::string_view text; textOf(value, text)) {
      const char *const kept = made->texts.emplace_back(text).c_str(); // a short text lies in the value
      value = {ffiText, 0, {0}};
      value.text = kept;
    }
    made->values[place] = value;
  }
  if (!options.empty())
    return {"TypeError", "bind: there are more names of options than values", "give a value for each"};
  out = std::move(made);
  return {};
}

Failure BoundCall::run(std::span<const FfiValue> arrays) const {
  if (arrays.size() != places.size()) {
    const std::string &of = tableOf(*family).table.name;
    return failureOf(of, Status::invalid(of + ": " + std::to_string(arrays.size()) + " arrays are given, " +
                                             std::to_string(places.size()) + " are bound",
                                         "give those of the names"));
  }
  thread_local std::vector<FfiValue> call; // keeps its memory
  call.assign(values.begin(), values.end());
  for (std::size_t i = 0; i < arrays.size(); ++i)
    call[places[i]] = arrays[i];
  return door::run(*family, call);
}

} // namespace kiln::door
