//===- DplrCall.h - A family's call as an operation's arguments -----------------===//
#ifndef KILN_KERNELS_DPLR_DPLRCALL_H
#define KILN_KERNELS_DPLR_DPLRCALL_H

#include "kernels/dplr/DplrCallable.h"
#include "kernels/support/CallOptions.h"

namespace kiln::kernels {

inline std::optional<Tensor> optionalTensor(const Call &call, std::string_view name) {
  const auto found = call.tensors.find(name);
  return found == call.tensors.end() ? std::nullopt : std::optional(found->second);
}

/// The fields that forward and backward share: the inputs, and how they are to be taken.
template <typename Arguments> Status fillInputs(const Call &call, const DplrNames &names, Arguments &to) {
  const auto at = [&](std::string_view name) { return call.tensors.find(name)->second; };
  to.k = at("k"), to.v = at("v");
  if constexpr (requires { to.r; }) // RWKV7's own names
    to.r = at("r"), to.w = at("w");
  else
    to.q = at(names.q), to.g = optionalTensor(call, names.g);
  if constexpr (requires { to.a; })
    to.a = at("a"), to.b = at("b");
  if constexpr (requires { to.beta; })
    to.beta = at("beta");
  to.initialState = optionalTensor(call, "initial_state"), to.cuSeqlens = optionalTensor(call, "cu_seqlens");
  return readOptions(names.operation, call.options, to);
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRCALL_H
