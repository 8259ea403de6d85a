//===- DplrReference.h - The DPLR delta rule in float64, token by token --------===//
//
// The definition of the specification "DPLR delta rule and RWKV7", S1, and its exact reverse, S3.1.  No chunks: shares
// nothing with the kernels.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRREFERENCE_H
#define KILN_KERNELS_DPLR_DPLRREFERENCE_H

#include <cstddef>
#include <span>
#include <vector>

namespace kiln::kernels {

/// One head of one sequence: q, k, a, b, g [T, K], v [T, V], row by row.
struct DplrHead {
  std::size_t tokens = 0, dim = 0, dimV = 0;
  double scale = 1;
  std::vector<double> q, k, v, a, b, g;
  std::vector<double> first; ///< [K, V]; empty: zeros
};

struct DplrHeadResult {
  std::vector<double> o, last; ///< [T, V], [K, V]
};
DplrHeadResult dplrForward(const DplrHead &head);

struct DplrHeadGradients {
  std::vector<double> q, k, v, a, b, g, first;
};
/// `dO` [T, V]; `dLast` [K, V], empty: zeros.
DplrHeadGradients dplrBackward(const DplrHead &head, std::span<const double> dO, std::span<const double> dLast);

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRREFERENCE_H
