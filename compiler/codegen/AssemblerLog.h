//===- AssemblerLog.h - What nvJitLink and ptxas print --------------------===//
//
// Both print ptxas's messages: errors and warnings with a PTX line, and with -v one paragraph of resources a kernel.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_ASSEMBLERLOG_H
#define KILN_CODEGEN_ASSEMBLERLOG_H

#include "compiler/codegen/Assembler.h"

namespace kiln {

/// Kernels in the order of the log.
std::vector<KernelResources> resourcesFromLog(std::string_view log);

/// "file.ptx:6: Unknown symbol 'q'" for each error, joined by line ends; the whole log where no line is an error.
std::string errorsFromLog(std::string_view log, std::string_view fileName);

/// Whether it failed because the PTX is of a version, or for an arch, that came after the assembler.
bool isOfLaterVersion(std::string_view log);

/// Warnings and performance notes ("(C7514) Potential Performance Loss ..."), in the same form.
std::vector<std::string> warningsFromLog(std::string_view log, std::string_view fileName);

} // namespace kiln

#endif // KILN_CODEGEN_ASSEMBLERLOG_H
