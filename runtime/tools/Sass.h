//===- Sass.h - A cubin's instructions as text ------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_SASS_H
#define KILN_RUNTIME_TOOLS_SASS_H

#include "support/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace kiln::tools {

/// What nvdisasm prints of the cubin, else cuobjdump: from PATH, else from the usual folders of CUDA.  Without either
/// a failure says what was tried and where they come from.
Result<std::string> disassemble(std::span<const std::byte> cubin);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_SASS_H
