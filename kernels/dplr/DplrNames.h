//===- DplrNames.h - What a family of the DPLR delta rule calls itself ----------===//
#ifndef KILN_KERNELS_DPLR_DPLRNAMES_H
#define KILN_KERNELS_DPLR_DPLRNAMES_H

#include "kernels/dplr/Rule.h"

#include <string_view>

namespace kiln::kernels {

/// What an operation calls itself, q and g, and what it is.
struct DplrNames {
  std::string_view operation, q, g, summary; ///< literals: they end with a zero
  ChunkRule rule = ChunkRule::Dplr;
  GateKind gate = GateKind::Channel;
  bool isRwkv() const { return q == "r"; }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRNAMES_H
