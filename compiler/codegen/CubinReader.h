//===- CubinReader.h - The resources that a cubin itself states -----------===//
//
// A cubin is an ELF file: registers, stack and static shared memory of each kernel stand in its sections.  Spill bytes
// do not.  Reads any bytes safely.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_CUBINREADER_H
#define KILN_CODEGEN_CUBINREADER_H

#include "compiler/codegen/Assembler.h"

namespace kiln {

/// Kernels and device functions that the cubin keeps, in section order; a failure if it is no 64-bit ELF file.
Result<std::vector<KernelResources>> resourcesFromCubin(std::span<const std::byte> cubin);

} // namespace kiln

#endif // KILN_CODEGEN_CUBINREADER_H
