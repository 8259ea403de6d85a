//===- CompileMessage.h - Compile requests and results as bytes -----------===//
//
// What passes between libkiln-compiler and `kiln-compile-helper` (Child.h): the structures of CompilerTable.h, each
// text length prefixed, after a magic word and the ABI number.  Decoded texts point into the bytes given.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_COMPILEMESSAGE_H
#define KILN_CODEGEN_COMPILEMESSAGE_H

#include "compiler/pipeline/CompilerTable.h"
#include "support/Status.h"

#include <string>
#include <string_view>

namespace kiln {

std::string encodeRequest(const KilnCompileRequest &request);
Result<KilnCompileRequest> decodeRequest(std::string_view bytes);

/// `owner` is not sent; it is null after decoding.
std::string encodeResult(const KilnCompileResult &result);
Result<KilnCompileResult> decodeResult(std::string_view bytes);

} // namespace kiln

#endif // KILN_CODEGEN_COMPILEMESSAGE_H
