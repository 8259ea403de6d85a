//===- Metadata.h - What the compiler says about a kernel -----------------===//
//
// Parsed from the JSON of CompilerTable.h and checked against the kernel's source: a field that is missing, of the
// wrong type or unknown among the guards makes the kernel unusable, never wrong.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_METADATA_H
#define KILN_RUNTIME_JIT_METADATA_H

#include "runtime/jit/HiddenParameters.h"

namespace kiln {

struct KernelMetadata {
  std::string entry;  ///< in the PTX
  std::string target; ///< "sm_80"
  unsigned warps = 0; ///< of a block, those that only copy among them
  std::uint32_t sharedBytes = 0;
  Dim3 cluster{0, 0, 0};                    ///< zeros: none
  std::shared_ptr<HiddenParameters> hidden; ///< null: none
  bool mapsByPasses = false;                ///< there is code without some of them: that of {"tensor_maps": false}
  bool reproducible = true;
  std::vector<Guard> guards;
  std::vector<FirstCallReport::Stage> stages; ///< of the compile that made it
};

/// How hard the assembler is to optimise the kernel, 0 to 3; 3 where the metadata does not say.
unsigned assemblerLevelOf(std::string_view json);

Result<KernelMetadata> parseMetadata(std::string_view json, const KernelSource &source, const ArgumentLayout &layout);

/// A compile request's `specialization`.
std::string specializationText(std::span<const ArgumentFact> facts, bool withoutMaps = false);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_METADATA_H
