#include "runtime/tools/FamilyWords.h"

#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace kiln::tools {

using namespace kernels;

namespace {

std::string optionOf(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

/// VALUE of a number parameter, onto its numbers.
Status readNumber(const NumberParameter &p, const std::string &text, Numbers &numbers) {
  const std::string option = optionOf(p.name);
  if (!p.choices.empty()) {
    const auto found = std::find(p.choices.begin(), p.choices.end(), text);
    if (found == p.choices.end()) {
      constexpr std::size_t shown = 3;
      const std::vector<std::string> near = nearest(text, p.choices);
      return Status::invalid(option + " " + (text.empty() ? "''" : text) + ": there is no such choice",
                             p.choices.size() < 8 ? "the choices are " + join(p.choices)
                             : !near.empty()      ? "did you mean " + join(near, " or ") + "?"
                                                  : "such as " + join(std::span(p.choices).first(shown)) +
                                                        "; docs/commands.md "
                                                        "lists all " +
                                                        std::to_string(p.choices.size()));
    }
    numbers[p.name] = static_cast<double>(found - p.choices.begin());
    return {};
  }
  const std::vector<std::string> keys = p.keys.empty() ? std::vector{p.name} : p.keys;
  const std::vector<std::string_view> pieces = split(text, ',');
  bool good = pieces.size() == keys.size();
  for (std::size_t i = 0; good && i < keys.size(); ++i) {
    const auto [end, error] = std::from_chars(pieces[i].data(), pieces[i].data() + pieces[i].size(), numbers[keys[i]]);
    good = error == std::errc() && end == pieces[i].data() + pieces[i].size();
  }
  if (!good)
    return Status::invalid(option + " " + text + ": expected " +
                           (keys.size() == 1 ? "a number"
                                             : std::to_string(keys.size()) + " numbers with commas "
                                                                             "between") +
                           " (" + p.description + ")");
  return {};
}

} // namespace

Result<FamilyWords> parseFamilyWords(const Family &family, const std::vector<std::string> &words) {
  const std::vector<TensorParameter> tensors = family.tensors();
  const std::vector<NumberParameter> numbers = family.numbers();
  FamilyWords out;
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (!word.starts_with("--"))
      return Status::invalid("'" + word + "' was not expected", "parameters are written --NAME VALUE");
    std::optional<std::string> value;
    if (const std::size_t equal = word.find('='); equal != std::string::npos) {
      value = word.substr(equal + 1);
      word.resize(equal);
    }
    std::string name = word.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == "input")
      name = std::find_if(tensors.begin(), tensors.end(), [](const TensorParameter &p) { return !p.output; })->name;
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return Status::invalid(word + " was given twice", "give it once");
    seen.push_back(name);
    const auto number = std::find_if(numbers.begin(), numbers.end(), [&](const auto &p) { return p.name == name; });
    if (number != numbers.end() && number->flag) {
      if (value)
        return Status::invalid(word + "=" + *value + ": it has no value", "write " + word);
      out.numbers[name] = 1;
      continue;
    }
    const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const auto &p) { return p.name == name; });
    if (number == numbers.end() && tensor == tensors.end())
      return Status::invalid("kernel '" + std::string(family.name()) + "' has no parameter '" + word.substr(2) + "'",
                             "its parameters are " + parameterList(family));
    if (!value) {
      if (i + 1 >= words.size())
        return Status::invalid(word + " has no value");
      value = words[++i];
    }
    if (tensor != tensors.end())
      out.tensors[name] = *value;
    else
      KILN_TRY(readNumber(*number, *value, out.numbers));
  }
  return out;
}

Status requireInputs(const Family &family, const TensorTypes &inputs) {
  for (const TensorParameter &p : family.tensors())
    if (!p.output && !p.optional && !inputs.count(p.name))
      return Status::invalid("kernel '" + std::string(family.name()) + "' needs " + optionOf(p.name) + " FILE.npy (" +
                                 p.description + ")",
                             "its parameters are " + parameterList(family));
    else if (!p.with.empty() && inputs.count(p.name) && !inputs.count(p.with))
      return Status::invalid("kernel '" + std::string(family.name()) + "' needs " + optionOf(p.with) +
                                 " FILE.npy too where " + optionOf(p.name) + " is given",
                             "give both or neither");
  return {};
}

