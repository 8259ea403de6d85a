//===- CallWords.h - A call as a line of a list ---------------------------------===//
//
// "attention --dtype bf16 --with q=2x8192x16x128 --with causal": the words after `kiln bench`, which `kiln warm` and
// `kiln tune --calls` read again.  They say shapes, not strides and not values.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_CALLWORDS_H
#define KILN_KERNELS_SUPPORT_CALLWORDS_H

#include "kernels/support/Callable.h"
#include "kernels/support/CallOptions.h"

namespace kiln::kernels {

/// Nothing: what no words say decides what runs, such as a function, a table (i32) whose values the family does not
/// make up by itself, or a flag that is off where it is on by default.
std::optional<std::string> callWords(const Callable &callable, const Call &call);

/// A tensor of an arguments struct under its parameter's name; none may be given.
struct CallTensor {
  CallTensor(const char *name, const Tensor &tensor) : name(name), tensor(&tensor) {}
  CallTensor(const char *name, const std::optional<Tensor> &tensor) : name(name), tensor(tensor ? &*tensor : nullptr) {}
  const char *name;
  const Tensor *tensor;
};
/// Of a call by its struct.  Nothing also if there is no family of that name, or it has no such parameter.
std::optional<std::string> callWords(std::string_view family, std::span<const CallTensor> tensors,
                                     OptionValues options);

/// What the struct lists.
template <typename Arguments> OptionValues optionValuesOf(const Arguments &arguments) {
  OptionValues out;
  Arguments::options(arguments, [&](const CallOption &option, const auto &field) {
    if (std::optional<OptionValue> value = detail::optionValue(field))
      out[option.name] = std::move(*value);
  });
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_CALLWORDS_H
