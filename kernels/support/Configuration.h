//===- Configuration.h - A configuration lists its fields once ---------------===//
//
// What a kernel is recorded for: tiles, warps, which options are in the code.  A configuration is a struct of plain
// members whose initialisers are the defaults, with one list of them:
//
//   struct CopyConfig {
//     int block = 0;
//     bool strided = false;
//     bool operator==(const CopyConfig &) const = default;
//     template <typename Visitor> static constexpr void fields(Visitor &&v) {
//       v("block", &CopyConfig::block, between(0, 1 << 20), "elements of a program; 0: 4096 bytes of them");
//       v("strided", &CopyConfig::strided, anyValue, "any strides");
//     }
//   };
//
// From the list come the text in the kernel's key, the hash of the table of recorded kernels, NAME=VALUE of commands,
// what `kiln explain --json` says of settings, and the values that a tuner tries.
//
// Invariant: a member that is missing from the list, or is there twice, does not compile.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_CONFIGURATION_H
#define KILN_KERNELS_SUPPORT_CONFIGURATION_H

#include "compiler/language/Kernel.h"
#include "support/DType.h"
#include "support/Status.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kiln::kernels {

/// NAME=VALUE of a command: `kiln compile softmax --set block=2048`.
using Settings = std::map<std::string, std::string, std::less<>>;

/// What an integer of a configuration may be.
struct Values {
  std::int64_t least = 0, most = 0;
  std::int64_t step = 1;   ///< multiples of it; 0: powers of two
  bool orZero = false;     ///< 0 besides: the kernel chooses
  bool isTuned = false;    ///< it changes the speed and never the result: a tuner may choose
  bool isOfLaunch = false; ///< the recorded kernel's own options have it, and the key from there
  constexpr Values tuned() const { return with(&Values::isTuned); }
  constexpr Values orChosen() const { return with(&Values::orZero); }
  constexpr Values ofLaunch() const { return with(&Values::isOfLaunch); }

  constexpr bool take(std::int64_t value) const {
    if (value == 0 && orZero)
      return true;
    return value >= least && value <= most && (step ? value % step == 0 : (value & (value - 1)) == 0);
  }
  /// "a power of two from 16 to 256".
  std::string text() const;
  /// All of them, the least first.
  std::vector<std::int64_t> all() const;

private:
  constexpr Values with(bool Values::*mark) const {
    Values out = *this;
    out.*mark = true;
    return out;
  }
};
constexpr Values between(std::int64_t least, std::int64_t most) {
  return {.least = least, .most = most};
}
constexpr Values multiplesOf(std::int64_t step, std::int64_t most) {
  return {.least = step, .most = most, .step = step};
}
constexpr Values powersOfTwo(std::int64_t least, std::int64_t most) {
  return {.least = least, .most = most, .step = 0};
}
/// Of flags, enumerations and element types; and of members that are compared but have no text (a function).
inline constexpr Values anyValue;

/// The names of an enumeration's values, in their order: `template <> inline constexpr std::array words<Sums> = ..`.
template <typename E> inline constexpr std::array<std::string_view, 0> words = {};

/// A field as commands and tuners see it.
struct FieldInfo {
  enum class Kind : std::uint8_t { Integer, Flag, Choice, Text, Opaque }; ///< Opaque: compared, but without a text
  std::string name;
  Kind kind = Kind::Integer;
  Values values;                    ///< of an Integer
  std::vector<std::string> choices; ///< of a Choice
  std::string standard;             ///< the default, as text
  std::string text;                 ///< what it is
  /// "true or false", "a power of two from 16 to 256", "dplr, delta, linear".
  std::string valuesText() const;
  /// What a tuner tries, as NAME=VALUE takes it; of a field that is not tuned nothing.
  std::vector<std::string> candidates() const;
};

namespace detail {

// Members are counted as initialisers that the aggregate takes.
struct AnyMember {
  template <typename T> constexpr operator T() const;
};
template <typename C, typename... Members> constexpr std::size_t memberCount() {
  if constexpr (requires { C{Members()..., AnyMember()}; })
    return memberCount<C, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

/// Members that the list has, each counted once.
template <typename C> constexpr std::size_t listedCount() {
  std::size_t listed = 0, repeated = 0;
  C::fields([&](std::string_view, auto member, const Values &, std::string_view) {
    ++listed;
    std::size_t times = 0;
    C::fields([&](std::string_view, auto other, const Values &, std::string_view) {
      if constexpr (std::is_same_v<decltype(member), decltype(other)>)
        times += member == other;
    });
    repeated += times > 1;
  });
  return listed - repeated;
}

struct NoVisitor {
  template <typename... T> constexpr void operator()(T &&...) const {}
};

template <typename T> constexpr FieldInfo::Kind kindOf() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldInfo::Kind::Flag;
  else if constexpr (std::is_integral_v<T>)
    return FieldInfo::Kind::Integer;
  else if constexpr (std::is_enum_v<T>)
    return FieldInfo::Kind::Choice;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldInfo::Kind::Text;
  else
    return FieldInfo::Kind::Opaque;
}

/// A value as text; of an Opaque nothing.
template <typename T> std::string fieldText(const T &value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_same_v<T, DType>)
    return std::string(elementName(value));
  else if constexpr (std::is_enum_v<T>) {
    static_assert(!words<T>.empty(), "an enumeration in a configuration needs `words`");
    return std::string(words<T>[static_cast<std::size_t>(value)]);
  } else if constexpr (std::is_same_v<T, std::string>)
    return value;
  else
    return {};
}

