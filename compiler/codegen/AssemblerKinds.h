//===- AssemblerKinds.h - How each assembler is found ---------------------===//
//
// Private to the library: one function an assembler, named in the rows of Assembler.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_ASSEMBLERKINDS_H
#define KILN_CODEGEN_ASSEMBLERKINDS_H

#include "compiler/codegen/Assembler.h"

namespace kiln {

Result<std::shared_ptr<const Assembler>> findNvJitLink(const AssemblerSearch &search);
Result<std::shared_ptr<const Assembler>> findPtxas(const AssemblerSearch &search);

/// "sm_" digits and at most one letter: nothing else may reach an assembler's command line.
Status checkAssemblyArch(std::string_view arch);

/// Of PTX that the assembler `id` is too old for.
Status olderThan(const std::string &id, std::string_view arch);

/// Resources from the log, completed by the cubin where the log does not name a kernel; sorted by name.
ResourceReport makeReport(std::string_view log, std::span<const std::byte> cubin);

} // namespace kiln

#endif // KILN_CODEGEN_ASSEMBLERKINDS_H
