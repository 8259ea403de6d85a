//===- CallOptions.h - The options of a call's arguments, listed once --------===//
//
// What a call says besides its tensors: flags, numbers and choices of an arguments struct, each with its name on the
// command line.  The struct lists them:
//
//   template <typename Visitor> static void options(Visitor &&v) {
//     v(CallOption{"causal", "a query sees no key after its own", 1}, &AttentionArguments::causal);
//   }
//
// From the list come the parameters of commands, with the struct's initialisers for defaults, and their values in a
// call; the family tries each option that has a value to try.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_CALLOPTIONS_H
#define KILN_KERNELS_SUPPORT_CALLOPTIONS_H

#include "kernels/support/Family.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {

struct CallOption {
  const char *name; ///< in Numbers, and on the command line with - for _
  const char *text;
  std::optional<double> tried = {}; ///< a value for a sample that checks the kernel
  const char *pair = nullptr;       ///< two options with commas between are one parameter of this name: --window L,R
};

/// A number without a fraction, within 2^53.
inline Result<std::int64_t> wholeNumberOr(std::string_view operation, const Numbers &numbers, std::string_view name,
                                          std::int64_t otherwise) {
  const double value = numberOr(numbers, name, static_cast<double>(otherwise));
  if (!(std::abs(value) <= 0x1p53) || value != std::floor(value))
    return Status::invalid(std::string(operation) + ": " + std::string(name) + " = " + format("%g", value),
                           "give a whole number");
  return static_cast<std::int64_t>(value);
}

/// The parameters of a command, in the order of the list.
template <typename Arguments> std::vector<NumberParameter> optionParameters() {
  std::vector<NumberParameter> out;
  const Arguments standard;
  Arguments::options([&](const CallOption &option, auto member) {
    using T = std::remove_cvref_t<decltype(standard.*member)>;
    if (option.pair && !out.empty() && out.back().name == option.pair) {
      out.back().keys.emplace_back(option.name);
      return;
    }
    NumberParameter &p = out.emplace_back();
    p.name = option.pair ? option.pair : option.name;
    p.description = option.text;
    if (option.pair)
      p.keys = {option.name};
    if constexpr (std::is_same_v<T, bool>)
      p.flag = true;
    else if constexpr (std::is_enum_v<T>)
      p.choices.assign(words<T>.begin(), words<T>.end());
    else if constexpr (std::is_arithmetic_v<T>)
      p.value = static_cast<double>(standard.*member);
  });
  return out;
}

/// Writes what a call says to its arguments; what it leaves out stays.
template <typename Arguments>
Status readOptions(std::string_view operation, const Numbers &numbers, Arguments &arguments) {
  Status problem;
  Arguments::options([&](const CallOption &option, auto member) {
    auto &field = arguments.*member;
    if (!problem.ok() || !numbers.count(option.name))
      return;
    const auto number = [&]<typename T>(T otherwise) {
      if constexpr (std::is_integral_v<T>)
        return wholeNumberOr(operation, numbers, option.name, otherwise);
      else
        return floatOr(operation, numbers, option.name, otherwise);
    };
    const auto assign = [&](auto value) {
      if (value.ok())
        field = *value;
      else
        problem = value.takeStatus();
    };
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<T, bool>)
      field = numberOr(numbers, option.name, 0) != 0;
    else if constexpr (std::is_enum_v<T>)
      field = static_cast<T>(numberOr(numbers, option.name, 0));
    else if constexpr (std::is_arithmetic_v<T>)
      assign(number(field));
    else // optional
      assign(number(typename T::value_type()));
  });
  return problem;
}

/// For each option that is to be tried, numbers in which it is set.
template <typename Arguments> std::vector<Numbers> optionsToTry() {
  std::vector<Numbers> out;
  Arguments::options([&](const CallOption &option, auto) {
    if (option.tried)
      out.push_back({{option.name, *option.tried}});
  });
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_CALLOPTIONS_H
