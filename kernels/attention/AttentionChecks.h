//===- AttentionChecks.h - What both directions of attention refuse -----------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONCHECKS_H
#define KILN_KERNELS_ATTENTION_ATTENTIONCHECKS_H

#include "kernels/attention/AttentionOperation.h"

namespace kiln::kernels {

/// Refuses wrong tensors and options, by name.  `operation` is whose call it is; `isWritten`: it writes o and lse,
/// which are inputs otherwise.
Status checkAttention(const Device &device, std::string_view operation, const AttentionArguments &arguments,
                      bool isWritten);

/// Refuses an extent of a bias that is neither 1 nor `extent` (or, of packed tensors, more), which is that of `of`.
Status checkBiasExtent(std::string_view operation, const Tensor &bias, unsigned dim, const char *of,
                       std::int64_t extent, bool orMore = false);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONCHECKS_H
