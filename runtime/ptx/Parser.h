//===- Parser.h - PTX text to Ast -----------------------------------------===//
//
// Accepts PTX ISA up to 9.x as compilers write it.  Never throws, never recurses without a limit, never reads past the
// text: any byte sequence gives a Module or a Status that names file, line, what was found and what was expected.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_PTX_PARSER_H
#define KILN_RUNTIME_PTX_PARSER_H

#include "runtime/ptx/Ast.h"
#include "support/Status.h"

namespace kiln::ptx {

Result<std::unique_ptr<Module>> parse(std::string text, std::string fileName);

} // namespace kiln::ptx

#endif // KILN_RUNTIME_PTX_PARSER_H
