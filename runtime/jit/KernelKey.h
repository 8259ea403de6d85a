//===- KernelKey.h - The second level's key: everything that decides code -===//
//
// Short fields first, the program last, so that a miss is explained in a line.  Knobs that change code are fields of
// their own, taken from the knob table.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_KERNELKEY_H
#define KILN_RUNTIME_JIT_KERNELKEY_H

#include "kiln/KernelSource.h"
#include "runtime/cache/KeyText.h"
#include "runtime/jit/Overrides.h"

#include <string>
#include <string_view>

namespace kiln {

struct KeyParts {
  const KernelSource *source = nullptr;
  std::string classes;      ///< specializationText
  std::string codeTarget;   ///< "sm_80"
  std::string assemblyArch; ///< "sm_90a"; "none" where PTX is run as it is
  std::string assembler;    ///< name, version, build; "driver CUDA 13.0"; "none"
  std::string compiler;     ///< content hash
  std::string plugins;      ///< content hashes, in order
  bool lineInfo = false;
  std::string passes = {};  ///< KILN_PASSES
  std::string stress = {};  ///< KILN_STRESS
  Overrides overrides = {}; ///< KILN_OVERRIDE_DIR
};

cache::KeyText kernelKey(const KeyParts &parts);

/// The text of an MLIR module without its locations, `loc(..)` and `#loc = ..`: without line information they do not
/// change code.  Strings and comments stay as they are.  A text that is not well formed is given back unchanged.
std::string withoutLocations(std::string_view program);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_KERNELKEY_H
