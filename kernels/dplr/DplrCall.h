//===- DplrCall.h - A family's call as an operation's arguments -----------------===//
#ifndef KILN_KERNELS_DPLR_DPLRCALL_H
#define KILN_KERNELS_DPLR_DPLRCALL_H

#include "kernels/dplr/DplrFamilies.h"
#include "support/Text.h"

#include <cmath>

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
  for (const auto &[name, field] : {std::pair("scale", &to.scale), {"lower_bound", &to.lowerBound}})
    if (call.numbers.count(name)) {
      KILN_ASSIGN(*field, floatOr(names.operation, call.numbers, name, 1));
    }
  to.safeGate = numberOr(call.numbers, "safe_gate", 0) != 0;
  const double chunk = numberOr(call.numbers, "chunk_size", 0), warps = numberOr(call.numbers, "warps", 0),
               segment = numberOr(call.numbers, "segment_size", 0);
  for (const auto &[name, value] : {std::pair("chunk_size", chunk), {"warps", warps}, {"segment_size", segment}})
    if (value != std::floor(value) || std::abs(value) > 1 << 20)
      return Status::invalid(format("%s: %s = %g", std::string(names.operation).c_str(), name, value),
                             "give a whole number, 0 to have it chosen");
  to.chunkSize = static_cast<std::int64_t>(chunk), to.warps = static_cast<int>(warps);
  to.segmentSize = static_cast<std::int64_t>(segment);
  return {};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRCALL_H