Status checkInputType(const Family &family, const TensorParameter &parameter, const std::string &file, DType type,
                      std::optional<DType> named, const Numbers &numbers) {
  const std::vector<DType> types = family.dtypes();
  const bool chosen =
      std::all_of(types.begin(), types.end(), [&](DType t) { return family.inputType(parameter, t, numbers) == t; });
  if (!chosen || family.takes(type))
    return {};
  const bool rounds = dtypeKind(type) == DTypeKind::Float;
  std::vector<std::string> names, helpful;
  for (const DType t : types) {
    names.emplace_back(dtypeName(t));
    if (rounds ? dtypeKind(t) == DTypeKind::Float : readsBits(type, t))
      helpful.push_back("--dtype " + names.back());
  }
  const std::string takes = "; kernel '" + std::string(family.name()) + "' takes " + join(names);
  if (named)
    return Status::invalid("--dtype " + std::string(dtypeName(type)) + takes, "name one of these");
  return Status::invalid(optionOf(parameter.name) + " " + file + ": the file holds " + std::string(dtypeName(type)) +
                             takes,
                         helpful.empty() ? "save it as one of these"
                                         : join(helpful, " or ") + (rounds ? " rounds it" : " takes its bits"));
}

std::string parameterList(const Family &family) {
  std::vector<std::string> names;
  for (const TensorParameter &p : family.tensors())
    names.push_back(optionOf(p.name));
  for (const NumberParameter &p : family.numbers())
    names.push_back(optionOf(p.name));
  return join(names);
}

std::string familyHelp(const Family &family) {
  std::string text = "  " + std::string(family.name());
  std::size_t column = text.size();
  const auto add = [&](const std::string &word) {
    if (column + 1 + word.size() > 100) {
      text += "\n     ";
      column = 5;
    }
    text += " " + word;
    column += 1 + word.size();
  };
  const std::vector<TensorParameter> tensors = family.tensors();
  const auto wordOf = [](const TensorParameter &p) { return optionOf(p.name) + (p.output ? " OUT.npy" : " FILE.npy"); };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string word = wordOf(tensors[i]);
    while (i + 1 < tensors.size() && tensors[i].with == tensors[i + 1].name) // one bracket around what goes together
      word += " " + wordOf(tensors[++i]);
    add(tensors[i].optional ? "[" + word + "]" : word);
  }
  for (const NumberParameter &p : family.numbers()) {
    const std::string value = p.flag ? "" : p.choices.empty() ? (p.keys.empty() ? " V" : " V,V") : " NAME";
    add("[" + optionOf(p.name) + value + "]");
  }
  return text + "\n      " + std::string(family.summary()) + "\n";
}

Result<Array> readInput(const std::string &name, const std::string &file, std::optional<DType> type) {
  KILN_ASSIGN(Array array, readNpy(file));
  const DType to = type.value_or(array.type == DType::F64 ? DType::F32 : array.type);
  if (to == DType::I32 && array.type == DType::I64) {
    Array narrow{DType::I32, array.shape, std::vector<std::byte>(array.data.size() / 2)};
    for (std::size_t i = 0; i < array.elements(); ++i) {
      std::int64_t wide;
      std::memcpy(&wide, array.data.data() + 8 * i, 8);
      const auto value = static_cast<std::int32_t>(wide);
      if (value != wide)
        return Status::invalid(optionOf(name) + " " + file + ": element " + std::to_string(i) + " is " +
                                   std::to_string(wide) + ", which does not fit 32 bits",
                               "split the call");
      std::memcpy(narrow.data.data() + 4 * i, &value, 4);
    }
    return narrow;
  }
  return convertArray(std::move(array), to, file);
}

} // namespace kiln::tools
