//===- PtxSummary.h - What the driver does not tell about PTX -------------===//
//
// The driver loads PTX but names no parameter and reports "no kernel image" for a module of another architecture.  This
// reads the targets and the signatures of the entries with Kiln's own PTX parser.  A module that the parser does not
// understand has an empty summary: the driver decides about it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_PTXSUMMARY_H
#define KILN_RUNTIME_DEVICE_CUDA_PTXSUMMARY_H

#include "kiln/Device.h"

namespace kiln::cuda {

struct PtxSummary {
  std::string target; ///< "sm_90a"; empty if unknown
  unsigned versionMajor = 0, versionMinor = 0;
  std::vector<KernelInfo> entries; ///< names, parameters and required blocks; the rest comes from the driver

  const KernelInfo *entry(std::string_view name) const {
    for (const KernelInfo &e : entries)
      if (e.name == name)
        return &e;
    return nullptr;
  }
};

PtxSummary summarisePtx(std::string_view text, std::string_view fileName);

/// Whether PTX for `target` runs on a GPU of compute capability `sm` (90 for 9.0): plain targets on that one and newer
/// ones, suffix 'a' on that one alone, suffix 'f' on newer ones of the same major number.  A failure names both.
Status checkPtxTarget(std::string_view target, unsigned sm, std::string_view fileName);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_PTXSUMMARY_H
