#include "kernels/support/Configuration.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {

std::string Values::text() const {
  const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
  const std::string what = step == 0   ? "a power of two "
                           : step == 1 ? "a whole number "
                                       : "a multiple of " + std::to_string(step) + " ";
  return what + range + (orZero ? ", or 0" : "");
}

std::vector<std::int64_t> Values::all() const {
  std::vector<std::int64_t> out;
  if (orZero && least > 0)
    out.push_back(0);
  for (std::int64_t v = least; v <= most; v = step ? v + step : 2 * v)
    out.push_back(v);
  return out;
}

std::string FieldInfo::valuesText() const {
  switch (kind) {
  case Kind::Integer:
    return values.text();
  case Kind::Flag:
    return "true or false";
  case Kind::Choice:
    return join(choices);
  case Kind::Text:
    return "a text";
  case Kind::Opaque:
    break;
  }
  return {};
}

std::vector<std::string> FieldInfo::candidates() const {
  std::vector<std::string> out;
  if (!values.isTuned)
    return out;
  if (kind == Kind::Flag)
    return {"false", "true"};
  if (kind == Kind::Choice)
    return choices;
  for (const std::int64_t v : values.all())
    out.push_back(std::to_string(v));
  return out;
}

Status detail::readField(const FieldInfo &field, const std::string &text, std::int64_t &value) {
  const auto refuse = [&] {
    return Status::invalid(field.name + "=" + text + ": expected " + field.valuesText(),
                           field.name + " is " + field.text);
  };
  switch (field.kind) {
  case FieldInfo::Kind::Flag:
    value = text == "true";
    return value || text == "false" ? Status() : refuse();
  case FieldInfo::Kind::Choice: {
    const auto at = std::find(field.choices.begin(), field.choices.end(), text);
    value = at - field.choices.begin();
    return at != field.choices.end() ? Status() : refuse();
  }
  case FieldInfo::Kind::Integer: {
    const std::optional<std::int64_t> number = parseNumber<std::int64_t>(text);
    value = number.value_or(0);
    return number && field.values.take(value) ? Status() : refuse();
  }
  case FieldInfo::Kind::Text:
    return {};
  case FieldInfo::Kind::Opaque:
    break;
  }
  return refuse();
}

Status detail::unknownSetting(const std::string &name, const std::vector<FieldInfo> &known) {
  std::vector<std::string> names;
  for (const FieldInfo &f : known)
    names.push_back(f.name);
  return Status::invalid("there is no setting '" + name + "'", "the settings are " + join(names));
}

} // namespace kiln::kernels
