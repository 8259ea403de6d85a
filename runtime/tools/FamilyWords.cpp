#include "runtime/tools/FamilyWords.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace kiln::tools {

using namespace kernels;

namespace {

std::string optionOf(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

/// The options of a word: one, or those of a pair.
std::vector<OptionInfo> optionsOfWord(const Callable &callable, std::string_view word) {
  std::vector<OptionInfo> out = callable.options();
  std::erase_if(out, [&](const OptionInfo &o) { return o.word() != word; });
  return out;
}

Status noSuchChoice(const OptionInfo &o, const std::string &text) {
  constexpr std::size_t shown = 3;
  const std::vector<std::string> near = nearest(text, o.choices);
  return Status::invalid(optionOf(o.word()) + " " + (text.empty() ? "''" : text) + ": there is no such choice",
                         o.choices.size() < 8 ? "the choices are " + join(o.choices)
                         : !near.empty()      ? "did you mean " + join(near, " or ") + "?"
                                              : "such as " + join(std::span(o.choices).first(shown)) +
                                                    "; docs/commands.md "
                                                    "lists all " +
                                                    std::to_string(o.choices.size()));
}

/// VALUE of the options of a word, onto their values.
Status readValue(const Callable &callable, const std::vector<OptionInfo> &options, const std::string &text,
                 OptionValues &values) {
  const OptionInfo &first = options.front();
  if (first.kind == OptionInfo::Kind::Text) {
    if (text.empty())
      return Status::invalid(optionOf(first.word()) + " is empty", "give " + first.text + ", or leave it out");
    values[first.name] = text;
    return {};
  }
  const std::vector<std::string_view> pieces = split(text, ',');
  bool good = pieces.size() == options.size();
  for (std::size_t i = 0; good && i < options.size(); ++i) {
    const OptionInfo &o = options[i];
    const std::optional<OptionValue> value = o.parse(pieces[i]);
    if (value)
      values[o.name] = *value;
    else if (o.kind == OptionInfo::Kind::Whole && parseNumber<double>(pieces[i]))
      return Status::invalid(std::string(callable.name()) + ": " + o.name + " = " + std::string(pieces[i]),
                             "give a whole number");
    good = value.has_value();
  }
  if (good)
    return {};
  if (first.kind == OptionInfo::Kind::Choice)
    return noSuchChoice(first, text);
  return Status::invalid(
      optionOf(first.word()) + " " + text + ": expected " +
      (options.size() == 1 ? "a number" : std::to_string(options.size()) + " numbers with commas between") + " (" +
      first.text + ")");
}

/// MEMBER=VALUE of a group.
Status readMember(const TensorParameter &group, const std::string &word, const std::string &text, FamilyWords &words) {
  const std::size_t equal = text.find('=');
  const std::string member = text.substr(0, equal);
  const auto isPart = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (equal == std::string::npos || member.empty() || equal + 1 == text.size() ||
      !std::all_of(member.begin(), member.end(), isPart))
    return Status::invalid(word + " " + text + ": expected NAME=VALUE",
                           "NAME, of letters, digits and _, is what the call calls it");
  if (!words.tensors.emplace(group.name + "." + member, text.substr(equal + 1)).second)
    return Status::invalid(word + " " + member + "= was given twice", "give it once");
  return {};
}

} // namespace

Result<FamilyWords> parseFamilyWords(const Callable &callable, const std::vector<std::string> &words) {
  const std::vector<TensorParameter> tensors = callable.tensors();
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
    const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const auto &p) { return p.name == name; });
    const bool isGroup = tensor != tensors.end() && tensor->isGroup;
    if (!isGroup && std::find(seen.begin(), seen.end(), name) != seen.end())
      return Status::invalid(word + " was given twice", "give it once");
    seen.push_back(name);
    const std::vector<OptionInfo> options = optionsOfWord(callable, name);
    if (!options.empty() && options.front().kind == OptionInfo::Kind::Flag) {
      if (value)
        return Status::invalid(word + "=" + *value + ": it has no value", "write " + word);
      out.options[name] = true;
      continue;
    }
    if (options.empty() && tensor == tensors.end())
      return Status::invalid("kernel '" + std::string(callable.name()) + "' has no parameter '" + word.substr(2) + "'",
                             "its parameters are " + parameterList(callable));
    if (!value) {
      if (i + 1 >= words.size())
        return Status::invalid(word + " has no value");
      value = words[++i];
    }
    if (isGroup)
      KILN_TRY(readMember(*tensor, word, *value, out));
    else if (tensor != tensors.end())
      out.tensors[name] = *value;
    else
      KILN_TRY(readValue(callable, options, *value, out.options));
  }
  return out;
}

