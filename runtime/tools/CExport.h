//===- CExport.h - A compiled kernel as C source ----------------------------===//
//
// NAME.h and NAME.c, which need a C11 compiler and the CUDA driver library, nothing of Kiln and no CUDA header: code
// for one or several targets as arrays, and functions that load what suits the current context's GPU, check the facts
// that this code relies on (the metadata's guards), and launch.  What is generated holds no state and allocates
// nothing.
//
// Kernels whose launcher makes tensor maps are refused: C has no launcher.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_CEXPORT_H
#define KILN_RUNTIME_TOOLS_CEXPORT_H

#include "compiler/target/Target.h"
#include "runtime/tools/Report.h"

#include <span>

namespace kiln::tools {

/// One target's code.
struct CImage {
  const Target *target = nullptr;
  Json metadata; ///< the compiler's
  std::vector<std::byte> code;
  bool assembled = false; ///< else PTX, which the driver assembles
};

struct CFiles {
  std::string header, source;
};

/// `path`: without a suffix; its last part names the functions.  Refuses what is no C identifier.
Result<std::string> exportName(const std::string &path);

/// `images`: of one kernel, for different targets.  `configuration`: for the header's comment.
Result<CFiles> exportC(const std::string &name, const std::string &configuration, std::vector<CImage> images);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_CEXPORT_H
