//===- CallOptions.h - The options of a call's arguments, listed once --------===//
//
// What a call says besides its tensors: flags, numbers and choices of an arguments struct, each with its name on the
// command line.  The struct lists them, with the fields that they are:
//
//   template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
//     v(CallOption{"causal", "a query sees no key after its own"}, a.causal);
//     v(CallOption{"scale", "of the scores; default 1 / sqrt(D)"}, a.scale);
//   }
//
// An option's type is its field's: bool is a flag, an enumeration (or a word among `choices`) a choice, an integer a
// whole number, float a float, std::string a text; an optional field has no value if the call gives none.  The default
// is the struct's initialiser.
//
// From the list come the parameters of commands, their types and texts, what a call's values are in the struct, and
// samples that try an option.
//
// Invariant: reading values takes no lock and allocates nothing, but for a failure: calls of known kernels go through
// it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_CALLOPTIONS_H
#define KILN_KERNELS_SUPPORT_CALLOPTIONS_H

#include "kernels/support/Configuration.h"
#include "kernels/support/OptionValues.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace kiln::kernels {

struct CallOption {
  const char *name; ///< in OptionValues, and on the command line with - for _
  const char *text;
  std::optional<OptionValue> tried = {}; ///< a value for a sample that checks the kernel
  const char *pair = nullptr;            ///< options with commas between are one parameter of this name: --window L,R
  std::span<const std::string_view> choices = {}; ///< of a field that is a word
  /// What the operation takes, where its check reads it from here; tuned ones are a tuner's to choose.
  Values values = anyValue;
};

namespace detail {

template <typename T> struct OptionField {
  using Type = T;
  static constexpr bool isOptional = false;
};
template <typename T> struct OptionField<std::optional<T>> {
  using Type = T;
  static constexpr bool isOptional = true;
};

template <typename T> constexpr OptionInfo::Kind optionKind() {
  if constexpr (std::is_same_v<T, bool>)
    return OptionInfo::Kind::Flag;
  else if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::string_view>)
    return OptionInfo::Kind::Choice;
  else if constexpr (std::is_same_v<T, std::string>)
    return OptionInfo::Kind::Text;
  else if constexpr (std::is_integral_v<T>)
    return OptionInfo::Kind::Whole;
  else {
    static_assert(std::is_same_v<T, float>,
                  "an option is a bool, an integer, a float, an enumeration, a word or a text");
    return OptionInfo::Kind::Float;
  }
}

template <typename T> std::span<const std::string_view> wordsOf(const CallOption &option) {
  if constexpr (std::is_enum_v<T>) {
    static_assert(!words<T>.empty(), "an enumeration among options needs `words`");
    return words<T>;
  } else
    return option.choices;
}

/// A field's value, as a call says it.  A word or a text that is empty is none.
template <typename T> std::optional<OptionValue> optionValue(const T &field) {
  if constexpr (OptionField<T>::isOptional)
    return field ? optionValue(*field) : std::nullopt;
  else if constexpr (std::is_same_v<T, bool>)
    return field;
  else if constexpr (std::is_enum_v<T>)
    return std::string(words<T>[static_cast<std::size_t>(field)]);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(field);
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<double>(field);
  else
    return field.empty() ? std::nullopt : std::optional<OptionValue>(std::string(field));
}

template <typename T>
Status readOption(std::string_view operation, const CallOption &option, const OptionValue &value, T &field) {
  using Type = typename OptionField<T>::Type;
  if constexpr (std::is_same_v<Type, bool>) {
    KILN_ASSIGN(field, flagOf(operation, option.name, value));
  } else if constexpr (std::is_integral_v<Type>) {
    using Limits = std::numeric_limits<Type>;
    // Values of calls have 63 bits.
    constexpr auto most =
        static_cast<std::int64_t>(std::min<std::uint64_t>(Limits::max(), std::numeric_limits<std::int64_t>::max()));
    KILN_ASSIGN(const std::int64_t whole, wholeOf(operation, option.name, value, Limits::min(), most));
    field = static_cast<Type>(whole);
  } else if constexpr (std::is_same_v<Type, float>) {
    KILN_ASSIGN(field, floatOf(operation, option.name, value));
  } else if constexpr (std::is_same_v<Type, std::string>) {
    KILN_ASSIGN(field, writtenOf(operation, option.name, value));
  } else {
    const std::span<const std::string_view> words = wordsOf<Type>(option);
    KILN_ASSIGN(const std::size_t place, choiceOf(operation, option.name, value, words));
    if constexpr (std::is_enum_v<Type>)
      field = static_cast<Type>(place);
    else
      field = words[place];
  }
  return {};
}

} // namespace detail

/// What commands see of the options that `list`, called with a visitor, lists; the values of the fields are the
/// defaults.
template <typename List> std::vector<OptionInfo> optionsListedBy(List list) {
  std::vector<OptionInfo> out;
  list([&]<typename T>(const CallOption &option, const T &field) {
    using Type = typename detail::OptionField<T>::Type;
    OptionInfo &o = out.emplace_back();
    o.name = option.name, o.kind = detail::optionKind<Type>(), o.text = option.text;
    if constexpr (detail::optionKind<Type>() == OptionInfo::Kind::Choice)
      o.choices.assign(detail::wordsOf<Type>(option).begin(), detail::wordsOf<Type>(option).end());
    o.standard = detail::optionValue(field);
    o.tried = option.tried;
    o.pair = option.pair ? option.pair : "";
    if (option.values.isTuned)
      for (const std::int64_t value : option.values.all())
        o.candidates.push_back(std::to_string(value));
  });
  return out;
}

/// What commands see of the options of these structs, in the order of the lists.
template <typename... Arguments> std::vector<OptionInfo> optionsOf() {
  return optionsListedBy([](auto &&visit) {
    const std::tuple<Arguments...> standard;
    (Arguments::options(std::get<Arguments>(standard), visit), ...);
  });
}

/// Where each option of these arguments stands in their list, which is the same for all objects; made once.
template <typename Arguments> const NamePlaces &placesOfOptions() {
  static const NamePlaces places = [] {
    NamePlaces out;
    const Arguments standard;
    Arguments::options(standard, [&](const CallOption &option, const auto &) { out.add(option.name); });
    return out;
  }();
  return places;
}

/// Writes what a call says to its arguments; what it leaves out stays.  Calls say little of a long list: values are
/// looked up in the list, not options among the values.
template <typename Arguments>
Status readOptions(std::string_view operation, const OptionValues &values, Arguments &arguments) {
  const NamePlaces &places = placesOfOptions<Arguments>();
  Status problem;
  for (auto given = values.begin(); given != values.end() && problem.ok(); ++given) {
    const std::size_t place = places.of(given->first);
    std::size_t at = 0;
    if (place != NamePlaces::none)
      Arguments::options(arguments, [&](const CallOption &option, auto &field) {
        if (at++ == place)
          problem = detail::readOption(operation, option, given->second, field);
      });
  }
  return problem;
}

/// Arguments without tensors that have what a call says.
template <typename Arguments> Result<Arguments> readOptions(std::string_view operation, const OptionValues &values) {
  Arguments out;
  KILN_TRY(readOptions(operation, values, out));
  return out;
}

/// For each option that is to be tried, values in which it is set.
template <typename Arguments> std::vector<OptionValues> optionsToTry() {
  std::vector<OptionValues> out;
  for (const OptionInfo &option : optionsOf<Arguments>())
    if (option.tried)
      out.push_back({{option.name, *option.tried}});
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_CALLOPTIONS_H
