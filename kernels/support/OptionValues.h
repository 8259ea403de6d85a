//===- OptionValues.h - What a call says besides its tensors -----------------===//
//
// Values of a call's options by name, as commands, samples and tests write them.  Each has the type of its option: a
// flag, a whole number of 64 bits, a float, or a choice as its word.  An option that is left out has its default.
//
// Invariant: nothing here knows which options there are.  An arguments struct lists them (CallOptions.h), and what
// commands see of the list is an OptionInfo each.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_OPTIONVALUES_H
#define KILN_KERNELS_SUPPORT_OPTIONVALUES_H

#include "support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace kiln::kernels {

/// The string is the word of a choice, or a text.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

/// Whether the flag is there, and true.
bool isSet(const OptionValues &values, std::string_view name);

/// The value, or `otherwise` if there is none of that name and type.
template <typename T> T valueOr(const OptionValues &values, std::string_view name, T otherwise) {
  const auto found = values.find(name);
  const T *const value = found == values.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? *value : otherwise;
}

/// "true", "3", "0.5", "gelu".
std::string textOf(const OptionValue &value);

/// An option as commands see it.
struct OptionInfo {
  enum class Kind : std::uint8_t { Flag, Whole, Float, Choice, Text };
  std::string name; ///< in OptionValues
  Kind kind = Kind::Whole;
  std::string text;                         ///< what it is
  std::vector<std::string> choices = {};    ///< of a Choice
  std::optional<OptionValue> standard = {}; ///< the default; none: a call without it has no value
  std::optional<OptionValue> tried = {};    ///< for a sample that checks the kernel
  std::string pair = {};                    ///< options of one pair stand next to each other
  std::vector<std::string> candidates = {}; ///< what a tuner tries: it changes the speed and never the result

  /// What commands call it: --window L,R of a pair, with - for _.
  const std::string &word() const { return pair.empty() ? name : pair; }
  /// The value that a text is.  Nothing: it is none of this option.
  std::optional<OptionValue> parse(std::string_view text) const;
  /// Whether the value has the option's type.  A whole number is a float too.
  bool takes(const OptionValue &value) const;
};

/// The places of names in a list, found by halves.  Names outlive it.
class NamePlaces {
public:
  static constexpr std::size_t none = ~std::size_t(0);
  /// The next place's name.
  void add(std::string_view name);
  std::size_t of(std::string_view name) const;

private:
  struct Row {
    std::string_view name;
    std::size_t place;
  };
  std::vector<Row> rows; ///< shorter names first
};

// What a value is for a field of an arguments struct.  Failures name the operation, the option and the value.
Result<bool> flagOf(std::string_view operation, std::string_view name, const OptionValue &value);
Result<std::int64_t> wholeOf(std::string_view operation, std::string_view name, const OptionValue &value,
                             std::int64_t least, std::int64_t most);
/// A value that f32 does not hold, as it was written, is refused.
Result<float> floatOf(std::string_view operation, std::string_view name, const OptionValue &value);
Result<std::string> writtenOf(std::string_view operation, std::string_view name, const OptionValue &value);
/// The place of the word among `words`.
Result<std::size_t> choiceOf(std::string_view operation, std::string_view name, const OptionValue &value,
                             std::span<const std::string_view> words);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_OPTIONVALUES_H