Status requireInputs(const Callable &callable, const TensorTypes &inputs) {
  for (const TensorParameter &p : callable.tensors())
    if (!p.output && !p.optional && !inputs.count(p.name))
      return Status::invalid("kernel '" + std::string(callable.name()) + "' needs " + optionOf(p.name) + " FILE.npy (" +
                                 p.description + ")",
                             "its parameters are " + parameterList(callable));
    else if (!p.with.empty() && inputs.count(p.name) && !inputs.count(p.with))
      return Status::invalid("kernel '" + std::string(callable.name()) + "' needs " + optionOf(p.with) +
                                 " FILE.npy too where " + optionOf(p.name) + " is given",
                             "give both or neither");
  return {};
}

Status checkInputType(const Callable &callable, const TensorParameter &parameter, const std::string &file, DType type,
                      std::optional<DType> named, const OptionValues &options) {
  const std::vector<DType> types = callable.dtypes();
  const bool chosen =
      std::all_of(types.begin(), types.end(), [&](DType t) { return callable.inputType(parameter, t, options) == t; });
  if (!chosen || callable.takes(type))
    return {};
  const bool rounds = dtypeKind(type) == DTypeKind::Float;
  std::vector<std::string> names, helpful;
  for (const DType t : types) {
    names.emplace_back(dtypeName(t));
    if (rounds ? dtypeKind(t) == DTypeKind::Float : readsBits(type, t))
      helpful.push_back("--dtype " + names.back());
  }
  const std::string takes = "; kernel '" + std::string(callable.name()) + "' takes " + join(names);
  if (named)
    return Status::invalid("--dtype " + std::string(dtypeName(type)) + takes, "name one of these");
  return Status::invalid(optionOf(parameter.name) + " " + file + ": the file holds " + std::string(dtypeName(type)) +
                             takes,
                         helpful.empty() ? "save it as one of these"
                                         : join(helpful, " or ") + (rounds ? " rounds it" : " takes its bits"));
}

std::string optionsText(const Callable &callable, const OptionValues &options) {
  const std::vector<OptionInfo> known = callable.options();
  std::string out;
  for (const auto &[name, value] : options) {
    const auto option = std::find_if(known.begin(), known.end(), [&](const OptionInfo &o) { return o.name == name; });
    if (option != known.end() && option->standard == value)
      continue;
    out += ", " + name + (value == OptionValue(true) ? "" : " " + textOf(value));
  }
  return out;
}

std::string parameterList(const Callable &callable) {
  std::vector<std::string> names;
  for (const TensorParameter &p : callable.tensors())
    names.push_back(optionOf(p.name));
  for (const OptionInfo &o : callable.options())
    if (const std::string word = optionOf(o.word()); names.back() != word) // a pair is one parameter
      names.push_back(word);
  return join(names);
}

std::string familyHelp(const Callable &callable) {
  std::string text = "  " + std::string(callable.name());
  std::size_t column = text.size();
  const auto add = [&](const std::string &word) {
    if (column + 1 + word.size() > 100) {
      text += "\n     ";
      column = 5;
    }
    text += " " + word;
    column += 1 + word.size();
  };
  const std::vector<TensorParameter> tensors = callable.tensors();
  const auto wordOf = [](const TensorParameter &p) {
    return optionOf(p.name) + (p.output ? " OUT.npy" : p.isGroup ? " NAME=FILE.npy .." : " FILE.npy");
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string word = wordOf(tensors[i]);
    while (i + 1 < tensors.size() && tensors[i].with == tensors[i + 1].name) // one bracket around what goes together
      word += " " + wordOf(tensors[++i]);
    add(tensors[i].optional ? "[" + word + "]" : word);
  }
  const std::vector<OptionInfo> options = callable.options();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionInfo &o = options[i];
    std::string value = o.kind == OptionInfo::Kind::Flag     ? ""
                        : o.kind == OptionInfo::Kind::Choice ? " NAME"
                        : o.kind == OptionInfo::Kind::Text   ? " TEXT"
                                                             : " V";
    for (; i + 1 < options.size() && options[i + 1].word() == o.word(); ++i)
      value += ",V";
    add("[" + optionOf(o.word()) + value + "]");
  }
  return text + "\n      " + std::string(callable.summary()) + "\n";
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
