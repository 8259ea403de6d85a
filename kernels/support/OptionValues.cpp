#include "kernels/support/OptionValues.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {

bool isSet(const OptionValues &values, std::string_view name) {
  return valueOr(values, name, false);
}

std::string textOf(const OptionValue &value) {
  if (const bool *flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (const std::int64_t *whole = std::get_if<std::int64_t>(&value))
    return std::to_string(*whole);
  if (const double *number = std::get_if<double>(&value))
    return format("%g", *number);
  return std::get<std::string>(value);
}

std::optional<OptionValue> OptionInfo::parse(std::string_view written) const {
  switch (kind) {
  case Kind::Flag:
    return written == "true" || written == "false" ? std::optional<OptionValue>(written == "true") : std::nullopt;
  case Kind::Whole:
    if (const auto whole = parseNumber<std::int64_t>(written))
      return *whole;
    return std::nullopt;
  case Kind::Float:
    if (const auto number = parseNumber<double>(written))
      return *number;
    return std::nullopt;
  case Kind::Choice:
    if (const auto found = std::find(choices.begin(), choices.end(), written); found != choices.end())
      return *found;
    return std::nullopt;
  case Kind::Text:
    return std::string(written);
  }
  return std::nullopt;
}

bool OptionInfo::takes(const OptionValue &value) const {
  const bool isWhole = std::holds_alternative<std::int64_t>(value);
  switch (kind) {
  case Kind::Flag:
    return std::holds_alternative<bool>(value);
  case Kind::Whole:
    return isWhole;
  case Kind::Float:
    return isWhole || std::holds_alternative<double>(value);
  case Kind::Choice:
    if (const std::string *chosen = std::get_if<std::string>(&value))
      return std::find(choices.begin(), choices.end(), *chosen) != choices.end();
    return false;
  case Kind::Text:
    return std::holds_alternative<std::string>(value);
  }
  return false;
}

/// Lengths tell most names apart.
static bool isBefore(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

void NamePlaces::add(std::string_view name) {
  const auto at = std::ranges::upper_bound(rows, name, isBefore, &Row::name);
  rows.insert(at, {name, rows.size()});
}

std::size_t NamePlaces::of(std::string_view name) const {
  const auto found = std::ranges::lower_bound(rows, name, isBefore, &Row::name);
  return found != rows.end() && found->name == name ? found->place : none;
}

static Status refuse(std::string_view operation, std::string_view name, const OptionValue &value,
                     const std::string &remedy) {
  return Status::invalid(std::string(operation) + ": " + std::string(name) + " = " + textOf(value), remedy);
}

Result<bool> flagOf(std::string_view operation, std::string_view name, const OptionValue &value) {
  if (const bool *flag = std::get_if<bool>(&value))
    return *flag;
  return refuse(operation, name, value, "it is a flag: true or false");
}

Result<std::int64_t> wholeOf(std::string_view operation, std::string_view name, const OptionValue &value,
                             std::int64_t least, std::int64_t most) {
  const std::int64_t *const whole = std::get_if<std::int64_t>(&value);
  if (!whole)
    return refuse(operation, name, value, "give a whole number");
  if (*whole < least || *whole > most)
    return refuse(operation, name, value,
                  "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return *whole;
}

Result<float> floatOf(std::string_view operation, std::string_view name, const OptionValue &value) {
  const std::int64_t *const whole = std::get_if<std::int64_t>(&value);
  const double *const number = std::get_if<double>(&value);
  if (!whole && !number)
    return refuse(operation, name, value, "give a number");
  const double wide = whole ? static_cast<double>(*whole) : *number;
  const auto rounded = static_cast<float>(wide);
  if (!std::isfinite(rounded) || (rounded == 0) != (wide == 0))
    return refuse(operation, name, value, "give a number that fp32 holds: 0, or from 1e-45 to 3.4e38");
  return rounded;
}

Result<std::string> writtenOf(std::string_view operation, std::string_view name, const OptionValue &value) {
  if (const std::string *written = std::get_if<std::string>(&value))
    return *written;
  return refuse(operation, name, value, "give a text");
}

Result<std::size_t> choiceOf(std::string_view operation, std::string_view name, const OptionValue &value,
                             std::span<const std::string_view> words) {
  const std::string *const chosen = std::get_if<std::string>(&value);
  const auto found = chosen ? std::find(words.begin(), words.end(), *chosen) : words.end();
  if (found == words.end())
    return refuse(operation, name, value, "give one of " + join(std::vector<std::string>(words.begin(), words.end())));
  return static_cast<std::size_t>(found - words.begin());
}

} // namespace kiln::kernels
