#include "kernels/support/CallWords.h"

#include "kernels/support/Family.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {
namespace {

/// What an input has in a call of that type, if no word says another.
DType typeOfInput(const Callable &callable, const TensorParameter &p, DType called, const Call &call) {
  return callable.inputType(p, called, call.options).value_or(called);
}

/// The type of the call: the first of the family's with which its first input has its type.
std::optional<DType> typeOf(const Callable &callable, const std::vector<TensorParameter> &parameters,
                            const Call &call) {
  for (const TensorParameter &p : parameters) {
    const auto found = call.tensors.find(p.name);
    if (p.output || p.dtype || !p.madeBy.empty() || found == call.tensors.end())
      continue;
    for (const DType type : callable.dtypes())
      if (typeOfInput(callable, p, type, call) == found->second.dtype)
        return type;
    return std::nullopt;
  }
  return std::nullopt;
}

/// "1,0" of options that are one parameter, where one of them is not its default.  Nothing: they cannot be written.
std::optional<std::string> valueText(std::span<const OptionInfo> pair, const OptionValues &values) {
  std::vector<std::string> texts;
  for (const OptionInfo &o : pair) {
    const auto found = values.find(o.name);
    const std::optional<OptionValue> value = found == values.end() ? o.standard : std::optional(found->second);
    if (!value)
      return std::nullopt;
    const double *const number = std::get_if<double>(&*value);
    texts.push_back(number ? format("%.9g", *number) : textOf(*value)); // as many digits as tell f32 apart
    if (texts.back().empty() || texts.back().find_first_of(" \t\r\n#") != std::string::npos)
      return std::nullopt;
  }
  return join(texts, ",");
}

/// Whether commands make such a table up.
bool isMadeUp(const Callable &callable, const std::string &name, const Call &call) {
  const Result<const Family *> family = findFamily(callable.name());
  if (!family || !(*family)->samples)
    return false;
  TensorTypes types;
  for (const auto &[of, t] : call.tensors)
    types[of] = {t.dtype, Shape(t.shape.begin(), t.shape.begin() + t.rank)};
  return (*family)->samples->table(name, types, 1).has_value();
}

} // namespace

std::optional<std::string> callWords(const Callable &callable, const Call &call) {
  const std::vector<TensorParameter> parameters = callable.tensors();
  const std::optional<DType> type = typeOf(callable, parameters, call);
  if (!type)
    return std::nullopt;
  std::string out = std::string(callable.name()) + " --dtype " + std::string(dtypeName(*type));
  const auto add = [&](const std::string &word) { out += " --with " + word; };
  for (const TensorParameter &p : parameters) {
    if (p.isGroup && std::ranges::any_of(call.tensors, [&](const auto &t) { return p.has(t.first); }))
      return std::nullopt;
    const auto found = call.tensors.find(p.name);
    if (found == call.tensors.end())
      continue;
    if (p.output) {
      if (p.optional)
        add(p.name + "=1");
      continue;
    }
    if (!p.madeBy.empty()) {
      if (p.optional)
        add(p.name + "=" + p.madeBy);
      continue;
    }
    const Tensor &t = found->second;
    const DType usual = typeOfInput(callable, p, *type, call);
    // Offsets may be i64 too, and random ones are none.
    const bool isTable = t.dtype == DType::I32 || (t.dtype == DType::I64 && usual != t.dtype);
    if (t.rank == 0 || (isTable && !isMadeUp(callable, p.name, call)))
      return std::nullopt;
    add(p.name + "=" + shapeText(Shape(t.shape.begin(), t.shape.begin() + t.rank)) +
        (t.dtype == usual ? "" : ":" + std::string(dtypeName(t.dtype))));
  }
  const std::vector<OptionInfo> options = callable.options();
  for (std::size_t i = 0; i < options.size();) {
    std::size_t end = i + 1;
    while (end < options.size() && options[end].word() == options[i].word())
      ++end;
    const std::span<const OptionInfo> pair(&options[i], end - i);
    i = end;
    const bool isUsual = std::ranges::all_of(pair, [&](const OptionInfo &o) {
      const auto value = call.options.find(o.name);
      return value == call.options.end() || (o.standard && value->second == *o.standard);
    });
    if (isUsual)
      continue;
    if (pair[0].kind == OptionInfo::Kind::Flag) {
      if (!isSet(call.options, pair[0].name))
        return std::nullopt;
      add(pair[0].name);
    } else if (const std::optional<std::string> text = valueText(pair, call.options))
      add(pair[0].word() + "=" + *text);
    else
      return std::nullopt;
  }
  return out;
}

std::optional<std::string> callWords(std::string_view name, std::span<const CallTensor> tensors, OptionValues options) {
  const Result<const Family *> family = findFamily(name);
  if (!family)
    return std::nullopt;
  const Callable &callable = *(*family)->callable;
  const std::vector<TensorParameter> parameters = callable.tensors();
  Call call{{}, std::move(options)};
  for (const CallTensor &t : tensors)
    if (t.tensor) {
      if (std::ranges::none_of(parameters, [&](const TensorParameter &p) { return p.name == t.name; }))
        return std::nullopt;
      call.tensors.emplace(t.name, *t.tensor);
    }
  return callWords(callable, call);
}

} // namespace kiln::kernels
