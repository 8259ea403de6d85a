//===- RegisterLimit.h - Whether an assembler ran out of registers -------------===//
//
// Why that is asked: where no register is left, NVIDIA's assembler computes a value again from others instead of
// keeping it.  Making a part of a program (nvJitLink, the driver's linker, `ptxas -c`; CUDA 13.0 and 13.5 alike) it
// takes one of these from a register that holds something else by then: of a mask's row, 16 * warp + 8 + lane / 4, the
// lane's share came from a register that a spilled column had been loaded into.  Nothing in the PTX tells it
// beforehand, and the emulator, which runs PTX, cannot see it.  Making a whole program (ptxas, the driver) it was right
// of every such kernel.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_REGISTERLIMIT_H
#define KILN_CODEGEN_REGISTERLIMIT_H

#include "compiler/codegen/Assembler.h"

namespace kiln {

/// The most registers that a thread of a kernel can have, by what the PTX says of its blocks: the least of all kernels.
std::uint32_t registerLimit(std::string_view ptx);

/// Something was spilled, or a kernel took some of the last eight registers there are: values may have been computed
/// again.  Also if the report does not say.
bool ranOutOfRegisters(std::string_view ptx, const ResourceReport &made);

} // namespace kiln

#endif // KILN_CODEGEN_REGISTERLIMIT_H
