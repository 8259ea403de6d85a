//===- CheapValues.h - What costs less to compute again than to keep --------===//
//
// LLVM's O3 computes everything once: it hoists invariants out of loops and merges equal values of distant places.  So
// in addition to a base address, which is alive anyway, base + 128, base + 256, .. and a tile's coordinates for each
// register of a thread stay alive through loops that use them rarely or not at all.  On a GPU each takes a register of
// every thread, and kernels with matrix products have none to spare.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_CHEAPVALUES_H
#define KILN_CODEGEN_CHEAPVALUES_H

namespace llvm {
class Module;
} // namespace llvm

namespace kiln {

/// In functions with instructions of the matrix unit: values that one operation makes of another value and a constant
/// are computed in each block that uses them, if the other value has several such.
void computeCheapValuesWhereUsed(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_CHEAPVALUES_H
