//===- BesideLoops.h - What is computed again beside a loop, not kept through it ---===//
//
// A kernel's addresses and coordinates follow from the thread's number, the block's and the arguments.  LLVM computes
// each once, in front of the loops, so what only the code after a loop of matrix products needs (where the results are
// stored), or only rare rounds (a mask's coordinates, the edges of a tensor), takes registers in every round.
// Computing it again takes a few instructions there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_BESIDELOOPS_H
#define KILN_CODEGEN_BESIDELOOPS_H

namespace llvm {
class Module;
} // namespace llvm

namespace kiln {

/// Outermost loops with instructions of the matrix unit have a main path: what every round does, products, and copies
/// of whole tiles.  Values from in front of the loop that its main path does not use are computed again in the other
/// places that do: in each conditional part of the loop, and after it; if they follow by few cheap operations from
/// special registers, arguments, constants and what lives through the loop anyway; or from numbers that were read from
/// memory, if these take fewer registers than what follows from them.  In the loop, values that are the same for every
/// thread stay: they have registers of their own.  The special registers are read in a way that no
/// later pass takes for the first reading.
void recomputeBesideLoops(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_BESIDELOOPS_H
