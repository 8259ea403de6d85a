//===- WordPhis.h - Words stay whole from block to block ---------------------===//
//
// The matrix unit reads and writes words of 32 bits; values of 16 bits are their halves.  Within a block LLVM sees that
// halves of one word make up the same word again; where they come from other blocks it carries each half on its own,
// and each round of a loop takes words apart and puts them together.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_WORDPHIS_H
#define KILN_CODEGEN_WORDPHIS_H

namespace llvm {
class Module;
} // namespace llvm

namespace kiln {

/// Two values of 16 bits that are put together into a word become one value of 32, if in each block before they are
/// the halves of one word, constants, or come from blocks before in the same way.  Halves that something computes with
/// stay apart: they would be carried in addition to the word.
void carryWords(llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_WORDPHIS_H
