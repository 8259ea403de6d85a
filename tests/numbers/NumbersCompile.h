//===- NumbersCompile.h - Text with arith and math operations to PTX ---------===//
#ifndef KILN_TESTS_NUMBERS_NUMBERSCOMPILE_H
#define KILN_TESTS_NUMBERS_NUMBERSCOMPILE_H

#include <string>
#include <string_view>

namespace kiln::test {

struct CompiledNumbers {
  bool ok = false;
  std::string errors;  ///< diagnostics, one a line
  std::string lowered; ///< after kiln-lower-numbers
  std::string ptx;
  double lowerMilliseconds = 0; ///< of kiln-lower-numbers alone
};

/// kiln-lower-numbers, the rest of arith to LLVM, the back end.  `text` names its target in tile_gpu.target.
CompiledNumbers compileNumbers(std::string_view text, bool keepLowered = false);

} // namespace kiln::test

#endif // KILN_TESTS_NUMBERS_NUMBERSCOMPILE_H
