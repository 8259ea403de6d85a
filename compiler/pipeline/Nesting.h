//===- Nesting.h - How deep a program's text is nested ----------------------===//
//
// MLIR's parser, printer and verifier call themselves for every level of brackets: a text that is nested deeply enough
// overflows any stack.  Text is looked at before it is parsed; bytecode is not text.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_NESTING_H
#define KILN_PIPELINE_NESTING_H


#include <string_view>

namespace kiln {

/// Levels of brackets, and prefix operators one after the other.  Kernels of the library use 8.
inline constexpr unsigned maxNesting = 256;

struct NestingError {
  unsigned line = 0, column = 0; ///< where the limit is passed; line 0: it is not
};

NestingError checkNesting(std::string_view text);

} // namespace kiln

#endif // KILN_PIPELINE_NESTING_H
