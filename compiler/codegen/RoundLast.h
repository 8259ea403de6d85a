//===- RoundLast.h - What is chosen is rounded, not what is rounded chosen ----===//
//
// LLVM moves the rounding of select(c, x, 0) to 16 bits into the choice.  Two neighbours are then rounded by an
// instruction each, chosen as halves, and put together into a word by a third; rounded after the choice, one
// instruction takes both and makes the word.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_ROUNDLAST_H
#define KILN_CODEGEN_ROUNDLAST_H

namespace llvm {
class Module;
} // namespace llvm

namespace kiln {

/// Choices between values of 16 bits that were rounded in no outer loop, or are constants, become choices between the
/// values before they are rounded.  The same bits; constants that are NaN stay.
void roundAfterChoices(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_ROUNDLAST_H
