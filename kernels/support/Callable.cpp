#include "kernels/support/Callable.h"

#include "kernels/support/CallWords.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {

bool Callable::takes(DType type) const {
  const std::vector<DType> all = dtypes();
  return std::find(all.begin(), all.end(), type) != all.end();
}

Status Callable::run(Jit &jit, const Call &call, const RunOptions &options) const {
  return run(jit, bind(jit), call, options);
}

Status Callable::run(Jit &jit, const Planner &planner, const Call &call, const RunOptions &options) const {
  const PlanFunction described = [&](Plan &plan) { return planner(call, plan); };
  const CallText text = [&] { return callWords(*this, call); };
  return RunPlan::run(jit, name(), options, described, text);
}

CompileFuture Callable::prepareAsync(Jit &jit, const Call &call) const {
  const Planner planner = bind(jit);
  return prepareAllAsync([&](Plan &plan) { return planner(call, plan); });
}

std::string Callable::sizeText(const TensorTypes &inputs, const OptionValues &) const {
  for (const TensorParameter &p : tensors())
    if (const auto found = inputs.find(p.name); found != inputs.end() && !p.output)
      return shapeText(found->second.shape);
  return {};
}

double Callable::bytes(const Call &call) const {
  double total = 0;
  for (const auto &[name, t] : call.tensors)
    total += static_cast<double>(t.elements()) * dtypeBytes(t.dtype);
  return total;
}

Status checkOptions(const CallTable &table, const OptionValues &options) {
  const std::vector<OptionInfo> &known = table.options;
  for (const auto &[name, value] : options) {
    const auto option = std::find_if(known.begin(), known.end(), [&](const OptionInfo &o) { return o.name == name; });
    const bool isOutput = std::any_of(table.tensors.begin(), table.tensors.end(), [&](const TensorParameter &p) {
      return p.output && p.optional && p.name == name;
    });
    if (option == known.end() && !isOutput)
      return Status::invalid("kernel '" + table.name + "' has no option '" + name + "'", "leave it out");
    if (isOutput ? !std::holds_alternative<bool>(value) : !option->takes(value))
      return Status::invalid(table.name + ": " + name + " = " + textOf(value) +
                                 ": a value of another type than the option's",
                             isOutput ? "give true" : "give what " + name + " is: " + option->text);
  }
  return {};
}

} // namespace kiln::kernels
