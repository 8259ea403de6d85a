#include "runtime/tools/KernelProgram.h"

#include "kernels/support/Family.h"
#include "runtime/tools/Report.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

namespace kiln::tools {
namespace {

/// NAME=VALUE.
Result<std::pair<std::string, std::string>> splitSetting(const std::string &option, const std::string &text) {
  const std::size_t equal = text.find('=');
  if (equal == 0 || equal == std::string::npos || equal + 1 == text.size())
    return Status::invalid(option + " " + text + ": expected NAME=VALUE");
  return std::pair(text.substr(0, equal), text.substr(equal + 1));
}

Result<unsigned> argumentIndex(const std::string &option, const std::string &text,
                               const std::vector<std::string> &names) {
  if (const std::optional<unsigned> number = parseNumber<unsigned>(text); number && text.size() < 6)
    return *number;
  for (unsigned i = 0; i < names.size(); ++i)
    if (names[i] == text)
      return i;
  return Status::invalid(option + ": there is no argument '" + text + "'",
                         names.empty() ? "give its number, counted from 0" : "the arguments are " + join(names));
}

} // namespace

bool namesTextFile(const std::string &word) {
  return word.ends_with(".mlir") || word.find('/') != std::string::npos;
}

Result<KernelSource> recordLibraryKernel(const std::string &name, const std::string &dtype,
                                         const std::vector<std::string> &settings) {
  using namespace kernels;
  KILN_ASSIGN(const Family *family, findFamily(name));
  const Result<DType> element = dtype.empty() ? Result(family->callable->dtypes().front()) : parseDType(dtype);
  if (!element)
    return Status::invalid("--dtype " + dtype + ": the library's kernels exist for f32, f16 and bf16");
  Settings values;
  for (const std::string &text : settings) {
    KILN_ASSIGN(const auto setting, splitSetting("--set", text));
    values.insert(setting);
  }
  return sourceOf(family->callable->record(*element, values));
}

Result<std::string> factsText(const std::vector<std::string> &names, const std::vector<std::string> &divisible,
                              const std::vector<std::string> &equals, bool noTensorMaps) {
  Json facts = Json::array();
  for (const auto &[option, key, list] :
       {std::tuple("--divisible", "divisibility", &divisible), std::tuple("--equals", "equals", &equals)})
    for (const std::string &text : *list) {
      KILN_ASSIGN(const auto setting, splitSetting(option, text));
      KILN_ASSIGN(const unsigned index, argumentIndex(option, setting.first, names));
      const std::optional<std::int64_t> value = parseNumber<std::int64_t>(setting.second);
      if (!value)
        return Status::invalid(std::string(option) + " " + text + ": '" + setting.second + "' is no integer");
      facts.push_back({{"argument", index}, {key, *value}});
    }
  if (noTensorMaps)
    facts.push_back({{"tensor_maps", false}});
  return facts.dump();
}

} // namespace kiln::tools
