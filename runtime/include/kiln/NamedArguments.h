//===- NamedArguments.h - A kernel's arguments, by name -------------------===//
//
//   kernel->launch({blocks}, stream, named<"x">(x), named<"out">(out), named<"scale">(0.5f));
//
// Each argument of the kernel is given once, in any order; a tensor (`TensorArg` in the front end) whole: its address,
// extents and strides go to where the kernel has them.  A name that the kernel lacks, one that is missing or given
// twice, a tensor of another rank or element type: each is refused by name before anything is launched.  An empty
// Tensor (address 0) under a name that the kernel lacks is nothing given: one call site serves kernels with and without
// it.
//
// Where the values go is worked out at the first launch of a call site and remembered: a later launch takes no lock,
// allocates nothing and compares no names.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_NAMEDARGUMENTS_H
#define KILN_NAMEDARGUMENTS_H

#include "kiln/LaunchArguments.h"
#include "kiln/Tensor.h"

#include <array>
#include <span>
#include <string_view>

namespace kiln {

/// A string as a template argument.
template <std::size_t N> struct ArgumentName {
  consteval ArgumentName(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
  char text[N] = {};
};

/// A value and its name; the value must live until the launch returns.
template <ArgumentName name, typename T> struct NamedArgument {
  const T &value;
};
template <ArgumentName name, typename T> NamedArgument<name, T> named(const T &value) {
  return {value};
}

/// One value of a launch: a tensor, or the bits of a scalar or an address.
struct GivenArgument {
  ArgumentType type = ArgumentType::Pointer;
  const Tensor *tensor = nullptr;
  std::uint64_t bits = 0;
};

/// The values of a launch.  `names` is the same array, at the same address, at each launch of a call site, and so are
/// the types: that address stands for both.
struct GivenArguments {
  std::span<const std::string_view> names;
  const GivenArgument *values = nullptr;
};

namespace detail {
template <typename T> GivenArgument given(const T &value) {
  GivenArgument out{ArgumentTraits<T>::type, nullptr, 0};
  if constexpr (std::convertible_to<const T &, const Tensor &>) {
    out.tensor = &static_cast<const Tensor &>(value);
  } else {
    const auto bits = ArgumentTraits<T>::bits(value);
    std::memcpy(&out.bits, &bits, sizeof bits);
  }
  return out;
}
/// The names of a call site, of these types.
template <ArgumentName... names> struct NamesOf {
  template <typename... Ts> static constexpr std::array<std::string_view, sizeof...(names)> list{names.view()...};
};
} // namespace detail

} // namespace kiln

#endif // KILN_NAMEDARGUMENTS_H