Status readField(const FieldInfo &field, const std::string &text, std::int64_t &value);
Status unknownSetting(const std::string &name, const std::vector<FieldInfo> &known);

} // namespace detail

/// A struct that lists all of its members.
template <typename C>
concept Configuration = std::is_aggregate_v<C> && requires { C::fields(detail::NoVisitor()); };

template <Configuration C> constexpr void checkFields() {
  static_assert(detail::listedCount<C>() == detail::memberCount<C>(),
                "fields() of a configuration must list every member once");
}

namespace detail {
template <Configuration C> void addFields(std::vector<FieldInfo> &out, const C &standard) {
  checkFields<C>();
  C::fields([&](std::string_view name, auto member, const Values &values, std::string_view text) {
    using T = std::remove_cvref_t<decltype(standard.*member)>;
    if constexpr (kindOf<T>() != FieldInfo::Kind::Opaque) {
      FieldInfo &f = out.emplace_back();
      f.name = name, f.kind = kindOf<T>(), f.values = values, f.text = text;
      f.standard = fieldText(standard.*member);
      if constexpr (std::is_same_v<T, DType>)
        for (unsigned i = 0; i <= static_cast<unsigned>(DType::F64); ++i)
          f.choices.emplace_back(elementName(static_cast<DType>(i)));
      else if constexpr (std::is_enum_v<T>)
        f.choices.assign(words<T>.begin(), words<T>.end());
    }
  });
}
} // namespace detail

/// The fields that have a text, of one configuration after the other; these values are the defaults.
template <Configuration... C> std::vector<FieldInfo> fieldsOf(const C &...standard) {
  std::vector<FieldInfo> out;
  (detail::addFields(out, standard), ...);
  return out;
}
template <Configuration C> std::vector<FieldInfo> fieldsOf() {
  return fieldsOf(C());
}

/// The configuration as part of a kernel's key.
template <Configuration C> std::vector<language::ConfigEntry> entriesOf(const C &c) {
  checkFields<C>();
  std::vector<language::ConfigEntry> out;
  C::fields([&](std::string_view name, auto member, const Values &values, std::string_view) {
    using T = std::remove_cvref_t<decltype(c.*member)>;
    if (!values.isOfLaunch && detail::kindOf<T>() != FieldInfo::Kind::Opaque)
      out.push_back({std::string(name), detail::fieldText(c.*member)});
  });
  return out;
}

/// Whether a field without a text has another value than its default: the text does not say what the code is then.
template <Configuration C> bool hasOpaqueFields(const C &c) {
  bool out = false;
  C::fields([&](std::string_view, auto member, const Values &, std::string_view) {
    using T = std::remove_cvref_t<decltype(c.*member)>;
    if constexpr (detail::kindOf<T>() == FieldInfo::Kind::Opaque) {
      static const C standard;
      out |= !(c.*member == standard.*member);
    }
  });
  return out;
}

/// Equal ones have equal hashes.
template <typename T> std::size_t hashOf(const T &value) {
  if constexpr (Configuration<T>) {
    checkFields<T>();
    std::size_t hash = 0;
    T::fields([&](std::string_view, auto member, const Values &, std::string_view) {
      hash = (hash ^ hashOf(value.*member)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    });
    return hash;
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
    return static_cast<std::size_t>(value) + 1;
  else
    return std::hash<T>()(value);
}

/// Writes each setting to the configuration that has a field of its name.  The failure names the setting, what it may
/// be, and what settings exist.
template <Configuration... C> Status applySettings(const Settings &settings, C &...configurations) {
  const std::vector<FieldInfo> all = fieldsOf(std::as_const(configurations)...);
  for (const auto &[name, text] : settings) {
    const FieldInfo *field = nullptr;
    for (const FieldInfo &f : all)
      if (f.name == name)
        field = &f;
    if (!field)
      return detail::unknownSetting(name, all);
    std::int64_t value = 0;
    KILN_TRY(detail::readField(*field, text, value));
    const auto write = [&](auto &c) {
      std::remove_cvref_t<decltype(c)>::fields(
          [&](std::string_view other, auto member, const Values &, std::string_view) {
            using T = std::remove_cvref_t<decltype(c.*member)>;
            if constexpr (detail::kindOf<T>() != FieldInfo::Kind::Opaque)
              if (other == field->name) {
                if constexpr (detail::kindOf<T>() == FieldInfo::Kind::Text)
                  c.*member = text;
                else
                  c.*member = static_cast<T>(value);
              }
          });
    };
    (write(configurations), ...);
  }
  return {};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_CONFIGURATION_H
