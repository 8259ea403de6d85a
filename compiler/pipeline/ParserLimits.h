//===- ParserLimits.h - Text that MLIR's parser does not survive ------------===//
//
// MLIR's parser, printer and verifier call themselves for every level of brackets: a text that is nested deeply enough
// overflows any stack.  And the parser of MLIR 22 reads the width of every array attribute's element type, which
// `index` does not have: `array<index: 2>` ends the process.  The compiler and kiln-opt look at a text before they
// parse it; bytecode is not text.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_PARSERLIMITS_H
#define KILN_PIPELINE_PARSERLIMITS_H

#include <string>
#include <string_view>

namespace kiln {

/// Levels of brackets, and prefix operators one after the other.  Kernels of the library use 8.
inline constexpr unsigned maxNesting = 256;
/// Definitions `#a = ..` and `!a = ..`: each may hold the one before, and nests as brackets do.
inline constexpr unsigned maxAliases = 4096;

struct ParserLimit {
  unsigned line = 0, column = 0; ///< where a limit is passed; line 0: none is
  std::string message, remedy;
};

ParserLimit checkParserLimits(std::string_view text);

} // namespace kiln

#endif // KILN_PIPELINE_PARSERLIMITS_H
