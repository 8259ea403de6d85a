//===- BesideLoops.h - Values computed again outside of a loop's main path --===//
//
// A kernel's addresses and coordinates follow from the thread's number, the block's and the arguments.  LLVM computes
// each once, before the loops.  So a value that only the code after a loop of matrix products needs (where the results
// are stored), or only rare rounds (a mask's coordinates, the edges of a tensor), takes registers in every round.
// Computing it again where it is used takes a few instructions.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_BESIDELOOPS_H
#define KILN_CODEGEN_BESIDELOOPS_H

namespace llvm {
class Module;
} // namespace llvm

namespace kiln {

/// Outermost loops with instructions of the matrix unit have a main path: what every round does, products, and copies
/// of whole tiles.  Values computed before the loop that its main path does not use are computed again in the places
/// that do use them: in each conditional part of the loop, and after it.  That is done if few cheap operations compute
/// them from special registers, arguments, constants and what is alive through the loop anyway; or from loaded numbers,
/// if these take fewer registers than what is computed from them.  In the loop, values that are the same for every
/// thread stay: they have registers of their own.  The special registers are read in a way that no later pass merges
/// with the first reading.
void recomputeBesideLoops(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_BESIDELOOPS_H
